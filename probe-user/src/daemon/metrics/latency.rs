//! Counts durations of calls for scrapers, in fixed and in exponential buckets.
//!
//! The durations are accurate to 0.1 %, so a call that close to an edge may be in the neighbouring
//! bucket.

use anyhow::ensure;
use ctrace_core::{stats::Summary, units::Nanos};
use std::{collections::BTreeMap, sync::Arc};

/// The logarithm to base 2 of the exponential buckets per octave; each is 4.4 % wide. Prometheus
/// calls it the schema, OTLP the scale.
pub(crate) const SCHEMA: i32 = 4;

/// The upper edges of the fixed buckets. They are inclusive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Edges(Arc<[Nanos]>);

impl Edges {
    /// The limit, because each edge makes a series of each function.
    const MOST: usize = 100;

    pub(crate) fn new(edges: Vec<Nanos>) -> anyhow::Result<Self> {
        ensure!(!edges.is_empty(), "a histogram needs at least one edge of a bucket");
        ensure!(edges.len() <= Self::MOST, "at most {} edges of buckets", Self::MOST);
        let ascend = edges.windows(2).all(|pair| pair[0] < pair[1]) && edges[0] > Nanos::ZERO;
        ensure!(ascend, "edges of buckets must be longer than zero and ascend");
        Ok(Self(edges.into()))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Nanos> + '_ {
        self.0.iter().copied()
    }
}

/// Returns 1, 2 and 5 of each decade from 1 µs to 100 s.
impl Default for Edges {
    fn default() -> Self {
        let decades = (3..11).flat_map(|decade| [1, 2, 5].map(|step| step * 10u64.pow(decade)));
        Self(decades.chain([10u64.pow(11)]).map(Nanos).collect())
    }
}

/// The timed calls of a function.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Latency {
    pub sum: Nanos,
    /// Counts by fixed bucket, one more than there are edges. Empty without calls.
    fixed: Vec<u64>,
    /// The number of calls of length 0.
    zero: u64,
    /// Counts by exponential bucket. Number `i` ends at 2 to the power of `i` / 2^[`SCHEMA`]
    /// seconds.
    exponential: BTreeMap<i32, u64>,
}

impl Latency {
    /// Returns an empty value if no durations were counted.
    pub(crate) fn new(calls: &Summary, edges: &Edges) -> Self {
        let counted = calls.histogram.as_ref().filter(|_| calls.tally.timed > 0);
        let Some(histogram) = counted else { return Self::default() };
        let mut latency = Self { sum: Nanos(calls.tally.timed_ns), ..Self::default() };
        latency.fixed.resize(edges.0.len() + 1, 0);
        for (duration, count) in histogram.durations() {
            latency.fixed[edges.0.partition_point(|edge| *edge < duration)] += count;
            match duration {
                Nanos::ZERO => latency.zero += count,
                _ => *latency.exponential.entry(bucket_of(duration)).or_default() += count,
            }
        }
        latency
    }

    pub(crate) fn add(&mut self, other: &Self) {
        self.sum = self.sum.saturating_add(other.sum);
        self.fixed.resize(self.fixed.len().max(other.fixed.len()), 0);
        self.fixed
            .iter_mut()
            .zip(&other.fixed)
            .for_each(|(mine, other)| *mine = mine.saturating_add(*other));
        self.zero = self.zero.saturating_add(other.zero);
        for (bucket, count) in &other.exponential {
            let mine = self.exponential.entry(*bucket).or_default();
            *mine = mine.saturating_add(*count);
        }
    }

    pub(crate) fn count(&self) -> u64 {
        self.fixed.iter().sum()
    }

    pub(crate) fn zero(&self) -> u64 {
        self.zero
    }

