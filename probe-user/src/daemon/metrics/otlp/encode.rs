//! Encodes families for OTLP as `ExportMetricsServiceRequest`.
//!
//! This does not use `opentelemetry-otlp`: that crate sends what its own SDK observed call by call,
//! and cannot make its types from finished sums and histograms. A test decodes the result with the
//! project's own types.

use crate::daemon::metrics::{
    family::{Family, MetricValue, Point},
    latency::{Latency, SCHEMA},
    metric::MetricKind,
};
use ctrace_core::formats::protobuf::Message;
use std::time::{SystemTime, UNIX_EPOCH};

/// The start of the sums, and the current time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub start: SystemTime,
    pub now: SystemTime,
}

/// The temporality of sums that count from `start`, not from the last export.
const CUMULATIVE: u64 = 2;

pub(crate) fn encode(families: &[Family], resource: &Message, times: Times) -> Vec<u8> {
    request(resource, families.iter().map(|family| metric(family, times))).0
}

/// Makes a request with the metrics, spans or profiles of one resource: all have the same form.
pub(crate) fn request(resource: &Message, told: impl Iterator<Item = Message>) -> Message {
    let mut scope = Message::default();
    scope.message(1, Message::default().text(1, "ctrace").text(2, env!("CARGO_PKG_VERSION")));
    told.for_each(|one| _ = scope.message(2, &one));
    let mut of_resource = Message::default();
    of_resource.message(1, resource).message(2, &scope);
    let mut request = Message::default();
    request.message(1, &of_resource);
    request
}

fn metric(family: &Family, times: Times) -> Message {
    let metric = family.metric;
    let mut data = Message::default();
    for point in &family.points {
        data.message(1, &data_point(point, times));
    }
    let field = match metric.kind {
        MetricKind::Gauge => 5,
        MetricKind::Counter => {
            data.number(2, CUMULATIVE).number(3, 1);
            7
        }
        MetricKind::Histogram => {
            data.number(2, CUMULATIVE);
            10
        }
    };
    let mut out = Message::default();
    out.text(1, &metric.otlp_name()).text(2, metric.help).text(3, metric.unit());
    out.message(field, &data);
    out
}

fn data_point(point: &Point, times: Times) -> Message {
    let mut out = Message::default();
    out.fixed(2, nanos(times.start)).fixed(3, nanos(times.now));
    let attributes = match &point.value {
        MetricValue::Number(value) => {
            out.double(4, *value);
            7
        }
        MetricValue::Histogram(latency) => {
            put_latency(&mut out, latency);
            1
        }
    };
    for (key, value) in &point.labels {
        out.message(attributes, &attribute(key, value));
    }
    out
}

fn put_latency(out: &mut Message, latency: &Latency) {
    out.fixed(4, latency.count()).double(5, latency.sum.0 as f64 / 1e9);
    out.signed(6, SCHEMA.into()).fixed(7, latency.zero());
    if let Some((first, counts)) = latency.dense() {
        let mut buckets = Message::default();
        // OTLP names a bucket by its lower bound, Prometheus by its upper one.
        buckets.signed(1, (first - 1).into()).numbers(2, counts);
        out.message(8, &buckets);
    }
}

pub(crate) fn attribute(key: &str, value: &str) -> Message {
    let mut out = Message::default();
    out.text(1, key).message(2, Message::default().text(1, value));
    out
}

/// Makes an attribute with a number.
pub(crate) fn number(key: &str, value: u64) -> Message {
    let mut out = Message::default();
    out.text(1, key).message(2, Message::default().number(3, value));
    out
}

fn nanos(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
