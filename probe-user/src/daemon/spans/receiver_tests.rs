//! Reads exported slow calls as a receiver does, with OpenTelemetry's types.

use super::{Job, Options, Spans};
use crate::{
    daemon::{
        ids::TargetName,
        metrics::{
            accumulator::Bounds,
            catalog::Own,
            fixtures::{MS, event},
            hub::MetricsHub,
            otlp::fixtures::{receive, receiver, text},
        },
    },
    session::keep::flight::{Flight, FlightSpec, Flown, TooSlow},
    target::select::pattern::Pattern,
    ui::output::wall,
};
use ctrace_common::Kind;
use ctrace_core::{
    engine::{Engine, EngineConfig},
    function::FunctionInfo,
    recording::{Slow, Start},
    units::{Nanos, Pid, Tid},
};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::any_value::Value,
    trace::v1::{Span, span::SpanKind},
};
use prost::Message as _;
use std::{
    collections::HashSet,
    net::TcpListener,
    sync::{Arc, Mutex, atomic::Ordering::Relaxed},
};

const OK: &str = "200 OK\r\nContent-Length: 0";

/// Makes so many slow calls of `handle`, each with `query` and `evil` inside it.
fn flown(calls: u64) -> (Slow, Flown) {
    let mut engine = Engine::new(EngineConfig { keep: true, ..EngineConfig::default() });
    for name in ["handle", "query", "evil\x1b"] {
        engine.add_function(FunctionInfo::new(name, "web"));
    }
    engine.name_thread(Pid(1), Tid(7), "worker");
    let told = Arc::new(Mutex::new(None));
    let deliver = Arc::clone(&told);
    let mut flight = Flight::new(FlightSpec {
        too_slow: TooSlow {
            threshold: Nanos(50 * MS),
            functions: vec![Pattern::parse("handle").expect("a pattern")],
        },
        keep: Nanos(u64::MAX),
        memory: usize::MAX,
        deliver: Box::new(move |slow, _, flown| {
            *deliver.lock().expect("alone") = Some((slow, flown));
        }),
    });
    engine.watch_slow(flight.threshold(), |function| flight.is_watched(function));
    engine.begin(Nanos::ZERO);
    flight.begin(Start::default());
    for at in (0..calls).map(|call| 1 + call * 1_000) {
        for (kind, function, sp, after) in [
            (Kind::Enter, 0, 900, 0),
            (Kind::Enter, 1, 800, 5),
            (Kind::Enter, 2, 700, 6),
            (Kind::Return, 2, 700, 8),
            (Kind::Return, 1, 800, 45),
            (Kind::Return, 0, 900, 60),
        ] {
            engine.push(0, &event(kind, function, sp, at + after));
        }
    }
    engine.advance(Nanos(calls * 1_000 * MS));
    engine.end_chunk(Nanos(calls * 1_000 * MS));
    flight.take(engine.take_blocks());
    let (slow, function) = engine.take_slow().expect("they are slow");
    flight.tell(slow, &function.name, Vec::new());
    told.lock().expect("alone").take().expect("it was told")
}

fn job(calls: u64) -> Job {
    let (slow, flown) = flown(calls);
    assert_eq!(slow.calls, calls);
    Job { target: TargetName("web".into()), calls, flown }
}

fn start(listener: &TcpListener, a_minute: u32) -> (Spans, MetricsHub) {
    let metrics = MetricsHub::new(Bounds::default());
    let options = Options { receiver: receiver(listener), a_minute };
    (Spans::start(options, metrics.clone()).expect("a thread"), metrics)
}

fn number(span: &Span, key: &str) -> Option<i64> {
    let found = span.attributes.iter().find(|attribute| attribute.key == key)?;
    match found.value.as_ref()?.value.as_ref()? {
        Value::IntValue(number) => Some(*number),
        _ => None,
    }
}

fn counted(metrics: &MetricsHub) -> [u64; 2] {
    [Own::SlowCalls, Own::SlowCallsDropped].map(|own| metrics.counter(own).load(Relaxed))
}

