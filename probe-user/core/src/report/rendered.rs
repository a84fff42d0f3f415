//! Renders the row of a function from its [`Summary`]. Rows of several stretches are added and
//! subtracted by their summaries.

use super::{
    CenterReport, DurationReport, FunctionReport, ProbeTimes, RestoredTimes, SlowTailReport,
    SplitReport, TailReport,
};
use crate::function::FunctionInfo;
use crate::stats::{Summary, Tally};
use crate::units::Nanos;
use crate::waits::Waits;

impl FunctionReport {
    /// Makes the row of a function without numbers.
    pub fn new(info: &FunctionInfo) -> Self {
        Self {
            name: info.name.clone(),
            short_name: info.short_name.clone(),
            full_name: info.full_name.clone(),
            aliases: info.aliases.clone(),
            object: info.object.clone(),
            file: info.file.clone(),
            line: info.line,
            kind: info.kind,
            group: info.group.clone(),
            calls: 0,
            timed: 0,
            untimed: 0,
            open: 0,
            headless: 0,
            threads: 0,
            total_ns: Nanos::ZERO,
            self_ns: Nanos::ZERO,
            active_ns: Nanos::ZERO,
            active_exclusive_ns: Nanos::ZERO,
            active_exclusive_percent: 0.0,
            durations: DurationReport::default(),
            fastest: TailReport::default(),
            center: CenterReport::default(),
            slowest: SlowTailReport::default(),
            sampled: None,
            until_tail_call: info.ends_at_tail_call(),
            callees_left_out: 0,
            restored: RestoredTimes::default(),
            idle_ns: Nanos::ZERO,
            folded: false,
            counted: false,
            joined_by_order: info.by_order.is_some(),
            is_async: info.is_async,
            condition: info.condition.clone(),
            inlined: info.inlined.clone(),
            wait: info.wait,
            point: info.point,
            colour: info.colour,
            split: SplitReport::default(),
            probes: info.probe.map(ProbeTimes::of),
            stretch_ns: Nanos::ZERO,
            summary: None,
        }
    }

    /// Fills in the numbers of a summary of a stretch. Threads, percentiles, the center with its
    /// tails and estimates do not come from sums and stay as they are.
    pub fn render(&mut self, summary: Summary, stretch: Nanos) {
        let tally = &summary.tally;
        let spread = tally.spread();
        self.calls = summary.calls();
        self.timed = tally.timed;
        self.untimed = tally.untimed;
        self.open = summary.open;
        self.headless = summary.headless;
        self.total_ns = Nanos(tally.total_ns());
        self.self_ns = Nanos(tally.self_ns);
        self.active_ns = Nanos(summary.active_ns);
        self.active_exclusive_ns = Nanos(summary.exclusive_ns);
        self.durations = DurationReport {
            min_ns: tally.min().map(Nanos),
            mean_ns: tally.mean().map(Nanos),
            max_ns: tally.max().map(Nanos),
            sd_ns: spread.map(|(sd, _)| Nanos(sd)),
            cv: spread.and_then(|(_, cv)| cv),
            ..self.durations
        };
        if self.split.is_known() {
            self.split = SplitReport::of(tally);
        }
        self.summary = Some(summary);
        self.set_stretch(stretch);
    }

    /// Sets the length of the report's stretch, and recomputes shares of it.
    pub fn set_stretch(&mut self, stretch: Nanos) {
        self.stretch_ns = stretch;
        self.active_exclusive_percent = self.active_exclusive_ns.percent_of(stretch);
    }

    /// Returns the number of ended calls, with or without a known duration.
    pub fn ended(&self) -> u64 {
        self.calls.saturating_sub(self.open)
    }

    /// Adds the row of the following stretch; `both` is the length of the two together.
    pub fn add(&mut self, later: &Self, both: Nanos) {
        let mut summary = self.summary();
        summary.add(&later.summary());
        if self.sampled.is_some() || later.sampled.is_some() {
            let mut sampled = self.sampled_over(both.since(later.stretch_ns));
            sampled.add(&later.sampled_over(later.stretch_ns), both);
            self.sampled = Some(sampled);
        }
        self.probes = match (self.probes, later.probes) {
            (Some(mut probes), Some(later)) => {
                probes.add(&later);
                Some(probes)
            }
            (one, other) => one.or(other),
        };
        if later.split.is_known() {
            self.split = later.split;
        }
        // The threads' identities are not known, so the true number may be larger.
        self.threads = self.threads.max(later.threads);
        self.callees_left_out = self.callees_left_out.saturating_add(later.callees_left_out);
        self.restored = self.restored.plus(later.restored);
        self.idle_ns = self.idle_ns.saturating_add(later.idle_ns);
        self.render(summary, both);
    }

