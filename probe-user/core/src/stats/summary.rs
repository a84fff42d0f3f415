//! The exact integer sums of a function over a stretch of time.
//!
//! Means, deviations and shares are rendered from them. Stretches are added and subtracted only
//! here, so no rounded number is ever averaged. Two things are missing: percentiles of single
//! calls, which need the calls, and filtered calls, which are counted for a report as a whole.

use crate::stats::histogram::{Histogram, HistogramCounter};
use crate::stats::tally::Tally;
use crate::units::Nanos;

/// See the module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Calls that ended in the stretch.
    pub tally: Tally,
    /// The number of calls that had not ended at its end.
    pub open: u64,
    /// The number of exits without an entry.
    pub headless: u64,
    /// The time in which any thread was in the function.
    pub active_ns: u64,
    /// The time in which it was the innermost traced function of any thread.
    pub exclusive_ns: u64,
    /// The durations of all timed calls; `None` if they were not counted.
    pub histogram: Option<Histogram>,
}

impl Summary {
    /// Returns the summary of successive timed calls of these durations, without callees.
    pub fn of(durations: &[Nanos]) -> Self {
        let mut tally = Tally::default();
        durations.iter().for_each(|duration| tally.add_timed(duration.0, duration.0));
        let mut histograms = vec![Histogram::default()];
        let all = durations.iter().map(|duration| (0, duration.0));
        HistogramCounter::default().count(&mut histograms, all);
        Self {
            active_ns: tally.timed_ns,
            exclusive_ns: tally.timed_ns,
            tally,
            histogram: histograms.pop(),
            ..Self::default()
        }
    }

    /// Returns the number of ended calls, with or without a known duration.
    pub fn ended(&self) -> u64 {
        self.tally.ended()
    }

    /// Returns the number of calls, including those that have not ended.
    pub fn calls(&self) -> u64 {
        self.ended().saturating_add(self.open)
    }

    /// Adds the following stretch. A call that is open at the end of this stretch belongs to the
    /// next one, so only the open calls of the later one remain.
    pub fn add(&mut self, later: &Self) {
        self.histogram = match (self.histogram.take(), &later.histogram) {
            (Some(mut all), Some(later)) => {
                all.merge(later);
                Some(all)
            }
            (all, None) => all.filter(|_| later.tally.timed == 0),
            (None, later) => later.clone().filter(|_| self.tally.timed == 0),
        };
        self.tally.merge(&later.tally);
        self.open = later.open;
        self.headless = self.headless.saturating_add(later.headless);
        self.active_ns = self.active_ns.saturating_add(later.active_ns);
        self.exclusive_ns = self.exclusive_ns.saturating_add(later.exclusive_ns);
    }