#[test]
fn a_receiver_reads_slow_calls_and_what_was_inside() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (spans, metrics) = start(&listener, 9);
    spans.enqueue(job(2));
    let (head, body) = receive(&listener, OK);
    spans.close().expect("it runs").wait();
    assert!(head.contains("content-type: application/x-protobuf\r\n"), "{head}");
    let request = ExportTraceServiceRequest::decode(&*body).expect("a request");
    let [resource] = &request.resource_spans[..] else { panic!("{request:?}") };
    let attributes = &resource.resource.as_ref().expect("a resource").attributes;
    assert_eq!(text(attributes, "service.name").as_deref(), Some("ctrace"));
    let [scope] = &resource.scope_spans[..] else { panic!("{resource:?}") };
    assert_eq!(scope.scope.as_ref().map(|scope| &*scope.name), Some("ctrace"));

    let names: Vec<_> = scope.spans.iter().map(|span| &*span.name).collect();
    assert_eq!(names, ["handle", "query", "evil\\u{1b}"].repeat(2));
    let [handle, query, evil, other, ..] = &scope.spans[..] else { panic!("{scope:?}") };
    assert!(handle.parent_span_id.is_empty());
    assert_eq!(query.parent_span_id, handle.span_id);
    assert_eq!(evil.parent_span_id, query.span_id);
    assert_eq!((handle.trace_id.len(), handle.span_id.len()), (16, 8));
    assert_eq!((&query.trace_id, &evil.trace_id), (&handle.trace_id, &handle.trace_id));
    assert_ne!(other.trace_id, handle.trace_id);
    let ids: HashSet<_> = scope.spans.iter().map(|span| &span.span_id).collect();
    assert_eq!(ids.len(), 6);
    assert!(scope.spans.iter().all(|span| span.kind == SpanKind::Internal as i32));

    // The latest comes first.
    let lasted = |span: &Span| span.end_time_unix_nano - span.start_time_unix_nano;
    assert_eq!([handle, query, evil].map(lasted), [60 * MS, 40 * MS, 2 * MS]);
    assert_eq!(query.start_time_unix_nano - handle.start_time_unix_nano, 5 * MS);
    let begun = 1_001 * MS as i64 + wall::unix_offset_ns();
    let away = (handle.start_time_unix_nano as i64).abs_diff(begun);
    assert!(away < 1_000 * MS, "the clocks differ by {away} ns");

    assert_eq!(text(&query.attributes, "thread.name").as_deref(), Some("worker"));
    assert_eq!(text(&query.attributes, "ctrace.target").as_deref(), Some("web"));
    assert_eq!((number(query, "thread.id"), number(query, "process.pid")), (Some(7), Some(1)));
    let left_out = [handle, query].map(|span| number(span, "ctrace.calls_left_out"));
    assert_eq!(left_out, [Some(0), None]);
    assert_eq!(counted(&metrics), [2, 0]);
}

#[test]
fn what_is_too_much_is_counted_and_not_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (spans, metrics) = start(&listener, 2);
    spans.enqueue(job(5));
    let (_, body) = receive(&listener, OK);
    let request = ExportTraceServiceRequest::decode(&*body).expect("a request");
    let spans_of_two = &request.resource_spans[0].scope_spans[0].spans;
    assert_eq!(spans_of_two.iter().filter(|span| span.parent_span_id.is_empty()).count(), 2);
    spans.enqueue(job(3));
    spans.close().expect("it runs").wait();
    assert_eq!(counted(&metrics), [2, 6]);
}

#[test]
fn who_does_not_listen_hinders_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let (spans, metrics) = start(&listener, 1_000);
    drop(listener);
    let begun = std::time::Instant::now();
    (0..100).for_each(|_| spans.enqueue(job(1)));
    let queued = begun.elapsed();
    assert!(queued < super::PATIENCE, "{queued:?}");
    assert!(counted(&metrics)[1] >= 100 - super::WAITING as u64 - 1);
    spans.close().expect("it runs").wait();
    assert!(begun.elapsed() < queued + crate::daemon::post::queue::LAST * 2);
    assert_eq!(counted(&metrics)[0], 0);
}