    /// Returns the source of the row's numbers. For a row that was read from JSON, it is computed
    /// from the rounded mean and deviation.
    pub fn summary(&self) -> Summary {
        self.summary.clone().unwrap_or_else(|| Summary {
            tally: self.recovered(),
            open: self.open,
            headless: self.headless,
            active_ns: self.active_ns.0,
            exclusive_ns: self.active_exclusive_ns.0,
            histogram: None,
        })
    }

    /// Gives a row that was read from JSON the exact sums of the durations of timed calls and of
    /// their squares, which JSON rounds.
    pub fn restore(&mut self, timed_ns: u64, squares: u128) {
        let mut summary = self.summary();
        let untimed_ns = self.total_ns.0.saturating_sub(timed_ns);
        summary.tally = Tally { timed_ns, untimed_ns, squares, ..summary.tally };
        self.summary = Some(summary);
    }

    /// Returns the sums of its calls, as in [`Self::summary`].
    pub fn tally(&self) -> Tally {
        self.summary.as_ref().map_or_else(|| self.recovered(), |summary| summary.tally)
    }

    fn recovered(&self) -> Tally {
        let DurationReport { min_ns, mean_ns, max_ns, sd_ns, .. } = self.durations;
        let [mean, sd, total] =
            [mean_ns, sd_ns, Some(self.total_ns)].map(|ns| u128::from(ns.unwrap_or_default().0));
        let calls = u128::from(self.timed);
        let timed = match self.untimed {
            0 => total,
            _ => total.min(calls * mean),
        };
        let deviations = calls.saturating_mul(sd * sd);
        let squares = (timed * timed).checked_div(calls).map(|of| of.saturating_add(deviations));
        Tally {
            timed: self.timed,
            untimed: self.untimed,
            timed_ns: timed as u64,
            untimed_ns: (total - timed) as u64,
            self_ns: self.self_ns.0,
            waits: Waits {
                runnable: self.split.runnable_ns.unwrap_or_default().0,
                blocked: self.split.blocked_ns.unwrap_or_default().0,
            },
            min_ns: min_ns.map_or(u64::MAX, |ns| ns.0),
            max_ns: max_ns.map_or(0, |ns| ns.0),
            squares: squares.unwrap_or(0),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn row(summary: Summary, stretch: Nanos) -> FunctionReport {
        let mut row = FunctionReport::new(&FunctionInfo::new("f", "app"));
        row.render(summary, stretch);
        row
    }

    #[test]
    fn rows_add_up_by_their_sums() {
        let mut sum = row(Summary::of(&[Nanos(10), Nanos(11)]), Nanos(100));
        assert_eq!((sum.durations.mean_ns, sum.active_exclusive_percent), (Some(Nanos(11)), 21.0));
        sum.add(&row(Summary::of(&[Nanos(9), Nanos(10)]), Nanos(100)), Nanos(200));
        // The rounded means are 11 and 10. The mean of these would round to 11.
        assert_eq!((sum.calls, sum.durations.mean_ns), (4, Some(Nanos(10))));
        sum.add(&row(Summary::of(&[Nanos(1)]), Nanos(100)), Nanos(300));
        let DurationReport { min_ns, mean_ns, max_ns, sd_ns, .. } = sum.durations;
        assert_eq!([min_ns, mean_ns, max_ns, sd_ns], [1, 8, 11, 4].map(|ns| Some(Nanos(ns))));
        assert!((sum.active_exclusive_percent - 41.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn a_row_from_json_tells_its_sums_again() {
        let summary = Summary::of(&[700, 801, 901].map(Nanos));
        let mut told = row(summary.clone(), Nanos(10_000));
        told.durations.set_percentiles(|permille| Some(Nanos(permille)));
        let json = serde_json::to_string(&told).expect("JSON");
        let mut read: FunctionReport = serde_json::from_str(&json).expect("a row");
        assert!(read.summary.is_none());
        // From a version that did not have this number yet.
        let older: FunctionReport =
            serde_json::from_str(&json.replace("p75_ns", "unknown")).expect("a row");
        assert_eq!((older.durations.p75_ns, older.durations.max_ns), (None, Some(Nanos(901))));
        assert_eq!(read.durations.p75_ns, Some(Nanos(750)));
        let rounded = read.summary();
        assert_eq!(rounded.tally.timed_ns, 2_402);
        let again = row(rounded, Nanos(10_000)).durations;
        assert_eq!((again.min_ns, again.max_ns), (told.durations.min_ns, told.durations.max_ns));
        assert_eq!((again.mean_ns, again.sd_ns), (told.durations.mean_ns, told.durations.sd_ns));
        read.restore(summary.tally.timed_ns, summary.tally.squares);
        assert_eq!(read.summary(), Summary { histogram: None, ..summary });
    }
}
