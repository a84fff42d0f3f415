//! The list of a function's percentiles, by which they are computed and stored in a row.

use super::DurationReport;
use crate::stats::histogram::Histogram;
use crate::stats::rank::nearest_rank;
use crate::stats::tally::Tally;
use crate::units::Nanos;

/// Returns the field of a percentile in a row.
type Place = fn(&mut DurationReport) -> &mut Option<Nanos>;

/// The part of 1,000 of each percentile, ascending, and its field in a row.
const ALL: [(u64, Place); 6] = [
    (500, |of| &mut of.p50_ns),
    (750, |of| &mut of.p75_ns),
    (900, |of| &mut of.p90_ns),
    (950, |of| &mut of.p95_ns),
    (990, |of| &mut of.p99_ns),
    (999, |of| &mut of.p999_ns),
];

/// The parts of 1,000 alone.
pub(crate) const PERMILLE: [u64; ALL.len()] = {
    let mut parts = [0; ALL.len()];
    let mut at = 0;
    while at < ALL.len() {
        parts[at] = ALL[at].0;
        at += 1;
    }
    parts
};

/// The durations at [`PERMILLE`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Percentiles(pub(crate) [Option<Nanos>; PERMILLE.len()]);

impl Percentiles {
    /// Returns those of a histogram, clamped to the exact extremes.
    pub(crate) fn of(histogram: &Histogram, tally: &Tally) -> Self {
        Self(PERMILLE.map(|permille| {
            let value = histogram.at(nearest_rank(tally.timed, permille))?;
            Some(Nanos(value.clamp(tally.min()?, tally.max()?)))
        }))
    }

    /// Returns the percentile at this part of 1,000, if it is in the list.
    pub(crate) fn at(&self, permille: u64) -> Option<Nanos> {
        self.0[PERMILLE.iter().position(|part| *part == permille)?]
    }
}

impl DurationReport {
    /// `at` returns the duration that this part of 1,000 of the calls does not exceed.
    pub fn set_percentiles(&mut self, mut at: impl FnMut(u64) -> Option<Nanos>) {
        for (permille, place) in ALL {
            *place(self) = at(permille);
        }
    }
}
