//! The second pass: exact ranks. The first pass counted durations in buckets. This one collects the
//! exact durations in buckets with a wanted rank, and sums up both tails.

use super::count::FirstPass;
use super::lens::Lens;
use super::select::{CallReader, each_part};
use crate::calls::by_function::ByFunction;
use crate::hash::IntMap;
use crate::recording::{ChunkEntry, Recording};
use crate::report::assemble::{Ranks, sum};
use crate::report::percentiles::Percentiles;
use crate::report::{CenterReport, SlowTailReport, TailReport};
use crate::stats::histogram::{Histogram, bounds_of, bucket_of};
use crate::stats::rank::{Center, Keep, WantedRanks};
use crate::stats::tally::{Tally, mean};
use crate::units::{FuncId, Nanos};
use std::collections::HashMap;

/// The number of calls with each duration in a bucket.
type Values = IntMap<u64>;

/// The order of the durations of a function, a node or a value, exact in the wanted buckets.
pub(super) struct Order {
    histogram: Histogram,
    /// The index of a bucket's gathered values, by bucket.
    slots: HashMap<usize, usize>,
}

/// The duration at a rank.
#[derive(Clone, Copy)]
struct At {
    duration: u64,
    /// The first rank with a longer duration.
    after: u64,
}

impl Order {
    pub(super) fn new(histogram: Histogram) -> Self {
        Self { histogram, slots: HashMap::new() }
    }

    /// Returns the bucket of a rank, the first rank in this bucket and the first one behind it.
    fn bucket(&self, rank: u64) -> Option<(usize, u64, u64)> {
        let mut first = 0;
        self.histogram.buckets().find_map(|(bucket, count)| {
            let found = (first, first + count);
            first += count;
            (rank < first).then_some((bucket, found.0, found.1))
        })
    }

    fn at(&self, rank: u64, gathered: &[Vec<(u64, u64)>]) -> Option<At> {
        let (bucket, mut first, after) = self.bucket(rank)?;
        let Some(&slot) = self.slots.get(&bucket) else {
            return Some(At { duration: bounds_of(bucket).0, after });
        };
        gathered[slot].iter().find_map(|&(duration, count)| {
            let at = At { duration, after: first + count };
            first += count;
            (rank < first).then_some(at)
        })
    }

    /// Sums up the durations of those `ranks` that are in the same bucket as rank `of`.
    fn sum_in_bucket(
        &self,
        ranks: std::ops::Range<u64>,
        of: u64,
        gathered: &[Vec<(u64, u64)>],
    ) -> u64 {
        let Some((bucket, first, after)) = self.bucket(of) else { return 0 };
        let exact = [(bounds_of(bucket).0, after - first)];
        let values = self.slots.get(&bucket).map_or(&exact[..], |&slot| &gathered[slot][..]);
        let (mut at, mut total) = (first, 0_u64);
        for &(duration, count) in values {
            let overlap = ranks.end.min(at + count).saturating_sub(ranks.start.max(at));
            total = total.saturating_add(duration.saturating_mul(overlap));
            at += count;
        }
        total
    }
}

/// The buckets whose durations are gathered from calls at one node, or with one value.
#[derive(Clone, Default)]
pub(super) struct Interest {
    /// A bit for each bucket modulo 64: a quick test that rules most calls out.
    mask: u64,
    buckets: Vec<(usize, usize)>,
    function: usize,
    /// Buckets below the first and above the second of these are entirely in the tails.
    tails: (usize, usize),
}

impl Interest {
    /// Returns one in no bucket yet, of calls whose tails are not summed up.
    pub(super) fn in_ranks_alone() -> Self {
        Self { tails: (0, usize::MAX), ..Self::default() }
    }
}

/// The durations that a worker has gathered.
pub(super) struct Gathered {
    values: Vec<Values>,
    /// Sums of the buckets that are entirely in a tail, by function.
    low: Vec<u64>,
    high: Vec<u64>,
}

