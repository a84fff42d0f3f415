//! How long calls took, as finely as is known: for those who add up reports.

use super::Report;
use crate::stats::histogram::{Histogram, HistogramCounter, value_of};
use crate::units::Nanos;

/// The timed calls of one function.
#[derive(Clone, Debug, Default)]
pub struct FunctionLatency {
    /// Index in `functions` of the report.
    pub function: usize,
    /// Of the durations, exactly.
    pub sum_ns: Nanos,
    histogram: Histogram,
}

impl FunctionLatency {
    pub(crate) fn new(function: usize, sum_ns: Nanos, histogram: Histogram) -> Self {
        Self { function, sum_ns, histogram }
    }

    /// Of single calls.
    pub fn of(function: usize, durations: &[Nanos]) -> Self {
        let mut histograms = vec![Histogram::default()];
        let all = durations.iter().map(|duration| (0, duration.0));
        HistogramCounter::default().count(&mut histograms, all);
        let sum = durations.iter().fold(Nanos::ZERO, |sum, duration| sum.saturating_add(*duration));
        Self::new(function, sum, histograms.swap_remove(0))
    }

    /// Durations within 0.1 %, ascending, and how many calls took so long.
    pub fn durations(&self) -> impl Iterator<Item = (Nanos, u64)> {
        self.histogram.buckets().map(|(bucket, count)| (Nanos(value_of(bucket)), count))
    }
}

impl Report {
    /// How long the calls of a function took, by its index; only if it was asked for.
    pub fn latency_of(&self, function: usize) -> Option<&FunctionLatency> {
        let all = self.latencies.as_ref()?;
        let place = all.binary_search_by_key(&function, |latency| latency.function).ok()?;
        all.get(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_told_as_finely_as_they_are_known() {
        let latency = FunctionLatency::of(3, &[1_000_000, 7, 7, 1_000_100].map(Nanos));
        assert_eq!(latency.sum_ns, Nanos(2_000_114));
        let durations: Vec<_> = latency.durations().collect();
        let [(first, 2), (second, 2)] = durations[..] else { panic!("{durations:?}") };
        assert_eq!(first, Nanos(7));
        assert!(second.0.abs_diff(1_000_050) <= 1_000, "{second:?}");
    }
}
