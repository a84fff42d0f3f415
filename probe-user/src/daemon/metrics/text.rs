//! The text format of Prometheus.
//!
//! It is not written by `prometheus-client`: that crate counts observations itself, while ctrace
//! has counted them already. It also writes OpenMetrics, which has no exponential histograms.

use super::{
    family::{Family, MetricValue, Point},
    latency::Edges,
    metric::Metric,
};
use std::fmt::Write as _;

pub(crate) const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

pub(crate) fn encode(families: &[Family], edges: &Edges) -> String {
    let mut out = String::new();
    for Family { metric, points } in families {
        let Metric { name, help, kind, .. } = metric;
        let help = help.replace('\\', "\\\\");
        // Writing to a String cannot fail, here and below.
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {}", kind.name());
        points.iter().for_each(|point| write_point(&mut out, name, point, edges));
    }
    out
}

fn write_point(out: &mut String, name: &str, point: &Point, edges: &Edges) {
    let labels = labels(point);
    let latency = match &point.value {
        MetricValue::Number(value) => return line(out, name, "", &labels, *value),
        MetricValue::Histogram(latency) => latency,
    };
    for (edge, count) in latency.cumulative(edges) {
        let labels = with_le(&labels, &seconds(edge.0).to_string());
        line(out, name, "_bucket", &labels, count as f64);
    }
    let count = latency.count() as f64;
    line(out, name, "_bucket", &with_le(&labels, "+Inf"), count);
    line(out, name, "_sum", &labels, seconds(latency.sum.0));
    line(out, name, "_count", &labels, count);
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / 1e9
}

fn line(out: &mut String, name: &str, suffix: &str, labels: &str, value: f64) {
    let _ = match labels {
        "" => writeln!(out, "{name}{suffix} {value}"),
        labels => writeln!(out, "{name}{suffix}{{{labels}}} {value}"),
    };
}

fn labels(point: &Point) -> String {
    let mut out = String::new();
    for (name, value) in &point.labels {
        let comma = if out.is_empty() { "" } else { "," };
        let _ = write!(out, "{comma}{name}=\"");
        for c in value.chars() {
            match c {
                '\\' => out.push_str("\\\\"),
                '"' => out.push_str("\\\""),
                '\n' => out.push_str("\\n"),
                c => out.push(c),
            }
        }
        out.push('"');
    }
    out
}

fn with_le(labels: &str, edge: &str) -> String {
    let comma = if labels.is_empty() { "" } else { "," };
    format!("{labels}{comma}le=\"{edge}\"")
}
