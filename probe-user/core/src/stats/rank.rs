//! Exact ranks: percentiles and the two tails, from the durations of single calls.
//!
//! Durations are selected, not sorted. Only those around the wanted ranks and in the tails are
//! kept; the others are gaps in the order. Durations are stored in 32 bits. The few that do not fit
//! lie in a separate sorted list, at the end of the order.

use crate::calls::spool::LONG;
use crate::report::percentiles::{PERMILLE, Percentiles};
use crate::report::{CenterReport, SlowTailReport, TailReport};
use crate::stats::grouped::DurationGroup;
use crate::stats::tally::mean;
use crate::units::Nanos;
use std::ops::Range;

/// Returns the nearest rank: the least rank such that at least `permille` of the calls are at or
/// below it.
pub(crate) fn nearest_rank(count: u64, permille: u64) -> u64 {
    let calls = u128::from(count) * u128::from(permille);
    (calls.div_ceil(1_000) as u64).saturating_sub(1)
}

/// Returns the number of calls that are cut off at each end.
pub(crate) fn cut(count: u64, percent: f64) -> u64 {
    // The addend makes 1,000 * 0.1 % one call although 0.1 is no binary fraction.
    (count as f64 * percent.clamp(0.0, 50.0) / 100.0 + 1e-9).floor() as u64
}

/// Decides call by call, latest first, which calls belong to a center.
///
/// Calls of equal duration are ordered by their end. Of those as long as the longest in the center,
/// the latest are cut as slowest. Of those as short as the shortest, the earliest are cut as
/// fastest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keep {
    pub(crate) shortest: u64,
    pub(crate) longest: u64,
    pub(crate) longest_to_cut: u64,
    pub(crate) shortest_to_keep: u64,
}

impl Keep {
    /// Returns whether a duration equals the longest, and whether it equals the shortest, in the
    /// center. Only some of the calls that tie with these are kept.
    pub(crate) fn edges(&self, duration: u64) -> (bool, bool) {
        (duration == self.longest, duration == self.shortest)
    }

    /// Counts calls of the two boundary durations that were decided.
    pub(crate) fn pass(&mut self, longest: u64, shortest: u64) {
        let cut = self.longest_to_cut.min(longest);
        self.longest_to_cut -= cut;
        // If both durations are the same, the calls that are cut come first.
        let shortest = if self.longest == self.shortest { shortest - cut } else { shortest };
        self.shortest_to_keep = self.shortest_to_keep.saturating_sub(shortest);
    }

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

/// The ranks that a function's report needs.
pub(crate) struct WantedRanks {
    percentiles: [usize; PERMILLE.len()],
    low: Range<usize>,
    middle: Range<usize>,
    high: Range<usize>,
    /// The middle rank of `middle`, and the one above it if there are two.
    median: [usize; 2],
}

impl WantedRanks {
    /// Makes the ranks for `count` durations, with `percent` cut off at each end.
    pub(crate) fn new(count: u64, percent: f64) -> Self {
        let (cut, percentiles) = (cut(count, percent) as usize, Self::percentiles(count));
        let count = count as usize;
        let middle = cut..count.saturating_sub(cut).max(cut);
        let lower = middle.start + nearest_rank(middle.len() as u64, 500) as usize;
        let median = [lower, middle.start + middle.len() / 2];
        Self { percentiles, low: 0..middle.start, high: middle.end..count, middle, median }
    }

    pub(crate) fn percentiles(count: u64) -> [usize; PERMILLE.len()] {
        PERMILLE.map(|permille| nearest_rank(count, permille) as usize)
    }

    /// Returns the number cut off at each end, the ranks in between, and the ranks of their median.
    pub(crate) fn middle(&self) -> (u64, Range<u64>, [u64; 2]) {
        let Range { start, end } = self.middle;
        (self.low.len() as u64, start as u64..end as u64, self.median.map(|rank| rank as u64))
    }

    /// Returns the last rank of the low tail and the first of the high one.
    pub(crate) fn tails(&self) -> [Option<u64>; 2] {
        let low = self.low.clone().next_back();
        [low, self.high.clone().next()].map(|rank| rank.map(|rank| rank as u64))
    }

