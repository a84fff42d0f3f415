//! A log-linear histogram of durations that keeps only the buckets it uses.
//!
//! An octave has 512 buckets, so the middle of a bucket is within 0.1 % of everything in it.
//! Durations arrive in bulk, when a full spool is folded: so a sorted list of the used buckets, 8
//! bytes each, does, and thousands of functions fit in a few megabytes.

use std::cmp::Ordering;

/// Buckets per octave, as a power of two.
const SUB_BITS: u32 = 9;
/// Values below two octaves' worth have a bucket each; every later octave adds 512.
const BUCKETS: usize = (64 - SUB_BITS as usize + 1) << SUB_BITS;
const COUNT_BITS: u32 = 48;
const COUNT_MASK: u64 = (1 << COUNT_BITS) - 1;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Histogram {
    /// Ascending: a bucket's number, above `COUNT_BITS` bits of its count.
    used: Vec<u64>,
}

fn bucket_of(duration: u64) -> usize {
    let bits = u64::BITS - duration.leading_zeros();
    let octave = bits.saturating_sub(SUB_BITS + 1);
    ((octave as usize) << SUB_BITS) + (duration >> octave) as usize
}

/// The middle of a bucket.
fn value_of(bucket: usize) -> u64 {
    let octave = (bucket >> SUB_BITS).saturating_sub(1);
    let low = ((bucket - (octave << SUB_BITS)) as u64) << octave;
    low + ((1u64 << octave) >> 1)
}

impl Histogram {
    pub(crate) fn merge(&mut self, other: &Self) {
        if other.used.is_empty() {
            return;
        }
        let mut merged = Vec::with_capacity(self.used.len() + other.used.len());
        let (mut a, mut b) = (self.used.as_slice(), other.used.as_slice());
        while let ([x, rest_a @ ..], [y, rest_b @ ..]) = (a, b) {
            match (x >> COUNT_BITS).cmp(&(y >> COUNT_BITS)) {
                Ordering::Less => {
                    merged.push(*x);
                    a = rest_a;
                }
                Ordering::Greater => {
                    merged.push(*y);
                    b = rest_b;
                }
                Ordering::Equal => {
                    merged.push(x + (y & COUNT_MASK));
                    (a, b) = (rest_a, rest_b);
                }
            }
        }
        merged.extend(a.iter().chain(b));
        merged.shrink_to_fit();
        self.used = merged;
    }

    /// All durations in it.
    pub(crate) fn count(&self) -> u64 {
        self.used.iter().map(|used| used & COUNT_MASK).sum()
    }

    /// The duration at `rank` (0 is the least), within 0.1 %.
    pub(crate) fn at(&self, rank: u64) -> Option<u64> {
        let mut seen = 0;
        self.used.iter().find_map(|used| {
            seen += used & COUNT_MASK;
            (seen > rank).then(|| value_of((used >> COUNT_BITS) as usize))
        })
    }
}

/// Dense counts, reused to make one histogram after the other.
#[derive(Debug)]
pub(crate) struct HistogramBuilder {
    counts: Vec<u64>,
    touched: Vec<u16>,
}

impl HistogramBuilder {
    pub(crate) fn new() -> Self {
        Self { counts: vec![0; BUCKETS], touched: Vec::new() }
    }

    pub(crate) fn build(&mut self, durations: impl Iterator<Item = u64>) -> Histogram {
        for duration in durations {
            let bucket = bucket_of(duration);
            if self.counts[bucket] == 0 {
                self.touched.push(bucket as u16);
            }
            self.counts[bucket] += 1;
        }
        self.touched.sort_unstable();
        let used = self
            .touched
            .drain(..)
            .map(|bucket| {
                u64::from(bucket) << COUNT_BITS
                    | std::mem::take(&mut self.counts[usize::from(bucket)])
            })
            .collect();
        Histogram { used }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_duration_is_within_a_thousandth() {
        assert!(BUCKETS <= usize::from(u16::MAX) + 1);
        let octaves = (0..64).flat_map(|bit| [1u64 << bit, (1u64 << bit) - 1, 0xabcd << bit >> 16]);
        for duration in octaves.chain([u64::MAX, 0, 1_023, 1_024, 1_025, 999_999_999]) {
            let bucket = bucket_of(duration);
            assert!(bucket < BUCKETS, "{duration}");
            let error = value_of(bucket).abs_diff(duration);
            assert!(error as f64 <= duration as f64 / 1_000.0, "{duration}: off by {error}");
        }
    }

    #[test]
    fn buckets_ascend_with_durations() {
        let mut durations = (0..63).flat_map(|b| [1u64 << b, 3 << b >> 1]).collect::<Vec<_>>();
        durations.sort_unstable();
        assert!(durations.windows(2).all(|w| bucket_of(w[0]) <= bucket_of(w[1])));
    }

    #[test]
    fn merged_histograms_count_both() {
        let mut builder = HistogramBuilder::new();
        let mut merged = builder.build([1, 5, 5, 700].into_iter());
        merged.merge(&builder.build([5, 6, 1].into_iter()));
        let sorted = (0..8).map(|rank| merged.at(rank)).collect::<Vec<_>>();
        let expected = [1, 1, 5, 5, 5, 6, 700].map(Some).into_iter().chain([None]);
        assert_eq!(sorted, expected.collect::<Vec<_>>());
    }
}
