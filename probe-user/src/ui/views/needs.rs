//! What views need of a report besides its sums, which is found out only for them.

use super::{calls, timeline};
use ctrace_core::report::Extras;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    Histograms,
    PathHistograms,
    SlowestCalls,
    Timeline,
}

impl Needs {
    /// Whether the sums of an interval do not do.
    pub(crate) fn every_call(self) -> bool {
        matches!(self, Self::SlowestCalls | Self::Timeline)
    }

    /// `top`: how many rows are asked for.
    pub(crate) fn add_to(self, extras: &mut Extras, top: Option<usize>) {
        match self {
            Self::Nothing => {}
            Self::Histograms => extras.histograms = true,
            Self::PathHistograms => extras.path_histograms = true,
            Self::SlowestCalls => extras.slowest_calls = Some(top.unwrap_or(calls::TOP)),
            Self::Timeline => extras.timeline_lanes = Some(top.unwrap_or(timeline::TOP)),
        }
    }
}
