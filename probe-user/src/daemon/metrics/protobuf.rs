//! The binary format of Prometheus, which also has exponential histograms: a sequence of
//! `io.prometheus.client.MetricFamily`, each preceded by its length.

use super::{
    family::{Family, MetricValue, Point},
    latency::{Edges, Latency, SCHEMA},
    metric::MetricKind,
};
use ctrace_core::formats::protobuf::{Message, zigzag};

pub(crate) const CONTENT_TYPE: &str = "application/vnd.google.protobuf; \
     proto=io.prometheus.client.MetricFamily; encoding=delimited";

pub(crate) fn encode(families: &[Family], edges: &Edges) -> Vec<u8> {
    let mut out = Vec::new();
    for family in families {
        message(family, edges).append_to(&mut out);
    }
    out
}

fn message(family: &Family, edges: &Edges) -> Message {
    let metric = family.metric;
    let kind = match metric.kind {
        MetricKind::Counter => 0,
        MetricKind::Gauge => 1,
        MetricKind::Histogram => 4,
    };
    let mut out = Message::default();
    out.text(1, metric.name).text(2, metric.help).number(3, kind);
    for point in &family.points {
        out.message(4, &one(metric.kind, point, edges));
    }
    out
}

fn one(kind: MetricKind, point: &Point, edges: &Edges) -> Message {
    let mut out = Message::default();
    for (name, value) in &point.labels {
        out.message(1, Message::default().text(1, name).text(2, value));
    }
    match &point.value {
        MetricValue::Number(value) => {
            let field = if kind == MetricKind::Counter { 3 } else { 2 };
            out.message(field, Message::default().double(1, *value))
        }
        MetricValue::Histogram(latency) => out.message(7, &histogram(latency, edges)),
    };
    out
}

fn histogram(latency: &Latency, edges: &Edges) -> Message {
    let mut out = Message::default();
    out.number(1, latency.count()).double(2, latency.sum.0 as f64 / 1e9);
    for (edge, count) in latency.cumulative(edges) {
        out.message(3, Message::default().number(1, count).double(2, edge.0 as f64 / 1e9));
    }
    // The zero threshold is below the shortest possible time.
    out.signed(5, SCHEMA.into()).double(6, 1e-10).number(7, latency.zero());
    let spans = latency.spans();
    let mut end = 0;
    for (first, counts) in &spans {
        let span = &mut Message::default();
        out.message(12, span.signed(1, (first - end).into()).number(2, counts.len() as u64));
        end = first + counts.len() as i32;
    }
    let counts = spans.iter().flat_map(|(_, counts)| counts);
    let deltas = counts.scan(0, |before, count| {
        let delta = *count as i64 - *before as i64;
        *before = *count;
        Some(zigzag(delta))
    });
    out.numbers(13, deltas);
    out
}
