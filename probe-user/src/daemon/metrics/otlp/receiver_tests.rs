//! Reads exported metrics as a receiver does, with OpenTelemetry's types.

use super::{
    Options, Receiver, Resource,
    fixtures::{receive, receiver, text},
};
use crate::daemon::{
    ids::SessionId,
    metrics::{
        accumulator::Bounds,
        fixtures::{Did, snapshot},
        hub::MetricsHub,
        service::{self, Service},
    },
};
use opentelemetry_proto::tonic::{
    collector::metrics::v1::ExportMetricsServiceRequest,
    metrics::v1::{AggregationTemporality, Metric, metric::Data, number_data_point},
};
use prost::Message as _;
use std::{
    io::Write as _,
    net::{TcpListener, TcpStream},
    thread,
    time::Duration,
};

fn options(listener: &TcpListener, interval: Duration) -> Options {
    let headers =
        vec![("x-scope-orgid".parse().expect("a name"), "shop".parse().expect("a value"))];
    let resource = Resource { more: vec![("deployment.environment".into(), "test".into())] };
    Options { receiver: Receiver { headers, resource, ..receiver(listener) }, interval }
}

fn start(metrics: &MetricsHub, options: Options) -> Service {
    let options = service::Options { listen: None, otlp: Some(options), ..Default::default() };
    Service::start(options, metrics.clone()).expect("a thread")
}

#[test]
fn a_receiver_that_asks_for_ever_is_not_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let metrics = MetricsHub::new(Bounds::default());
    let service = start(&metrics, options(&listener, Duration::from_millis(500)));
    let busy = format!("503 Service Unavailable\r\nRetry-After: {}\r\nContent-Length: 0", u64::MAX);
    receive(&listener, &busy);
    let (head, _) = receive(&listener, "200 OK\r\nContent-Length: 0");
    assert!(head.starts_with("post /v1/metrics "), "{head}");
    drop(listener);
    drop(service);
}

#[test]
fn a_receiver_reads_what_is_exported() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let metrics = MetricsHub::new(Bounds::default());
    metrics.begin(SessionId(1), "web");
    let second = 1_000_000_000;
    let did = [Did { untimed: 1, ..Did::called("evil\x1b\n", &[0, second, second, 1_500]) }];
    metrics.observe(SessionId(1), &snapshot(0, second, &did));
    metrics.end(SessionId(1));
    let service = start(&metrics, options(&listener, Duration::from_millis(500)));
    // A refused export is tried again.
    receive(
        &listener,
        "503 Service Unavailable\r\nRetry-After: 0\r\nContent-Length: 4\r\n\r\nbusy",
    );
    let (head, body) = receive(&listener, "200 OK\r\nContent-Length: 0");
    assert!(head.starts_with("post /v1/metrics http/1.1\r\n"), "{head}");
    assert!(head.contains("content-type: application/x-protobuf\r\n"), "{head}");
    assert!(head.contains("x-scope-orgid: shop\r\n"), "{head}");
    let last = thread::spawn(move || drop(service));
    let (_, at_the_end) = receive(&listener, "200 OK\r\nContent-Length: 0");
    assert!(!at_the_end.is_empty());
    // There may have been one more between the two.
    listener.set_nonblocking(true).expect("a socket");
    while !last.is_finished() {
        if let Ok((stream, _)) = listener.accept() {
            refuse(stream);
        }
        thread::sleep(Duration::from_millis(5));
    }

    let request = ExportMetricsServiceRequest::decode(&*body).expect("a request");
    let [resource] = &request.resource_metrics[..] else { panic!("{request:?}") };
    let attributes = &resource.resource.as_ref().expect("a resource").attributes;
    assert_eq!(text(attributes, "service.name").as_deref(), Some("ctrace"));
    assert_eq!(text(attributes, "deployment.environment").as_deref(), Some("test"));
    assert!(text(attributes, "host.name").is_some_and(|host| !host.is_empty()));
    let [scope] = &resource.scope_metrics[..] else { panic!("{resource:?}") };
    let find = |name: &str| -> &Metric {
        scope.metrics.iter().find(|metric| metric.name == name).expect(name)
    };

    let calls = find("ctrace.function.calls");
    let Some(Data::Sum(sum)) = &calls.data else { panic!("{calls:?}") };
    assert!(sum.is_monotonic);
    assert_eq!(sum.aggregation_temporality, AggregationTemporality::Cumulative as i32);
    let [point] = &sum.data_points[..] else { panic!("{sum:?}") };
    assert_eq!(point.value, Some(number_data_point::Value::AsDouble(5.0)));
    assert_eq!(text(&point.attributes, "function").as_deref(), Some("evil\\u{1b}\\u{a}"));
    assert!(point.start_time_unix_nano <= point.time_unix_nano && point.start_time_unix_nano > 0);

    let duration = find("ctrace.function.duration");
    assert_eq!(duration.unit, "s");
    let Some(Data::ExponentialHistogram(histogram)) = &duration.data else {
        panic!("{duration:?}")
    };
    assert_eq!(histogram.aggregation_temporality, AggregationTemporality::Cumulative as i32);
    let [point] = &histogram.data_points[..] else { panic!("{histogram:?}") };
    assert_eq!((point.count, point.zero_count), (4, 1));
    assert!(point.sum.is_some_and(|sum| (sum - 2.000_001_5).abs() < 1e-9));
    assert_eq!(text(&point.attributes, "target").as_deref(), Some("web"));
    let buckets = point.positive.as_ref().expect("there are calls");
    // Upper ends are inclusive: a second is in the bucket that ends there.
    assert_eq!(buckets.offset + buckets.bucket_counts.len() as i32, 0);
    assert_eq!(buckets.bucket_counts.last(), Some(&2));
    assert_eq!(buckets.bucket_counts.iter().sum::<u64>(), 3);
    let base = 2f64.powf(2f64.powi(-point.scale));
    assert!(base.powi(buckets.offset) < 1.5e-6 && base.powi(buckets.offset + 1) >= 1.5e-6);

    let processes = find("ctrace.target.processes");
    assert!(matches!(processes.data, Some(Data::Gauge(_))), "{processes:?}");
    assert_eq!(find("process.resident_memory").unit, "By");
}

fn refuse(stream: TcpStream) {
    let _ = (&stream).write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
}

#[test]
fn failures_are_counted_and_hinder_nothing() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let options = options(&listener, Duration::from_millis(10));
    drop(listener);
    let metrics = MetricsHub::new(Bounds::default());
    let service = start(&metrics, options);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("a runtime");
    let failed = (0..1_000).any(|_| {
        thread::sleep(Duration::from_millis(10));
        let families = runtime.block_on(metrics.scrape());
        let given_up = families.iter().find(|f| f.metric.name == "ctrace_otlp_given_up_total");
        let value = given_up.map(|family| format!("{:?}", family.points[0].value));
        value.is_some_and(|value| value != "Number(0.0)")
    });
    assert!(failed);
    drop(service);
}
