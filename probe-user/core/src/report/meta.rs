//! What a report says that its calls do not.

use super::{Extras, TargetReport};

/// What a report says that the engine does not know.
#[derive(Clone, Debug, Default)]
pub struct ReportMeta {
    pub target: TargetReport,
    /// Percent of the timed calls cut off each end for the center columns, at most 50.
    pub center_cut: f64,
    pub notes: Vec<String>,
    pub extras: Extras,
}
