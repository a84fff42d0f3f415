//! Selects the few durations that ranks need, so that only these are gathered and compared.
//!
//! All durations are first counted in buckets. The counts tell the bucket of each rank, and only
//! buckets with a wanted rank are gathered. A function and its path nodes share the buckets and the
//! selection. So the durations gathered for the nodes together are those gathered for the function.

use crate::calls::spool::{Call, Spool};
use crate::stats::tally::Tally;
use std::ops::Range;

/// Buckets per octave, as a power of two; fewer if there are few calls.
const MAX_SUB_BITS: u32 = 6;
/// The number of calls that are worth a bucket.
const CALLS_PER_BUCKET: u64 = 16;

/// The buckets of a path node. An origin is the index that the bucket of duration 0 would have.
#[derive(Clone, Debug, Default)]
struct Table {
    sub_bits: u32,
    counts_origin: usize,
    wanted_origin: usize,
    counts: Range<usize>,
    wanted: Range<usize>,
}

#[derive(Debug)]
pub(crate) struct RankSelection {
    /// The tables by path node.
    tables: Vec<Table>,
    /// The number of calls by node and bucket.
    counts: Vec<u64>,
    /// True for wanted buckets, by function and bucket.
    wanted: Vec<bool>,
}

/// Returns the bucket of `duration` if an octave has two to the power of `sub_bits` buckets: the
/// exponent and the first bits of the fraction of the floating-point number.
#[inline]
fn bucket_of(duration: u64, sub_bits: u32) -> usize {
    let signed = i64::try_from(duration).unwrap_or(i64::MAX);
    ((signed as f64).to_bits() >> (f64::MANTISSA_DIGITS - 1 - sub_bits)) as usize
}

