//! The parts of a report that do not come from its calls.

use super::{Extras, TargetReport};

/// The parts of a report that the engine does not know.
#[derive(Clone, Debug, Default)]
pub struct ReportMeta {
    pub target: TargetReport,
    /// The percentage of the timed calls cut off each end for the center columns, at most 50.
    pub center_cut: f64,
    pub notes: Vec<String>,
    pub extras: Extras,
}
