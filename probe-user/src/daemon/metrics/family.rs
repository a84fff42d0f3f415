//! The metrics at one moment, in any format.

use super::{catalog, latency::Latency, metric::Metric};
use std::sync::Arc;

/// Names and values, in the order of the metric's labels.
pub(crate) type Labels = Vec<(&'static str, Arc<str>)>;

/// A metric and all its series.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Family {
    pub metric: &'static Metric,
    pub points: Vec<Point>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    pub labels: Labels,
    pub value: MetricValue,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) enum MetricValue {
    Number(f64),
    Histogram(Latency),
}

/// All families, in the order of the catalogue.
#[derive(Debug)]
pub(crate) struct Families(Vec<Family>);

impl Default for Families {
    fn default() -> Self {
        Self(catalog::all().map(|metric| Family { metric, points: Vec::new() }).collect())
    }
}

impl Families {
    pub(crate) fn push(&mut self, metric: &'static Metric, labels: Labels, value: f64) {
        self.put(metric, Point { labels, value: MetricValue::Number(value) });
    }

    pub(crate) fn push_latency(
        &mut self,
        metric: &'static Metric,
        labels: Labels,
        latency: Latency,
    ) {
        self.put(metric, Point { labels, value: MetricValue::Histogram(latency) });
    }

    fn put(&mut self, metric: &'static Metric, point: Point) {
        let family = self.0.iter_mut().find(|family| family.metric.name == metric.name);
        family.expect("every metric is in the catalogue").points.push(point);
    }

    /// Returns the families that have points.
    pub(crate) fn finish(mut self) -> Vec<Family> {
        self.0.retain(|family| !family.points.is_empty());
        self.0
    }
}
