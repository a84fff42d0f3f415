//! The numbers of one stretch of time: a report, and the cost of its probes.

use crate::top::data::catalogue::RowId;
use crate::ui::notes::marks::Marks;
use ctrace_core::{report::Report, units::Nanos};

/// The error of durations from histograms, in percent: half of a bucket.
pub(crate) const WITHIN_PERCENT: u32 = 6;

/// The durations that come from histograms, with buckets of an eighth of an octave.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum FromHistograms {
    #[default]
    Nothing,
    Percentiles,
    /// Percentiles, and also the shortest and the longest call.
    Extremes,
}

impl FromHistograms {
    /// Returns a note for the reader.
    pub(crate) fn note(self) -> Option<String> {
        let what = match self {
            Self::Nothing => return None,
            Self::Percentiles => "percentiles of more than one interval",
            Self::Extremes => "percentiles, the shortest and the longest call",
        };
        Some(format!("{what} come from histograms: within {WITHIN_PERCENT} %"))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Figures {
    pub(crate) report: Report,
    /// The ids of the report's functions.
    pub(crate) ids: Vec<RowId>,
    /// The approximate cost of each function's probes, if known.
    pub(crate) spent: Vec<Nanos>,
    /// The cost of all probes.
    pub(crate) cost: Nanos,
    /// The target's CPU time in this stretch, if known.
    pub(crate) cpu: Option<Nanos>,
    pub(crate) from_histograms: FromHistograms,
    /// Times are shown without the cost of probes, as in reports: that was measured.
    pub(crate) is_net: bool,
    /// What is to be known of its rows.
    pub(crate) marks: Marks,
}

impl Figures {
    /// Returns the length of the stretch. It is never 0, so that division is safe.
    pub(crate) fn seconds(&self) -> f64 {
        self.report.duration_ns.0.max(1) as f64 / 1e9
    }

    /// Returns a cost in percent of the target's CPU time.
    pub(crate) fn percent_of_cpu(&self, cost: Nanos) -> Option<f64> {
        let cpu = self.cpu.filter(|cpu| cpu.0 > 0)?;
        Some(cost.0 as f64 * 100.0 / cpu.0 as f64)
    }

    /// Returns the place of a function in the report.
    pub(crate) fn place(&self, id: RowId) -> Option<usize> {
        // Usually the place equals the id.
        match self.ids.get(id.0) {
            Some(found) if *found == id => Some(id.0),
            _ => self.ids.iter().position(|other| *other == id),
        }
    }
}
