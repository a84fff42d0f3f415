//! The numbers of one stretch of time: a report, and what the probes cost in it.

use super::catalogue::RowId;
use ctrace_core::{report::Report, units::Nanos};

/// How far off durations from histograms may be, in percent: half of a bucket.
pub(super) const WITHIN_PERCENT: u32 = 6;

/// Which durations are from histograms whose buckets are an eighth of an octave wide.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FromHistograms {
    #[default]
    Nothing,
    Percentiles,
    /// The least and the longest, too.
    Extremes,
}

impl FromHistograms {
    /// For the reader.
    pub(super) fn note(self) -> Option<String> {
        let what = match self {
            Self::Nothing => return None,
            Self::Percentiles => "percentiles of more than one interval",
            Self::Extremes => "percentiles, the shortest and the longest call",
        };
        Some(format!("{what} come from histograms: within {WITHIN_PERCENT} %"))
    }
}

#[derive(Clone, Debug)]
pub(super) struct Figures {
    pub(super) report: Report,
    /// Of each of the report's functions.
    pub(super) ids: Vec<RowId>,
    /// What the probes of each of them cost, about, if that is known.
    pub(super) spent: Vec<Nanos>,
    /// What all probes cost.
    pub(super) cost: Nanos,
    /// CPU time of the target in this stretch, if it is known.
    pub(super) cpu: Option<Nanos>,
    pub(super) from_histograms: FromHistograms,
}

impl Figures {
    /// How long the stretch is; never nothing, so that one can divide by it.
    pub(super) fn seconds(&self) -> f64 {
        self.report.duration_ns.0.max(1) as f64 / 1e9
    }

    /// A cost in percent of the target's CPU time.
    pub(super) fn percent_of_cpu(&self, cost: Nanos) -> Option<f64> {
        let cpu = self.cpu.filter(|cpu| cpu.0 > 0)?;
        Some(cost.0 as f64 * 100.0 / cpu.0 as f64)
    }

    /// The place of a function in the report.
    pub(super) fn place(&self, id: RowId) -> Option<usize> {
        // Mostly its id is its place.
        match self.ids.get(id.0) {
            Some(found) if *found == id => Some(id.0),
            _ => self.ids.iter().position(|other| *other == id),
        }
    }
}
