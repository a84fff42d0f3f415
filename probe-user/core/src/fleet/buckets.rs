//! The histograms of the tables: sixteen buckets an octave, on the scale of
//! [`stats::histogram`](crate::stats::Histogram), whose edges they share.
//!
//! They are coarser than in memory, because a row has one. The middle of a bucket is within 3.2 % of
//! everything in it.

use crate::stats::Histogram;
use crate::stats::histogram::{bounds_of, log_bounds, log_bucket};

/// Buckets per octave, as a power of two.
pub(crate) const SUB_BITS: u32 = 4;
/// The number of buckets.
const BUCKETS: usize = (64 - SUB_BITS as usize + 1) << SUB_BITS;

/// Calls by duration. The counts are those from one bucket to another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Buckets {
    first: usize,
    counts: Vec<u64>,
}

impl Buckets {
    pub fn of(histogram: &Histogram) -> Self {
        let mut all = Self::default();
        for (bucket, count) in histogram.buckets() {
            all.add(log_bucket(bounds_of(bucket).0, SUB_BITS), count);
        }
        all
    }

    /// Adds calls. A bucket that no duration has is ignored.
    pub(crate) fn add(&mut self, bucket: usize, count: u64) {
        if bucket >= BUCKETS || count == 0 {
            return;
        }
        if self.counts.is_empty() {
            self.first = bucket;
        }
        if bucket < self.first {
            let more = self.first - bucket;
            self.counts.splice(0..0, std::iter::repeat_n(0, more));
            self.first = bucket;
        }
        let place = bucket - self.first;
        if place >= self.counts.len() {
            self.counts.resize(place + 1, 0);
        }
        self.counts[place] = self.counts[place].saturating_add(count);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        other.used().for_each(|(bucket, count)| self.add(bucket, count));
    }

    /// Returns the buckets that have calls, ascending.
    pub(crate) fn used(&self) -> impl Iterator<Item = (usize, u64)> {
        let counts = self.counts.iter().enumerate().filter(|(_, count)| **count > 0);
        counts.map(|(place, count)| (self.first + place, *count))
    }

    /// Returns the number of buckets from the first to the last with calls.
    pub(super) fn len(&self) -> usize {
        self.counts.len()
    }

    /// Returns the duration at `rank` (0 is the least): the middle of its bucket.
    pub(crate) fn at(&self, rank: u64) -> Option<u64> {
        let mut seen: u64 = 0;
        let (bucket, _) = self.used().find(|(_, count)| {
            seen = seen.saturating_add(*count);
            seen > rank
        })?;
        let (low, width) = log_bounds(bucket, SUB_BITS);
        Some(low + (width >> 1))
    }

    /// Returns the same counts for a comparison, which knows the scale.
    pub(crate) fn histogram(&self) -> Histogram {
        Histogram::of_buckets(self.used())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Summary;
    use crate::units::Nanos;

    #[test]
    fn the_middle_of_a_bucket_is_near_all_in_it() {
        let octaves = (0..64).flat_map(|bit| [1u64 << bit, (1u64 << bit) - 1, 0xabcd << bit >> 16]);
        for duration in octaves.chain([u64::MAX, 31, 32, 33, 999_999_999]) {
            let bucket = log_bucket(duration, SUB_BITS);
            let mut one = Buckets::default();
            one.add(bucket, 1);
            let error = one.at(0).expect("a call").abs_diff(duration);
            assert!(bucket < BUCKETS && error as f64 <= duration as f64 * 0.032, "{duration}");
        }
    }

    #[test]
    fn merged_buckets_are_those_of_all_calls() {
        let of = |durations: &[u64]| {
            let durations: Vec<Nanos> = durations.iter().copied().map(Nanos).collect();
            Buckets::of(&Summary::of(&durations).histogram.expect("counted"))
        };
        let (low, high) = ([7, 500, 501, 40_000], [3, 501, 9_000_000]);
        let mut merged = of(&low);
        merged.merge(&of(&high));
        assert_eq!(merged, of(&[low.as_slice(), &high].concat()));
        assert_eq!(merged.used().map(|(_, count)| count).sum::<u64>(), 7);
        assert_eq!((merged.at(0), merged.at(7)), (Some(3), None));
    }

    #[test]
    fn a_bucket_that_cannot_be_is_ignored() {
        let mut hostile = Buckets::default();
        hostile.add(usize::MAX, 1);
        hostile.add(BUCKETS, 5);
        assert_eq!(hostile, Buckets::default());
    }
}
