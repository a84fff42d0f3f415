//! Exact ranks: percentiles and the two tails, from the durations of single calls.
//!
//! Durations are selected, not sorted. They are 32 bits wide where they fit; longer ones are few
//! and lie in a sorted list of their own, at the end of the order.

use crate::report::{CenterReport, SlowTailReport, TailReport};
use crate::spool::LONG;
use crate::tally::mean;
use crate::units::Nanos;
use std::ops::Range;

/// Percentiles as fractions of 1,000: p50, p90, p95, p99, p99.9.
pub(crate) const PERMILLE: [u64; 5] = [500, 900, 950, 990, 999];

/// The nearest rank: the least rank such that at least `permille` of the calls are at or below it.
pub(crate) fn nearest_rank(count: u64, permille: u64) -> u64 {
    (count * permille).div_ceil(1_000).saturating_sub(1)
}

/// How many calls are cut off at each end.
pub(crate) fn cut(count: u64, percent: f64) -> u64 {
    // The sum makes 1,000 * 0.1 % one call although 0.1 is no binary fraction.
    (count as f64 * percent.clamp(0.0, 50.0) / 100.0 + 1e-9).floor() as u64
}

/// Which calls make up a center, decided call by call, latest first.
///
/// Calls of equal duration are ordered by their end, so the latest of those as long as the longest
/// in the center are cut as slowest, and the earliest of those as short as the shortest as fastest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keep {
    shortest: u64,
    longest: u64,
    longest_to_cut: u64,
    shortest_to_keep: u64,
}

impl Keep {
    #[inline]
    pub(crate) fn keeps(&mut self, duration: u64) -> bool {
        if duration > self.shortest && duration < self.longest {
            return true;
        }
        if duration == self.longest && self.longest_to_cut > 0 {
            self.longest_to_cut -= 1;
            return false;
        }
        if duration == self.shortest {
            let keeps = self.shortest_to_keep > 0;
            self.shortest_to_keep = self.shortest_to_keep.saturating_sub(1);
            return keeps;
        }
        duration == self.longest
    }
}

/// The durations of some timed calls, in any order.
pub(crate) struct Durations<'a> {
    short: &'a mut [u32],
    /// Ascending; each has a [`LONG`] among `short`.
    long: Vec<u64>,
}

/// The two tails and what is between.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Center {
    pub(crate) fastest: TailReport,
    pub(crate) center: CenterReport,
    pub(crate) slowest: SlowTailReport,
    pub(crate) keep: Keep,
}

