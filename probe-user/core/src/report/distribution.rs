//! Distributions of durations: exact counts in buckets of a logarithmic scale.
//!
//! They are what JSON has of a `stats::Histogram`, with coarser buckets. They are added and subtracted
//! here, too, because the reports of a daemon bring nothing else.

use super::Report;
use crate::stats::histogram::{log_bounds, log_bucket};
use crate::stats::rank::nearest_rank;
use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// Timed calls by duration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Distribution {
    /// The edges of the buckets: one more than there are buckets. A bucket includes its lower edge.
    pub edges_ns: Vec<Nanos>,
    pub counts: Vec<u64>,
}

impl Distribution {
    /// Adds the calls of another distribution with as many buckets per octave.
    pub fn add(&mut self, other: &Self) {
        let (Some(first), Some(from)) = (self.edges_ns.first(), other.edges_ns.first()) else {
            if self.edges_ns.is_empty() {
                *self = other.clone();
            }
            return;
        };
        let sub_bits = self.sub_bits().max(other.sub_bits());
        let bucket = |edge: &Nanos| log_bucket(edge.0, sub_bits);
        let start = bucket(first).min(bucket(from));
        let end = (bucket(first) + self.counts.len()).max(bucket(from) + other.counts.len());
        let mut counts = vec![0_u64; end - start];
        for (at, summand) in [(bucket(first), &*self), (bucket(from), other)] {
            let places = counts.iter_mut().skip(at - start);
            places.zip(&summand.counts).for_each(|(sum, n)| *sum = sum.saturating_add(*n));
        }
        let edges = (start..end).map(|bucket| Nanos(log_bounds(bucket, sub_bits).0));
        let (last, width) = log_bounds(end - 1, sub_bits);
        let edges = edges.chain([Nanos(last.saturating_add(width))]);
        *self = Self { edges_ns: edges.collect(), counts };
    }

    /// Returns the distribution without the calls of an earlier one, which this one includes.
    pub fn since(&self, earlier: &Self) -> Self {
        let before = |edge: &Nanos| {
            let place = earlier.edges_ns.binary_search(edge).ok()?;
            earlier.counts.get(place).copied()
        };
        let counts = self.counts.iter().zip(&self.edges_ns);
        let counts: Vec<u64> =
            counts.map(|(count, edge)| count.saturating_sub(before(edge).unwrap_or(0))).collect();
        let is_used = |count: &u64| *count > 0;
        let (Some(first), Some(last)) =
            (counts.iter().position(is_used), counts.iter().rposition(is_used))
        else {
            return Self::default();
        };
        let edges_ns = self.edges_ns.get(first..=last + 1).unwrap_or_default().to_vec();
        Self { edges_ns, counts: counts[first..=last].to_vec() }
    }

    /// Returns the number of calls and the middle of each bucket that has calls.
    pub fn middles(&self) -> impl DoubleEndedIterator<Item = (u64, Nanos)> {
        let middle =
            |edges: &[Nanos]| edges[0].saturating_add(Nanos(edges[1].since(edges[0]).0 / 2));
        let buckets = self.counts.iter().copied().zip(self.edges_ns.windows(2).map(middle));
        buckets.filter(|(count, _)| *count > 0)
    }

    /// Returns the number of buckets per octave as a power of two. It is a lower bound if all
    /// buckets are 1 ns wide.
    fn sub_bits(&self) -> u32 {
        let whole = self.edges_ns.windows(2).filter(|edges| edges[1] < Nanos::MAX);
        let bits = whole.map(|edges| {
            let width = edges[1].since(edges[0]).0.max(1);
            edges[0].0.checked_ilog2().unwrap_or(0).saturating_sub(width.ilog2())
        });
        bits.max().unwrap_or(0)
    }

    /// Returns the middle of the bucket with the duration that `permille` of the calls do not
    /// exceed.
    pub fn percentile(&self, permille: u64) -> Option<Nanos> {
        let calls = self.counts.iter().fold(0, |sum: u64, count| sum.saturating_add(*count));
        let rank = nearest_rank(calls, permille);
        let mut seen = 0_u64;
        self.middles().find_map(|(count, middle)| {
            seen = seen.saturating_add(count);
            (seen > rank).then_some(middle)
        })
    }