    /// Returns the calls up to each edge, as Prometheus counts them.
    pub(crate) fn cumulative<'a>(
        &'a self,
        edges: &'a Edges,
    ) -> impl Iterator<Item = (Nanos, u64)> + 'a {
        edges.iter().enumerate().scan(0, |sum, (bucket, edge)| {
            *sum += self.fixed.get(bucket).copied().unwrap_or(0);
            Some((edge, *sum))
        })
    }

    /// Returns all exponential buckets from the first to the last with a call: the first one's
    /// number, and the counts.
    pub(crate) fn dense(&self) -> Option<(i32, impl Iterator<Item = u64> + '_)> {
        let (&first, _) = self.exponential.first_key_value()?;
        let (&last, _) = self.exponential.last_key_value()?;
        let count = |bucket| self.exponential.get(&bucket).copied().unwrap_or(0);
        Some((first, (first..=last).map(count)))
    }

    /// Returns runs of adjacent exponential buckets: the first one's number, and the counts.
    pub(crate) fn spans(&self) -> Vec<(i32, Vec<u64>)> {
        /// Shorter gaps are filled: an empty bucket costs less than a new span.
        const GAP: i32 = 3;
        let mut spans: Vec<(i32, Vec<u64>)> = Vec::new();
        for (&bucket, &count) in &self.exponential {
            let near = spans
                .last_mut()
                .filter(|(first, counts)| bucket - (first + counts.len() as i32) < GAP);
            match near {
                Some((first, counts)) => {
                    counts.resize((bucket - *first) as usize, 0);
                    counts.push(count);
                }
                None => spans.push((bucket, vec![count])),
            }
        }
        spans
    }
}

/// Returns the bucket of a duration, which must not be 0.
fn bucket_of(duration: Nanos) -> i32 {
    let buckets = f64::from(1 << SCHEMA);
    ((duration.0 as f64 / 1e9).log2() * buckets).ceil() as i32
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latency(durations: &[u64], edges: &Edges) -> Latency {
        let durations: Vec<Nanos> = durations.iter().copied().map(Nanos).collect();
        Latency::new(&Summary::of(&durations), edges)
    }

    #[test]
    fn the_edges_are_three_a_decade() {
        let edges: Vec<u64> = Edges::default().iter().map(|edge| edge.0).collect();
        assert_eq!(edges[..4], [1_000, 2_000, 5_000, 10_000]);
        assert_eq!((edges.len(), edges.last()), (25, Some(&100_000_000_000)));
        assert_eq!(Edges::new(edges.into_iter().map(Nanos).collect()).ok(), Some(Edges::default()));
        for wrong in [vec![], vec![0], vec![2, 1], vec![1, 1], (1..102).collect()] {
            assert!(Edges::new(wrong.into_iter().map(Nanos).collect()).is_err());
        }
    }

    #[test]
    fn a_call_as_long_as_an_edge_is_below_it() {
        let edges = Edges::new(vec![Nanos(10), Nanos(20)]).expect("good edges");
        let mut calls = latency(&[0, 10, 11, 20, 21, 500], &edges);
        let cumulative = |calls: &Latency| calls.cumulative(&edges).collect::<Vec<_>>();
        assert_eq!(cumulative(&calls), [(Nanos(10), 2), (Nanos(20), 4)]);
        assert_eq!((calls.count(), calls.zero(), calls.sum), (6, 1, Nanos(562)));
        calls.add(&Latency::default());
        calls.add(&latency(&[1], &edges));
        assert_eq!(cumulative(&calls), [(Nanos(10), 3), (Nanos(20), 5)]);
        assert_eq!(cumulative(&Latency::default()), [(Nanos(10), 0), (Nanos(20), 0)]);
    }

    #[test]
    fn exponential_buckets_hold_what_is_in_their_bounds() {
        let base = 2f64.powf(1.0 / f64::from(1 << SCHEMA));
        for nanos in [1u64, 999, 123_456, 1_000_000_000, 77_000_000_000, u64::MAX] {
            let (seconds, bucket) = (nanos as f64 / 1e9, bucket_of(Nanos(nanos)));
            let (low, high) = (base.powi(bucket - 1), base.powi(bucket));
            assert!(seconds > low * 0.999_999 && seconds <= high * 1.000_001, "{nanos}");
        }
        assert_eq!(bucket_of(Nanos(1_000_000_000)), 0);
    }

    #[test]
    fn near_buckets_share_a_span() {
        let mut calls = Latency::default();
        calls.exponential.extend([(-3, 1), (-2, 2), (1, 3), (9, 4)]);
        assert_eq!(calls.spans(), [(-3, vec![1, 2, 0, 0, 3]), (9, vec![4])]);
    }
}
