//! Receives slow calls of a live target as an OpenTelemetry receiver does.

use ctrace_tests::daemon::{Daemon, folder};
use ctrace_tests::env::{Env, Link};
use ctrace_tests::http::{self, Collector};
use ctrace_tests::look::wait_until;
use ctrace_tests::process::Running;
use ctrace_tests::prometheus::free_address;
use ctrace_tests::targets::program;
use ctrace_tests::{gate, or_skip};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message as _;
use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

const MS: u64 = 1_000_000;
/// Extra duration of every fiftieth request.
const SLOW_MS: u64 = 8;
/// Slow calls a minute.
const MOST: usize = 6;

fn start(env: &Env, receiver: SocketAddr, metrics: SocketAddr) -> Daemon {
    let dir = folder(env, &[("demo", &program("demo.c"))]).expect("the target builds");
    let targets = format!(
        "[metrics]\nlisten = \"{metrics}\"\notlp_spans = \"http://{receiver}\"\notlp_spans_most = {MOST}\n\
         [[target]]\nid = \"shop\"\nexe = \"DIR/demo\"\nfunctions = [\"handle_request\", \
         \"parse_request\", \"look_up\", \"read_from_disk\", \"checksum\"]\nslow = \"{SLOW_MS}ms\"\n\
         slow_functions = \"handle_request\"\ninterval = \"60m\"\n"
    );
    Daemon::start(env, dir, &targets).expect("the daemon starts")
}

fn value<'a>(span: &'a Span, key: &str) -> &'a Value {
    let found = span.attributes.iter().find(|attribute| attribute.key == key);
    let value = found.and_then(|found| found.value.as_ref()?.value.as_ref());
    value.unwrap_or_else(|| panic!("no {key}: {span:?}"))
}

/// Waits for [`MOST`] slow calls.
fn receive(collector: &Collector) -> Vec<Span> {
    let mut all = Vec::new();
    while all.iter().filter(|span| is_root(span)).count() < MOST {
        let post = collector.post().expect("slow calls are exported");
        assert_eq!(post.path, "/v1/traces");
        let request = ExportTraceServiceRequest::decode(&*post.body).expect("a request");
        let scopes = request.resource_spans.into_iter().flat_map(|spans| spans.scope_spans);
        all.extend(scopes.flat_map(|scope| scope.spans));
    }
    all
}

fn is_root(span: &Span) -> bool {
    span.parent_span_id.is_empty()
}

fn now_ns() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_nanos() as u64
}

fn number(address: SocketAddr, metric: &str) -> f64 {
    let text = http::get(address, "/metrics").expect("answers");
    let line = text.lines().find_map(|line| line.strip_prefix(&format!("{metric} ")));
    line.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn slow_calls_arrive_with_what_was_inside() {
    let env = or_skip!(gate::live(Link::Session));
    let (collector, metrics) = (Collector::start().expect("listens"), free_address().expect("one"));
    let daemon = start(&env, collector.address, metrics);
    let begun = now_ns();
    let target = Running::start(Command::new(daemon.path("demo")).arg("600")).expect("starts");
    let spans = receive(&collector);
    let ended = now_ns();

    let by_id: HashMap<_, _> = spans.iter().map(|span| (&span.span_id, span)).collect();
    assert_eq!(by_id.len(), spans.len());
    let (roots, inner): (Vec<&Span>, Vec<&Span>) = spans.iter().partition(|span| is_root(span));
    assert_eq!(roots.len(), MOST);
    assert_eq!(roots.iter().map(|span| &span.trace_id).collect::<HashSet<_>>().len(), MOST);
    for root in roots {
        assert_eq!(root.name, "handle_request");
        let lasted = root.end_time_unix_nano - root.start_time_unix_nano;
        assert!((SLOW_MS * MS..1_000 * MS).contains(&lasted), "{lasted} ns");
        assert!(root.start_time_unix_nano > begun && root.end_time_unix_nano < ended, "{root:?}");
        let parsed = inner.iter().find(|span| span.parent_span_id == root.span_id);
        assert!(parsed.is_some(), "nothing inside {root:?}");
        let Value::StringValue(thread) = value(root, "thread.name") else { panic!("{root:?}") };
        assert!(thread.starts_with("worker-"), "{thread}");
        assert_eq!(value(root, "process.pid"), &Value::IntValue(target.pid().into()));
        assert_eq!(value(root, "ctrace.target"), &Value::StringValue("shop".into()));
        assert_eq!(value(root, "ctrace.calls_left_out"), &Value::IntValue(0));
    }
    let mut names = HashSet::new();
    for span in inner {
        let caller = by_id.get(&span.parent_span_id).expect("its caller is there");
        assert_eq!(span.trace_id, caller.trace_id);
        assert!(span.start_time_unix_nano >= caller.start_time_unix_nano);
        assert!(span.end_time_unix_nano <= caller.end_time_unix_nano);
        names.insert((&*span.name, &*caller.name));
    }
    for pair in [("parse_request", "handle_request"), ("checksum", "parse_request")] {
        assert!(names.contains(&pair), "{names:?}");
    }

    // Calls beyond the limit are counted, and tracing goes on.
    wait_until("calls are left out", || {
        number(metrics, "ctrace_otlp_slow_calls_dropped_total") >= 10.0
    })
    .expect("counted");
    assert_eq!(number(metrics, "ctrace_otlp_slow_calls_total"), MOST as f64);
    let (finished, _dir) = daemon.end().expect("ends");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    assert!(!finished.stderr.contains("spans"), "{}", finished.stderr);
    drop(target);
}

/// Nobody listens: this is logged once and counted, and all else goes on.
#[test]
fn a_receiver_that_is_not_there_is_told_once() {
    let env = or_skip!(gate::live(Link::Session));
    let [nowhere, metrics] = [(); 2].map(|()| free_address().expect("one"));
    let daemon = start(&env, nowhere, metrics);
    let target = Running::start(Command::new(daemon.path("demo")).arg("600")).expect("starts");
    wait_until("calls are given up", || {
        daemon.traced().contains(&target.pid().into())
            && number(metrics, "ctrace_otlp_slow_calls_dropped_total") >= 10.0
    })
    .expect("counted");
    assert_eq!(number(metrics, "ctrace_otlp_slow_calls_total"), 0.0);
    let (finished, _dir) = daemon.end().expect("ends");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let told = finished.stderr.matches("slow calls are not exported as spans: cannot export to");
    assert_eq!(told.count(), 1, "{}", finished.stderr);
}