pub(crate) fn ranks(
    recording: &Recording,
    lens: &Lens<'_>,
    chunks: &[ChunkEntry],
    counted: &FirstPass,
    by_function: &ByFunction,
    center_cut: f64,
) -> Ranks {
    let tallies = &counted.counts.tallies;
    let functions = recording.functions().len();
    let mut interests = vec![Interest::default(); tallies.len()];
    let mut slots = 0;
    let mut orders = Vec::with_capacity(functions);
    let mut node_orders: Vec<Option<Order>> = tallies.iter().map(|_| None).collect();
    for function in 0..functions {
        let nodes = by_function.nodes_of(FuncId(function as u32));
        let mut histogram = Histogram::default();
        nodes.iter().for_each(|&node| histogram.merge(&counted.counts.histograms[node as usize]));
        let timed = sum(tallies, nodes).timed;
        let wanted = WantedRanks::new(timed, center_cut);
        let mut order = Order::new(histogram);
        order.want(wanted.edges(), nodes, &mut interests, &mut slots);
        let tails = wanted.tails().map(|tail| tail.and_then(|rank| order.bucket(rank)));
        for &node in nodes {
            let interest = &mut interests[node as usize];
            interest.function = function;
            interest.tails = (tails[0].map_or(0, |b| b.0), tails[1].map_or(usize::MAX, |b| b.0));
            if nodes.len() > 1 {
                let histogram = counted.counts.histograms[node as usize].clone();
                let mut order = Order::new(histogram);
                let wanted = WantedRanks::percentiles(tallies[node as usize].timed);
                order.want(wanted.map(|rank| rank as u64), &[node], &mut interests, &mut slots);
                node_orders[node as usize] = Some(order);
            }
        }
        orders.push((order, wanted));
    }
    let mut gathered = gather(recording, lens, chunks, counted, &interests, (slots, functions));
    let values = gathered.take_sorted();
    let mut nodes = vec![Percentiles::default(); tallies.len()];
    for (node, order) in node_orders.iter().enumerate() {
        if let Some(order) = order {
            nodes[node] = percentiles(order, tallies[node].timed, &values);
        }
    }
    let functions = orders.iter().enumerate().map(|(function, (order, wanted))| {
        let of_function = by_function.nodes_of(FuncId(function as u32));
        let tally = sum(tallies, of_function);
        let percentiles = percentiles(order, tally.timed, &values);
        if let [only] = *of_function {
            nodes[only as usize] = percentiles;
        }
        let tails = [gathered.low[function], gathered.high[function]];
        (percentiles, center(order, wanted, &tally, tails, &values))
    });
    Ranks { functions: functions.collect(), nodes }
}

impl Order {
    /// Requests that the buckets of these ranks be gathered from calls at `nodes`.
    pub(super) fn want(
        &mut self,
        ranks: impl IntoIterator<Item = u64>,
        nodes: &[u32],
        interests: &mut [Interest],
        slots: &mut usize,
    ) {
        for rank in ranks {
            let Some((bucket, ..)) = self.bucket(rank) else { continue };
            if bounds_of(bucket).1 == 1 || self.slots.contains_key(&bucket) {
                continue;
            }
            self.slots.insert(bucket, *slots);
            for &node in nodes {
                let interest = &mut interests[node as usize];
                interest.mask |= 1 << (bucket % 64);
                interest.buckets.push((bucket, *slots));
            }
            *slots += 1;
        }
    }
}

fn gather(
    recording: &Recording,
    lens: &Lens<'_>,
    chunks: &[ChunkEntry],
    counted: &FirstPass,
    interests: &[Interest],
    (slots, functions): (usize, usize),
) -> Gathered {
    let new = || Gathered::new(slots, functions);
    let parts = each_part(chunks, |entries| {
        let mut gathered = new();
        let mut selected = CallReader::new(recording, lens, counted);
        for entry in entries {
            let Some(chunk) = selected.read(entry) else { continue };
            for thread in chunk.threads() {
                selected.calls(&chunk, thread, |call, node| {
                    if call.timed {
                        gathered.add(&interests[node as usize], call.duration);
                    }
                });
            }
        }
        gathered
    });
    parts.into_iter().fold(new(), |mut all, part| {
        all.merge(part);
        all
    })
}

impl Gathered {
    pub(super) fn new(slots: usize, functions: usize) -> Self {
        Self {
            values: vec![Values::default(); slots],
            low: vec![0; functions],
            high: vec![0; functions],
        }
    }