    /// Removes an earlier stretch with which this one begins, and returns the later part.
    ///
    /// All sums, counts, unions and histograms are exact, as long as no sum has saturated. The
    /// shortest and the longest duration are exact only if they lie beyond those of the earlier
    /// stretch. Otherwise they are bounds: no call of the later part was shorter or longer. With a
    /// histogram they are the edges of the outermost buckets, at most 0.2 % away; without one they
    /// are those of the whole.
    pub fn since(&self, earlier: &Self) -> Self {
        let histogram = match (&self.histogram, &earlier.histogram) {
            (Some(all), Some(earlier)) => Some(all.since(earlier)),
            (all, _) => all.clone().filter(|_| earlier.tally.timed == 0),
        };
        let mut tally = self.tally.since(&earlier.tally);
        if let Some((least, most)) = histogram.as_ref().and_then(Histogram::bounds) {
            tally.narrow(&earlier.tally, least, most);
        }
        Self {
            tally,
            open: self.open,
            headless: self.headless.saturating_sub(earlier.headless),
            active_ns: self.active_ns.saturating_sub(earlier.active_ns),
            exclusive_ns: self.exclusive_ns.saturating_sub(earlier.exclusive_ns),
            histogram,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Generates a stretch: its timed and untimed calls, and counts.
    fn stretch() -> impl Strategy<Value = Summary> {
        let duration = prop_oneof![5 => 0u64..3_000, 2 => 1u64 << 20..1 << 21, 1 => 0u64..1 << 45];
        let calls = prop::collection::vec((duration, 0u64..100, prop::bool::ANY), 0..40);
        (calls, 0u64..5, 0u64..5).prop_map(|(calls, open, headless)| {
            let timed = calls.iter().filter(|call| call.2).map(|call| Nanos(call.0));
            let mut summary = Summary::of(&timed.collect::<Vec<_>>());
            let untimed = calls.iter().filter(|call| !call.2);
            untimed.for_each(|call| summary.tally.add_untimed(call.0, call.1));
            (summary.open, summary.headless) = (open, headless);
            summary.exclusive_ns /= 3;
            summary
        })
    }

    fn sum(stretches: &[Summary]) -> Summary {
        stretches.iter().fold(Summary::default(), |mut sum, stretch| {
            sum.add(stretch);
            sum
        })
    }

    /// Returns all fields but the extremes.
    fn exact(summary: &Summary) -> Summary {
        let tally = Tally { min_ns: 0, max_ns: 0, ..summary.tally };
        Summary { tally, ..summary.clone() }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_split_adds_up_to_the_whole(
            stretches in prop::collection::vec(stretch(), 1..8),
            cut in 0usize..8,
        ) {
            let (one, other) = stretches.split_at(cut.min(stretches.len() - 1));
            let whole = sum(&stretches);
            let mut both = sum(one);
            both.add(&sum(other));
            prop_assert_eq!(&both, &whole);
            let ended: u64 = stretches.iter().map(Summary::ended).sum();
            prop_assert_eq!(whole.calls(), ended + stretches[stretches.len() - 1].open);
        }

        #[test]
        fn durations_may_be_split_anywhere(
            durations in prop::collection::vec(0u64..1 << 40, 0..60),
            cut in 0usize..60,
        ) {
            let durations: Vec<_> = durations.into_iter().map(Nanos).collect();
            let (one, other) = durations.split_at(cut.min(durations.len()));
            let mut both = Summary::of(one);
            both.add(&Summary::of(other));
            let whole = Summary::of(&durations);
            prop_assert_eq!(both.tally.mean(), whole.tally.mean());
            prop_assert_eq!(both.tally.spread(), whole.tally.spread());
            prop_assert_eq!(both, whole);
        }

        #[test]
        fn since_undoes_add(earlier in stretch(), later in stretch()) {
            let mut whole = earlier.clone();
            whole.add(&later);
            let since = whole.since(&earlier);
            prop_assert_eq!(exact(&since), exact(&later));
            match (since.tally.min(), later.tally.min(), since.tally.max(), later.tally.max()) {
                (None, None, None, None) => {}
                (Some(least), Some(min), Some(most), Some(max)) => {
                    prop_assert!(least <= min && most >= max);
                    prop_assert!(min - least <= min / 500 && most - max <= max / 500);
                }
                other => prop_assert!(false, "{:?}", other),
            }
        }
    }

    #[test]
    fn extremes_beyond_the_earlier_ones_are_exact() {
        let earlier = Summary::of(&[Nanos(10_000), Nanos(20_000)]);
        let mut whole = earlier.clone();
        whole.add(&Summary::of(&[Nanos(9_001), Nanos(30_003)]));
        let since = whole.since(&earlier).tally;
        assert_eq!((since.min(), since.max()), (Some(9_001), Some(30_003)));
        // Between the extremes only a bucket is known, or only the whole without a histogram.
        let (mut inside, later) = (earlier.clone(), Summary::of(&[Nanos(15_003)]));
        inside.add(&later);
        let since = inside.since(&earlier).tally;
        assert_eq!((since.min(), since.max()), (Some(14_992), Some(15_007)));
        inside.histogram = None;
        let since = inside.since(&earlier).tally;
        assert_eq!((since.min(), since.max()), (Some(10_000), Some(20_000)));
    }

    #[test]
    fn a_histogram_is_of_all_calls_or_of_none() {
        let counted = Summary::of(&[Nanos(5)]);
        let uncounted = Summary { histogram: None, ..counted.clone() };
        assert!(sum(&[counted.clone(), uncounted.clone()]).histogram.is_none());
        assert!(sum(&[uncounted.clone(), counted.clone()]).histogram.is_none());
        assert_eq!(sum(&[counted.clone(), Summary::default()]).histogram, counted.histogram);
        assert_eq!(counted.since(&uncounted).histogram, None);
    }
}
