//! The numbers that markers plot over time.

use serde::Serialize;
use std::sync::Arc;

/// A plot: its numbers in the report's stretch.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PlotReport {
    /// Index in `functions` of the report.
    pub function: usize,
    pub name: Arc<str>,
    pub unit: Option<Arc<str>>,
    /// How often a number was written. Those that are infinite or no numbers count here only.
    pub count: u64,
    pub min: Option<f64>,
    pub mean: Option<f64>,
    pub max: Option<f64>,
    pub last: Option<f64>,
    /// The mean of the numbers in each of equal slices of time; none where there was no number.
    pub over_time: Vec<Option<f64>>,
}
