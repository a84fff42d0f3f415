//! How durations are distributed: exact counts in buckets of a logarithmic scale.

use super::Report;
use crate::histogram::{log_bounds, log_bucket};
use crate::units::Nanos;
use serde::Serialize;

/// Timed calls by duration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Distribution {
    /// One more than there are buckets; a bucket has the durations from its edge on, below the next.
    pub edges_ns: Vec<Nanos>,
    pub counts: Vec<u64>,
}

impl Distribution {
    /// The same calls in two to the power of `sub_bits` buckets an octave, where it has more.
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

/// Distributions of functions, and how they change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct HistogramsReport {
    /// Edges of the slices of time: one more than there are slices. Absent where single calls are no
    /// longer known.
    pub slice_edges_ns: Option<Vec<Nanos>>,
    /// Of those functions that have timed calls, in their order.
    pub functions: Vec<FunctionHistogram>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FunctionHistogram {
    /// Index in `functions` of the report.
    pub function: usize,
    #[serde(flatten)]
    pub durations: Distribution,
    /// Octaves with calls, from short to long; empty where slices are absent.
    pub over_time: Vec<HeatRow>,
}

/// The calls of one octave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HeatRow {
    pub from_ns: Nanos,
    pub to_ns: Nanos,
    /// By slice of time: calls that ended in it.
    pub counts: Vec<u64>,
}

impl Report {
    /// The histogram of a function, by its index.
    pub fn histogram_of(&self, function: usize) -> Option<&FunctionHistogram> {
        let all = &self.histograms.as_ref()?.functions;
        let place = all.binary_search_by_key(&function, |histogram| histogram.function).ok()?;
        all.get(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