impl<'a> Durations<'a> {
    pub(crate) fn new(short: &'a mut [u32], mut long: Vec<u64>) -> Self {
        long.sort_unstable();
        Self { short, long }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> {
        let short = self.short.iter().filter(|&&short| short != LONG).copied().map(u64::from);
        short.chain(self.long.iter().copied())
    }

    /// The durations at [`PERMILLE`], and the center with `percent` cut off at each end.
    pub(crate) fn rank(&mut self, percent: f64) -> ([Option<Nanos>; PERMILLE.len()], Center) {
        let count = self.short.len();
        if count == 0 {
            return Default::default();
        }
        let cut = cut(count as u64, percent) as usize;
        let middle = cut..count.saturating_sub(cut).max(cut);
        let median = middle.start + nearest_rank(middle.len() as u64, 500) as usize;
        let percentiles = PERMILLE.map(|p| nearest_rank(count as u64, p) as usize);
        let mut ranks = percentiles.to_vec();
        ranks.extend([middle.start, middle.end, median].into_iter().filter(|&r| r < count));
        self.select(ranks);
        let center =
            if middle.is_empty() { Center::default() } else { self.center(middle, median) };
        (percentiles.map(|rank| Some(Nanos(self.at(rank)))), center)
    }

    /// The durations at [`PERMILLE`].
    pub(crate) fn percentiles(&mut self) -> [Option<Nanos>; PERMILLE.len()] {
        self.rank(0.0).0
    }

    fn select(&mut self, mut ranks: Vec<usize>) {
        ranks.sort_unstable();
        ranks.dedup();
        select(self.short, 0, &ranks);
    }

    fn center(&self, middle: Range<usize>, median: usize) -> Center {
        let (low, high) = (0..middle.start, middle.end..self.short.len());
        let (shortest, longest) = (self.least(&middle), self.greatest(&middle));
        Center {
            fastest: TailReport {
                min_ns: (!low.is_empty()).then(|| Nanos(self.least(&low))),
                mean_ns: self.mean(&low),
            },
            center: CenterReport {
                min_ns: Some(Nanos(shortest)),
                mean_ns: self.mean(&middle),
                median_ns: Some(Nanos(self.at(median))),
                max_ns: Some(Nanos(longest)),
                ..CenterReport::default()
            },
            slowest: SlowTailReport {
                mean_ns: self.mean(&high),
                max_ns: (!high.is_empty()).then(|| Nanos(self.greatest(&high))),
            },
            keep: Keep {
                shortest,
                longest,
                longest_to_cut: self.count(&high, longest),
                shortest_to_keep: self.count(&middle, shortest),
            },
        }
    }

    /// The part of `long` whose ranks lie in `range`.
    fn long_in(&self, range: &Range<usize>) -> &[u64] {
        let first = self.short.len() - self.long.len();
        let at = |rank: usize| rank.saturating_sub(first).min(self.long.len());
        &self.long[at(range.start)..at(range.end)]
    }

    fn at(&self, rank: usize) -> u64 {
        self.long_in(&(rank..rank + 1)).first().copied().unwrap_or(u64::from(self.short[rank]))
    }

    fn least(&self, range: &Range<usize>) -> u64 {
        let short = self.short[range.clone()].iter().copied().min().unwrap_or(LONG);
        match self.long_in(range).first() {
            Some(&long) if short == LONG => long,
            _ => u64::from(short),
        }
    }

    fn greatest(&self, range: &Range<usize>) -> u64 {
        let short = || u64::from(self.short[range.clone()].iter().copied().max().unwrap_or(0));
        self.long_in(range).last().copied().unwrap_or_else(short)
    }

    fn mean(&self, range: &Range<usize>) -> Option<Nanos> {
        let long = self.long_in(range);
        let short: u64 = self.short[range.clone()].iter().copied().map(u64::from).sum();
        let short = short - u64::from(LONG) * long.len() as u64;
        let sum = long.iter().fold(short, |sum, &long| sum.saturating_add(long));
        mean(sum, range.len() as u64).map(Nanos)
    }

    fn count(&self, range: &Range<usize>, duration: u64) -> u64 {
        let count = match u32::try_from(duration) {
            Ok(short) if short != LONG => {
                self.short[range.clone()].iter().filter(|&&other| other == short).count()
            }
            _ => self.long_in(range).iter().filter(|&&long| long == duration).count(),
        };
        count as u64
    }
}

/// Puts every rank of `ranks` (ascending) in its place, as `select_nth_unstable` does for one.
fn select(values: &mut [u32], offset: usize, ranks: &[usize]) {
    let Some(&rank) = ranks.get(ranks.len() / 2) else { return };
    let (low, _, high) = values.select_nth_unstable(rank - offset);
    select(low, offset, &ranks[..ranks.len() / 2]);
    select(high, rank + 1, &ranks[ranks.len() / 2 + 1..]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_nearest_rank() {
        for (count, permille, rank) in
            [(1, 500, 0), (2, 500, 0), (3, 500, 1), (100, 990, 98), (100, 999, 99), (10, 900, 8)]
        {
            assert_eq!(nearest_rank(count, permille), rank, "{permille} of {count}");
        }
    }

    #[test]
    fn the_cut_is_rounded_down() {
        for (count, percent, expected) in
            [(99, 1.0, 0), (100, 1.0, 1), (1_000, 0.1, 1), (7, 50.0, 3), (7, 0.0, 0), (10, -1.0, 0)]
        {
            assert_eq!(cut(count, percent), expected, "{percent} % of {count}");
        }
    }

    fn near_long() -> impl Strategy<Value = u64> {
        prop_oneof![
            0u64..20,
            u64::from(LONG) - 2..u64::from(LONG) + 3,
            any::<u32>().prop_map(u64::from)
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn ranks_are_those_of_the_sorted_durations(
            durations in prop::collection::vec(near_long(), 1..200),
            percent in prop_oneof![Just(0.0), Just(1.0), 0.0f64..50.0, Just(50.0)],
        ) {
            let mut sorted = durations.clone();
            sorted.sort_unstable();
            let is_long = |d: &u64| *d >= u64::from(LONG);
            let mut short =
                durations.iter().map(|d| u32::try_from(*d).unwrap_or(LONG)).collect::<Vec<_>>();
            let long = durations.iter().copied().filter(is_long).collect();
            let (percentiles, got) = Durations::new(&mut short, long).rank(percent);
            for (permille, got) in PERMILLE.into_iter().zip(percentiles) {
                let rank = nearest_rank(sorted.len() as u64, permille) as usize;
                prop_assert_eq!(got, Some(Nanos(sorted[rank])));
            }
            let k = cut(sorted.len() as u64, percent) as usize;
            let (low, middle) = (&sorted[..k], &sorted[k..(sorted.len() - k).max(k)]);
            if !middle.is_empty() {
                let high = &sorted[sorted.len() - k..];
                let mean_of = |s: &[u64]| mean(s.iter().sum(), s.len() as u64).map(Nanos);
                prop_assert_eq!(got.fastest.min_ns, low.first().copied().map(Nanos));
                prop_assert_eq!(got.fastest.mean_ns, mean_of(low));
                prop_assert_eq!(got.center.min_ns, middle.first().copied().map(Nanos));
                prop_assert_eq!(got.center.mean_ns, mean_of(middle));
                prop_assert_eq!(got.center.median_ns, Some(Nanos(middle[(middle.len() - 1) / 2])));
                prop_assert_eq!(got.center.max_ns, middle.last().copied().map(Nanos));
                prop_assert_eq!(got.slowest.max_ns, high.last().copied().map(Nanos));
                prop_assert_eq!(got.slowest.mean_ns, mean_of(high));
            }
            let mut keep = got.keep;
            let mut kept = sorted.iter().rev().copied().filter(|&d| keep.keeps(d)).collect::<Vec<_>>();
            kept.reverse();
            prop_assert_eq!(kept, middle);
        }
    }
}