    /// Takes the durations in each slot, ascending, with their numbers.
    pub(super) fn take_sorted(&mut self) -> Vec<Vec<(u64, u64)>> {
        std::mem::take(&mut self.values).into_iter().map(sorted).collect()
    }

    #[inline]
    pub(super) fn add(&mut self, interest: &Interest, duration: u64) {
        let bucket = bucket_of(duration);
        if bucket < interest.tails.0 {
            let low = &mut self.low[interest.function];
            *low = low.saturating_add(duration);
        } else if bucket > interest.tails.1 {
            let high = &mut self.high[interest.function];
            *high = high.saturating_add(duration);
        }
        if interest.mask >> (bucket % 64) & 1 == 1 {
            for (_, slot) in interest.buckets.iter().filter(|(wanted, _)| *wanted == bucket) {
                *self.values[*slot].entry(duration).or_default() += 1;
            }
        }
    }

    pub(super) fn merge(&mut self, other: Self) {
        for (mine, other) in self.values.iter_mut().zip(other.values) {
            for (duration, count) in other {
                *mine.entry(duration).or_default() += count;
            }
        }
        for (mine, other) in [(&mut self.low, other.low), (&mut self.high, other.high)] {
            mine.iter_mut().zip(other).for_each(|(mine, other)| *mine = mine.saturating_add(other));
        }
    }
}

fn sorted(values: Values) -> Vec<(u64, u64)> {
    let mut values: Vec<_> = values.into_iter().collect();
    values.sort_unstable();
    values
}

pub(super) fn percentiles(order: &Order, timed: u64, gathered: &[Vec<(u64, u64)>]) -> Percentiles {
    let mut percentiles = Percentiles::default();
    if timed > 0 {
        let ranks = WantedRanks::percentiles(timed);
        for (at, rank) in percentiles.0.iter_mut().zip(ranks) {
            *at = order.at(rank as u64, gathered).map(|at| Nanos(at.duration));
        }
    }
    percentiles
}

fn center(
    order: &Order,
    wanted: &WantedRanks,
    tally: &Tally,
    [low, high]: [u64; 2],
    gathered: &[Vec<(u64, u64)>],
) -> Center {
    let (cut, middle, median) = wanted.middle();
    if middle.is_empty() {
        return Center::default();
    }
    let all = tally.timed;
    let at = |rank| order.at(rank, gathered);
    let (Some(shortest), Some(longest)) = (at(middle.start), at(middle.end - 1)) else {
        return Center::default();
    };
    let tail = |sum: u64, ranks: std::ops::Range<u64>, edge| match ranks.is_empty() {
        true => (0, None),
        false => {
            let count = ranks.end - ranks.start;
            let sum = sum.saturating_add(order.sum_in_bucket(ranks, edge, gathered));
            (sum, mean(sum, count).map(Nanos))
        }
    };
    let (low, fastest) = tail(low, 0..cut, cut.saturating_sub(1));
    let (high, slowest) = tail(high, middle.end..all, middle.end);
    let [median, upper_median] = median.map(|rank| at(rank).map_or(0, |at| at.duration));
    let rest = tally.timed_ns.saturating_sub(low).saturating_sub(high);
    Center {
        fastest: TailReport {
            min_ns: tally.min().filter(|_| cut > 0).map(Nanos),
            mean_ns: fastest,
        },
        center: CenterReport {
            min_ns: Some(Nanos(shortest.duration)),
            mean_ns: mean(rest, middle.end - middle.start).map(Nanos),
            median_ns: Some(Nanos(median)),
            max_ns: Some(Nanos(longest.duration)),
            ..CenterReport::default()
        },
        slowest: SlowTailReport {
            mean_ns: slowest,
            max_ns: tally.max().filter(|_| cut > 0).map(Nanos),
        },
        keep: Keep {
            shortest: shortest.duration,
            longest: longest.duration,
            longest_to_cut: longest.after.saturating_sub(middle.end),
            shortest_to_keep: shortest.after.min(middle.end) - middle.start,
        },
        cut,
        tails_ns: [low, high],
        upper_median,
    }
}