    /// Returns the same calls in two to the power of `sub_bits` buckets per octave, if it has more.
    pub fn coarser(&self, sub_bits: u32) -> Self {
        let mut coarse = Self::default();
        let mut end = None;
        for (count, edge) in self.counts.iter().zip(&self.edges_ns) {
            match coarse.counts.last_mut().filter(|_| end.is_some_and(|end| *edge < end)) {
                Some(sum) => *sum = sum.saturating_add(*count),
                None => {
                    let (from, width) = log_bounds(log_bucket(edge.0, sub_bits), sub_bits);
                    coarse.edges_ns.push(Nanos(from));
                    coarse.counts.push(*count);
                    end = Some(Nanos(from.saturating_add(width)));
                }
            }
        }
        coarse.edges_ns.extend(end);
        coarse
    }
}

/// Distributions of functions, and their change over time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistogramsReport {
    /// The edges of the slices of time: one more than there are slices. Absent if single calls are
    /// no longer known.
    pub slice_edges_ns: Option<Vec<Nanos>>,
    /// The functions that have timed calls, in order.
    pub functions: Vec<FunctionHistogram>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionHistogram {
    /// Index in `functions` of the report.
    pub function: usize,
    #[serde(flatten)]
    pub durations: Distribution,
    /// The octaves with calls, from short to long; empty if slices are absent.
    pub over_time: Vec<HeatRow>,
}

/// The calls of one octave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeatRow {
    pub from_ns: Nanos,
    pub to_ns: Nanos,
    /// The number of calls that ended in each slice of time.
    pub counts: Vec<u64>,
}

impl Report {
    /// Returns the histogram of a function, by its index.
    pub fn histogram_of(&self, function: usize) -> Option<&FunctionHistogram> {
        let all = &self.histograms.as_ref()?.functions;
        let place = all.binary_search_by_key(&function, |histogram| histogram.function).ok()?;
        all.get(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::histogram::{Histogram, HistogramCounter};

    fn of(durations: &[u64]) -> Distribution {
        let mut histogram = [Histogram::default()];
        let all = durations.iter().map(|&duration| (0, duration));
        HistogramCounter::default().count(&mut histogram, all);
        histogram[0].distribution(3)
    }

    proptest::proptest! {
        #[test]
        fn a_sum_is_that_of_all_calls(
            a in proptest::collection::vec(0_u64..1 << 40, 0..20),
            b in proptest::collection::vec(0_u64..100, 0..20),
        ) {
            let mut sum = of(&a);
            sum.add(&of(&b));
            assert_eq!(sum, of(&[&a[..], &b].concat()));
            assert_eq!(sum.since(&of(&a)), of(&b));
            assert_eq!(sum.since(&sum), Distribution::default());
        }
    }

    #[test]
    fn percentiles_are_within_a_bucket() {
        let all: Vec<u64> = (1_000..2_000).collect();
        let median = of(&all).percentile(500).expect("there are calls").0;
        assert!((1_400..1_600).contains(&median), "{median}");
        assert_eq!(Distribution::default().percentile(500), None);
    }

    #[test]
    fn coarser_buckets_hold_the_same_calls() {
        let edges_ns: Vec<Nanos> = [14, 15, 16, 18, 20, 22, 24].map(Nanos).into();
        let fine = Distribution { edges_ns, counts: vec![1, 2, 4, 8, 16, 32] };
        let octaves = fine.coarser(0);
        assert_eq!(octaves.counts, [3, 60]);
        assert_eq!(octaves.edges_ns, [8, 16, 32].map(Nanos));
        assert_eq!(fine.coarser(1).counts, [3, 60]);
        assert_eq!(fine.coarser(2).counts, [3, 12, 48]);
        assert_eq!(Distribution::default().coarser(0), Distribution::default());
    }
}
