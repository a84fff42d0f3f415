//! The optional data of a report that a view needs. It is collected only on demand.

use super::{calls, timeline, values, wakers};
use ctrace_core::report::{Extras, TrendAsked};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Needs {
    Nothing,
    Histograms,
    PathHistograms,
    SlowestCalls,
    Values,
    Wakers,
    Plots,
    Locks,
    Timeline,
    Trend,
    /// A frame function, which has to be found among those that were traced.
    Frames,
    Ctrack,
}

impl Needs {
    /// Returns whether it needs single calls, not only the sums of an interval.
    pub(crate) fn every_call(self) -> bool {
        matches!(
            self,
            Self::SlowestCalls
                | Self::Values
                | Self::Wakers
                | Self::Plots
                | Self::Locks
                | Self::Timeline
                | Self::Trend
                | Self::Frames
        )
    }

    /// Adds the needs to `extras`. `top` is the requested number of rows.
    pub(crate) fn add_to(self, extras: &mut Extras, top: Option<usize>) {
        match self {
            Self::Nothing | Self::Frames => {}
            Self::Histograms => extras.histograms = true,
            Self::PathHistograms => extras.path_histograms = true,
            Self::SlowestCalls => extras.slowest_calls = Some(top.unwrap_or(calls::TOP)),
            Self::Values => extras.values = Some(top.unwrap_or(values::TOP)),
            Self::Wakers => extras.wakers = Some(top.unwrap_or(wakers::TOP)),
            Self::Plots => extras.plots = true,
            Self::Locks => extras.locks = true,
            Self::Timeline => extras.timeline_lanes = Some(top.unwrap_or(timeline::TOP)),
            Self::Trend => extras.trend = Some(TrendAsked::default()),
            Self::Ctrack => extras.ctrack = true,
        }
    }
}