    /// Returns the single ranks, and the edges of the tails.
    pub(crate) fn edges(&self) -> impl Iterator<Item = u64> {
        let singles = self.singles().into_iter().map(|rank| rank as u64);
        singles.chain(self.tails().into_iter().flatten())
    }

    /// Returns the single ranks, whose durations must be at their exact places.
    fn singles(&self) -> Vec<usize> {
        let mut ranks = self.percentiles.to_vec();
        if !self.middle.is_empty() {
            ranks.extend([self.middle.start, self.middle.end - 1]);
            ranks.extend(self.median);
        }
        ranks
    }

    /// Returns all wanted ranks.
    pub(crate) fn ranges(&self) -> Vec<Range<usize>> {
        let singles = self.singles().into_iter().map(|rank| rank..rank + 1);
        singles.chain([self.low.clone(), self.high.clone()]).collect()
    }
}

/// The durations of some timed calls, in any order.
pub(crate) struct Durations<'a> {
    short: &'a mut [u32],
    /// In ascending order; each has a [`LONG`] among `short`.
    long: Vec<u64>,
    /// The ranks of missing durations, ascending.
    gaps: Vec<Range<usize>>,
    /// The number of durations, including those in the gaps.
    count: usize,
}

/// The two tails and the center between them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Center {
    pub(crate) fastest: TailReport,
    pub(crate) center: CenterReport,
    pub(crate) slowest: SlowTailReport,
    pub(crate) keep: Keep,
    /// The calls in each tail.
    pub(crate) cut: u64,
    /// The sums of the durations in the two tails.
    pub(crate) tails_ns: [u64; 2],
    /// The longer of the two middle durations of the center; its median if there is only one.
    pub(crate) upper_median: u64,
}

impl<'a> Durations<'a> {
    pub(crate) fn new(
        DurationGroup { short, mut long }: DurationGroup<'a>,
        gaps: Vec<Range<usize>>,
    ) -> Self {
        long.sort_unstable();
        let count = short.len() + gaps.iter().map(ExactSizeIterator::len).sum::<usize>();
        Self { short, long, gaps, count }
    }

    /// Returns the percentiles, and the center with `percent` cut off at each end. `sum`: of all
    /// durations.
    pub(crate) fn rank(&mut self, percent: f64, sum: u64) -> (Percentiles, Center) {
        if self.count == 0 {
            return Default::default();
        }
        let wanted = WantedRanks::new(self.count as u64, percent);
        self.select(&wanted.singles());
        let center =
            if wanted.middle.is_empty() { Center::default() } else { self.center(&wanted, sum) };
        (self.percentiles_at(wanted.percentiles), center)
    }

    pub(crate) fn percentiles(&mut self) -> Percentiles {
        if self.count == 0 {
            return Default::default();
        }
        let ranks = WantedRanks::percentiles(self.count as u64);
        self.select(&ranks);
        self.percentiles_at(ranks)
    }

    fn percentiles_at(&self, ranks: [usize; PERMILLE.len()]) -> Percentiles {
        Percentiles(ranks.map(|rank| Some(Nanos(self.at(rank)))))
    }

    fn select(&mut self, ranks: &[usize]) {
        let mut places = ranks.iter().map(|&rank| self.place(rank)).collect::<Vec<_>>();
        places.sort_unstable();
        places.dedup();
        select(self.short, 0, &places);
    }

    /// Returns the place of the duration at `rank`: the number of lower ranks outside the gaps.
    fn place(&self, rank: usize) -> usize {
        let gaps = self.gaps.iter().take_while(|gap| gap.start < rank);
        rank - gaps.map(|gap| gap.end.min(rank) - gap.start).sum::<usize>()
    }

