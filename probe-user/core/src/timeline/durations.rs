//! The durations of some functions' calls, as the bars of a histogram.

use super::Timeline;
use super::cell::{RowKey, Span};
use super::chosen::Chosen;
use super::sums::{Sum, not_empty};
use crate::calls::paths::Node;
use crate::formats::Ended;
use crate::recording::Recording;
use crate::stats::histogram::{log_bounds, log_bucket};
use crate::stop::Stop;
use crate::units::Nanos;
use serde::Serialize;
use std::ops::Range;

/// Bars, at most.
const MOST_BARS: usize = 64;
/// An octave has two to the power of this many buckets while durations are counted.
const SUB_BITS: u32 = 4;

/// A bar of a histogram.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct DurationBar {
    /// The least duration.
    pub from_ns: Nanos,
    /// The greatest duration.
    pub to_ns: Nanos,
    /// The number of calls.
    pub count: u64,
}

/// The durations of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Durations {
    /// The bars, without gaps, from the shortest call to the longest. Durations double every few bars.
    pub bars: Vec<DurationBar>,
    /// The number of calls in them.
    pub count: u64,
    /// The number of further calls whose ends were not seen.
    pub untimed: u64,
}

struct Counts<'a> {
    chosen: &'a Chosen,
    nodes: &'a [Node],
    buckets: Vec<u64>,
    untimed: u64,
}

impl Sum for Counts<'_> {
    fn see(&mut self, _: RowKey, span: &Span) {
        if !self.chosen.has(span, self.nodes) {
            return;
        }
        if span.ended != Ended::Timed {
            self.untimed += 1;
            return;
        }
        let bucket = log_bucket(span.duration.0, SUB_BITS);
        if self.buckets.len() <= bucket {
            self.buckets.resize(bucket + 1, 0);
        }
        self.buckets[bucket] += 1;
    }

    fn add(&mut self, other: Self) {
        self.untimed += other.untimed;
        if self.buckets.len() < other.buckets.len() {
            self.buckets.resize(other.buckets.len(), 0);
        }
        self.buckets.iter_mut().zip(other.buckets).for_each(|(sum, more)| *sum += more);
    }
}

impl Timeline {
    /// Counts chosen calls that begin in a stretch of time by their durations. The counts are exact; those of
    /// work that was stopped are worth nothing.
    pub fn durations(
        &self,
        recording: &Recording,
        chosen: &Chosen,
        time: Range<Nanos>,
        stop: &Stop,
    ) -> Durations {
        let nodes = recording.nodes();
        let new = || Counts { chosen, nodes, buckets: Vec::new(), untimed: 0 };
        let counts = self.sum(recording, &not_empty(&time), stop, new);
        let bars = bars(&counts.buckets);
        let count = bars.iter().map(|bar| bar.count).sum();
        Durations { bars, count, untimed: counts.untimed }
    }
}

/// Makes bars of the counts of fine buckets: the finest that are few enough.
fn bars(buckets: &[u64]) -> Vec<DurationBar> {
    let first = buckets.iter().position(|count| *count > 0);
    let last = buckets.iter().rposition(|count| *count > 0);
    let (Some(first), Some(last)) = (first, last) else { return Vec::new() };
    let least = |bucket: usize| log_bounds(bucket, SUB_BITS).0;
    let range = |bits: u32| log_bucket(least(first), bits)..=log_bucket(least(last), bits);
    let bits = (0..=SUB_BITS).rev().find(|bits| range(*bits).count() <= MOST_BARS).unwrap_or(0);
    let mut bars: Vec<DurationBar> = range(bits)
        .map(|bucket| {
            let (from, width) = log_bounds(bucket, bits);
            DurationBar { from_ns: Nanos(from), to_ns: Nanos(from + (width - 1)), count: 0 }
        })
        .collect();
    let before = *range(bits).start();
    for (bucket, count) in buckets.iter().enumerate().filter(|(_, count)| **count > 0) {
        // The edges of a coarse scale are also edges of a finer one.
        bars[log_bucket(least(bucket), bits) - before].count += count;
    }
    bars
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_no_gaps_and_all_calls() {
        for durations in [&[0_u64, 1, 7, 7, 130][..], &[5, u64::MAX, 1 << 40], &[1_000, 1_001]] {
            let mut buckets = vec![0; log_bucket(u64::MAX, SUB_BITS) + 1];
            durations.iter().for_each(|each| buckets[log_bucket(*each, SUB_BITS)] += 1);
            let bars = bars(&buckets);
            assert!(bars.len() <= MOST_BARS, "{durations:?}");
            assert!(bars.windows(2).all(|pair| pair[0].to_ns.0 + 1 == pair[1].from_ns.0));
            for bar in &bars {
                let is_in = |each: &&u64| (bar.from_ns.0..=bar.to_ns.0).contains(*each);
                assert_eq!(bar.count, durations.iter().filter(is_in).count() as u64, "{bar:?}");
            }
            assert_eq!(bars.iter().map(|bar| bar.count).sum::<u64>(), durations.len() as u64);
            assert!(bars[0].count > 0 && bars[bars.len() - 1].count > 0);
        }
    }
}