impl RankSelection {
    /// Counts the spooled durations. `functions` has the nodes of each function, `tallies` has the
    /// sums of the same calls by node.
    pub(crate) fn new<'a>(
        spool: &Spool,
        functions: impl Iterator<Item = &'a [u32]>,
        tallies: &[Tally],
    ) -> Self {
        let mut tables = vec![Table::default(); tallies.len()];
        let (mut counts_len, mut wanted_len) = (0_usize, 0_usize);
        for nodes in functions {
            let sum = Tally::sum(nodes.iter().map(|&node| &tallies[node as usize]));
            let (Some(min), Some(max)) = (sum.min(), sum.max()) else { continue };
            let width = |bits: u32| bucket_of(max, bits) - bucket_of(min, bits) + 1;
            let most = (sum.timed / CALLS_PER_BUCKET) as usize;
            let fits = |bits: &u32| width(*bits) * nodes.len() <= most;
            let sub_bits = (0..=MAX_SUB_BITS).rev().find(fits).unwrap_or(0);
            let (width, first) = (width(sub_bits), bucket_of(min, sub_bits));
            for &node in nodes {
                tables[node as usize] = Table {
                    sub_bits,
                    counts_origin: counts_len.wrapping_sub(first),
                    wanted_origin: wanted_len.wrapping_sub(first),
                    counts: counts_len..counts_len + width,
                    wanted: wanted_len..wanted_len + width,
                };
                counts_len += width;
            }
            wanted_len += width;
        }
        let mut counts = vec![0; counts_len];
        for call in spool.timed() {
            let table = &tables[call.node as usize];
            let bucket = bucket_of(call.duration, table.sub_bits);
            counts[table.counts_origin.wrapping_add(bucket)] += 1;
        }
        Self { tables, counts, wanted: vec![false; wanted_len] }
    }

    /// Returns the buckets in which some nodes of one function have durations, each with the ranks
    /// of these and its index in `wanted`.
    fn buckets(&self, nodes: &[u32]) -> impl Iterator<Item = (Range<usize>, usize)> {
        let tables = || nodes.iter().map(|&node| &self.tables[node as usize]);
        let wanted = tables().next().map_or(0..0, |table| table.wanted.clone());
        let mut below = 0;
        wanted.enumerate().filter_map(move |(bucket, place)| {
            let count: u64 = tables().map(|table| self.counts[table.counts.start + bucket]).sum();
            let ranks = below..below + count as usize;
            below = ranks.end;
            (count > 0).then_some((ranks, place))
        })
    }

    /// Selects `ranks` among the durations of `nodes`, which are nodes of one function.
    pub(crate) fn want(&mut self, nodes: &[u32], ranks: &[Range<usize>]) {
        let overlaps = |a: &Range<usize>, b: &Range<usize>| a.start < b.end && b.start < a.end;
        let buckets = self.buckets(nodes);
        let hit = buckets.filter(|(within, _)| ranks.iter().any(|rank| overlaps(rank, within)));
        for place in hit.map(|(_, place)| place).collect::<Vec<_>>() {
            self.wanted[place] = true;
        }
    }

    /// Returns true if the call's bucket is wanted.
    #[inline]
    pub(crate) fn selects(&self, call: &Call) -> bool {
        let table = &self.tables[call.node as usize];
        self.wanted[table.wanted_origin.wrapping_add(bucket_of(call.duration, table.sub_bits))]
    }

    /// Returns the number of selected calls by node.
    pub(crate) fn selected(&self) -> Vec<usize> {
        let selected = |table: &Table| {
            let counts = &self.counts[table.counts.clone()];
            let wanted = counts.iter().zip(&self.wanted[table.wanted.clone()]);
            wanted.filter(|(_, wanted)| **wanted).map(|(&count, _)| count as usize).sum()
        };
        self.tables.iter().map(selected).collect()
    }

    /// Returns the ranks among the durations of `nodes` that are not selected, ascending.
    pub(crate) fn gaps(&self, nodes: &[u32]) -> Vec<Range<usize>> {
        let buckets = self.buckets(nodes);
        buckets.filter(|(_, place)| !self.wanted[*place]).map(|(ranks, _)| ranks).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::by_function::ByFunction;
    use crate::calls::paths::{Paths, ROOT};
    use crate::calls::spool::LogId;
    use crate::report::percentiles::PERMILLE;
    use crate::stats::grouped::Grouped;
    use crate::stats::rank::{Durations, WantedRanks, nearest_rank};
    use crate::units::{FuncId, Nanos};
    use proptest::prelude::*;

    fn duration() -> impl Strategy<Value = u64> {
        let near = |at: u64| at.saturating_sub(3)..at.saturating_add(3);
        prop_oneof![
            4 => 300u64..3_000,
            1 => 0u64..5,
            1 => near(1 << 26),
            1 => near(u64::from(u32::MAX)),
            1 => (0u32..64).prop_map(|bit| 1 << bit),
            1 => near(u64::MAX),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn what_is_selected_is_enough(
            calls in prop::collection::vec((duration(), 0usize..3, 1usize..40), 1..100),
            percent in prop_oneof![Just(0.0), Just(1.0), 0.0f64..50.0],
        ) {
            let (mut paths, mut spool) = (Paths::new(9, 9), Spool::new(usize::MAX));
            let nodes = [0, 1, 1].map(|func| paths.child(ROOT, FuncId(func)));
            let nodes = [nodes[0], nodes[1], paths.child(nodes[0], FuncId(1))];
            let mut tallies = vec![Tally::default(); paths.nodes().len()];
            let (mut log, mut sorted) = (LogId::default(), [const { Vec::new() }; 2]);
            for &(duration, node, times) in &calls {
                for duration in (0..times as u64).map(|more| duration.saturating_add(more * 7)) {
                    let call = Call { start: 0, duration, node: nodes[node], timed: true };
                    tallies[nodes[node] as usize].add_timed(duration, 0);
                    spool.push(&mut log, call);
                    sorted[node.min(1)].push(duration);
                }
            }
            let by_function = ByFunction::new(paths.nodes());
            let nodes_of = |func| by_function.nodes_of(FuncId(func));
            let mut selection = RankSelection::new(&spool, [0, 1].map(nodes_of).into_iter(), &tallies);
            for (func, sorted) in sorted.iter_mut().enumerate() {
                sorted.sort_unstable();
                let wanted = WantedRanks::new(sorted.len() as u64, percent).ranges();
                selection.want(nodes_of(func as u32), &wanted);
            }
            let selected = selection.selected();
            let calls = spool.timed().filter(|call| selection.selects(call));
            let mut grouped = Grouped::new(calls, &by_function, &selected);
            for (func, sorted) in sorted.iter().enumerate().filter(|(_, sorted)| !sorted.is_empty()) {
                let nodes = nodes_of(func as u32);
                let gaps = selection.gaps(nodes);
                let (percentiles, center) = Durations::new(grouped.group(nodes), gaps).rank(percent, 0);
                let rank = |permille| nearest_rank(sorted.len() as u64, permille) as usize;
                prop_assert_eq!(percentiles.0, PERMILLE.map(|p| Some(Nanos(sorted[rank(p)]))));
                let cut = crate::stats::rank::cut(sorted.len() as u64, percent) as usize;
                let (min, max) = (sorted[cut], sorted[sorted.len() - 1 - cut]);
                prop_assert_eq!(center.center.min_ns, Some(Nanos(min)));
                prop_assert_eq!(center.center.max_ns, Some(Nanos(max)));
                prop_assert_eq!(center.slowest.max_ns.is_some(), cut > 0);
            }
        }
    }
}