    fn center(
        &self,
        WantedRanks { low, middle, high, median, .. }: &WantedRanks,
        sum: u64,
    ) -> Center {
        let places = |ranks: &Range<usize>| self.place(ranks.start)..self.place(ranks.end);
        let (shortest, longest) = (self.at(middle.start), self.at(middle.end - 1));
        let (below, above) = (places(low), places(high));
        let tails_ns = [self.sum(&below), self.sum(&above)];
        let rest = sum.saturating_sub(tails_ns[0]).saturating_sub(tails_ns[1]);
        let nanos = |mean: Option<u64>| mean.map(Nanos);
        Center {
            fastest: TailReport {
                min_ns: (!low.is_empty()).then(|| Nanos(self.least(&below))),
                mean_ns: nanos(mean(tails_ns[0], low.len() as u64)),
            },
            center: CenterReport {
                min_ns: Some(Nanos(shortest)),
                mean_ns: nanos(mean(rest, middle.len() as u64)),
                median_ns: Some(Nanos(self.at(median[0]))),
                max_ns: Some(Nanos(longest)),
                ..CenterReport::default()
            },
            slowest: SlowTailReport {
                mean_ns: nanos(mean(tails_ns[1], high.len() as u64)),
                max_ns: (!high.is_empty()).then(|| Nanos(self.greatest(&above))),
            },
            keep: Keep {
                shortest,
                longest,
                longest_to_cut: self.count(&above, longest),
                shortest_to_keep: self.count(&places(middle), shortest),
            },
            cut: low.len() as u64,
            tails_ns,
            upper_median: self.at(median[1]),
        }
    }

    /// Returns the part of `long` that is in these places.
    fn long_in(&self, places: &Range<usize>) -> &[u64] {
        let first = self.short.len() - self.long.len();
        let at = |place: usize| place.saturating_sub(first).min(self.long.len());
        &self.long[at(places.start)..at(places.end)]
    }

    /// Returns the duration at one of the selected ranks.
    fn at(&self, rank: usize) -> u64 {
        let place = self.place(rank);
        self.long_in(&(place..place + 1)).first().copied().unwrap_or(u64::from(self.short[place]))
    }

    fn least(&self, places: &Range<usize>) -> u64 {
        let short = self.short[places.clone()].iter().copied().min().unwrap_or(LONG);
        match self.long_in(places).first() {
            Some(&long) if short == LONG => long,
            _ => u64::from(short),
        }
    }

    fn greatest(&self, places: &Range<usize>) -> u64 {
        let short = || u64::from(self.short[places.clone()].iter().copied().max().unwrap_or(0));
        self.long_in(places).last().copied().unwrap_or_else(short)
    }

    fn sum(&self, places: &Range<usize>) -> u64 {
        let long = self.long_in(places);
        let short: u64 = self.short[places.clone()].iter().copied().map(u64::from).sum();
        let short = short - u64::from(LONG) * long.len() as u64;
        long.iter().fold(short, |sum, &long| sum.saturating_add(long))
    }

    fn count(&self, places: &Range<usize>, duration: u64) -> u64 {
        let count = match u32::try_from(duration) {
            Ok(short) if short != LONG => {
                self.short[places.clone()].iter().filter(|&&other| other == short).count()
            }
            _ => self.long_in(places).iter().filter(|&&long| long == duration).count(),
        };
        count as u64
    }
}

/// Puts the right value at each of `places` (ascending), like `select_nth_unstable` for one.
fn select(values: &mut [u32], offset: usize, places: &[usize]) {
    let Some(&place) = places.get(places.len() / 2) else { return };
    let (low, _, high) = values.select_nth_unstable(place - offset);
    select(low, offset, &places[..places.len() / 2]);
    select(high, place + 1, &places[places.len() / 2 + 1..]);
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
            bucket in prop_oneof![Just(1u64), 2u64..50, Just(u64::MAX)],
        ) {
            let mut sorted = durations.clone();
            sorted.sort_unstable();
            let is_long = |d: &u64| *d >= u64::from(LONG);
            let wanted = WantedRanks::new(sorted.len() as u64, percent).ranges();
            let wanted = wanted.into_iter().flatten().map(|rank| sorted[rank] / bucket).collect::<Vec<_>>();
            let is_here = |d: &u64| wanted.contains(&(d / bucket));
            let gaps = (0..sorted.len()).filter(|&rank| !is_here(&sorted[rank]));
            let gaps = gaps.map(|rank| rank..rank + 1).collect();
            let here = durations.iter().copied().filter(is_here);
            let mut short = here.clone().map(|d| u32::try_from(d).unwrap_or(LONG)).collect::<Vec<_>>();
            let group = DurationGroup { short: &mut short, long: here.filter(is_long).collect() };
            let (percentiles, got) = Durations::new(group, gaps).rank(percent, sorted.iter().sum());
            for (permille, got) in PERMILLE.into_iter().zip(percentiles.0) {
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
                prop_assert_eq!(got.upper_median, middle[middle.len() / 2]);
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
