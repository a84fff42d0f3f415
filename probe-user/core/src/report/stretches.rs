//! Adds and subtracts successive stretches: sums, paths, threads, estimates. Functions: [`super::rendered`].

use super::{FunctionReport, PathReport, PointsReport, Report, SampledReport, ThreadReport};
use crate::stats::CallCount;
use crate::units::Nanos;

impl Report {
    fn on_other_paths(&self) -> CallCount {
        CallCount { calls: self.paths_other_calls, open: self.paths_other_open }
    }

    /// Adds the sums of the stretch that follows, and takes over what is of its end. Rows stay, as
    /// their places may differ, and so does what a single stretch tells.
    pub fn add_sums(&mut self, later: &Self) {
        let Self {
            schema: _,
            target,
            part: _,
            start_ns: _,
            end_ns,
            duration_ns: _,
            tracked_ns,
            tracked_percent: _,
            approximate,
            counted,
            center_cut_percent: _,
            filtered_calls,
            loss,
            functions: _,
            paths: _,
            paths_other_calls: _,
            paths_other_open: _,
            threads: _,
            notes,
            histograms: _,
            slowest_calls: _,
            points: _,
            timeline: _,
            frames: _,
            values: _,
            wakers: _,
            plots: _,
            locks: _,
            trend: _,
            ctrack: _,
        } = later;
        self.target.clone_from(target);
        self.end_ns = *end_ns;
        self.duration_ns = end_ns.since(self.start_ns);
        let tracked = self.tracked_ns.zip(*tracked_ns);
        self.tracked_ns = tracked.map(|(sum, more)| sum.saturating_add(more));
        self.tracked_percent = self.tracked_ns.map(|sum| sum.percent_of(self.duration_ns));
        self.approximate |= approximate;
        self.counted |= counted;
        self.filtered_calls = self.filtered_calls.saturating_add(*filtered_calls);
        self.loss.add_later(loss);
        let others = self.on_other_paths().add(later.on_other_paths());
        (self.paths_other_calls, self.paths_other_open) = (others.calls, others.open);
        self.notes.clone_from(notes);
    }

    /// Takes away the sums of an earlier stretch with which this one begins. Rows are left out, and so
    /// is what a single stretch tells.
    #[must_use]
    pub fn sums_since(&self, earlier: &Self) -> Self {
        let duration_ns = self.end_ns.since(earlier.end_ns);
        let tracked = self.tracked_ns.zip(earlier.tracked_ns);
        let tracked_ns = tracked.map(|(sum, before)| sum.since(before));
        let others = self.on_other_paths().since(earlier.on_other_paths());
        Self {
            schema: self.schema,
            target: self.target.clone(),
            part: self.part.clone(),
            start_ns: earlier.end_ns,
            end_ns: self.end_ns,
            duration_ns,
            tracked_ns,
            tracked_percent: tracked_ns.map(|tracked| tracked.percent_of(duration_ns)),
            approximate: self.approximate,
            counted: self.counted,
            center_cut_percent: self.center_cut_percent,
            filtered_calls: self.filtered_calls.saturating_sub(earlier.filtered_calls),
            loss: self.loss.since(&earlier.loss),
            functions: Vec::new(),
            paths: Vec::new(),
            paths_other_calls: others.calls,
            paths_other_open: others.open,
            threads: Vec::new(),
            notes: self.notes.clone(),
            histograms: None,
            slowest_calls: None,
            points: PointsReport::default(),
            timeline: None,
            frames: None,
            values: Vec::new(),
            wakers: None,
            plots: Vec::new(),
            locks: None,
            trend: None,
            ctrack: None,
        }
    }
}

impl PathReport {
    fn count(&self) -> CallCount {
        CallCount { calls: self.calls, open: self.open }
    }

    fn set_count(&mut self, count: CallCount) {
        (self.calls, self.open) = (count.calls, count.open);
    }

    /// Returns the row without numbers that cannot be combined over stretches.
    #[must_use]
    pub fn sums(&self) -> Self {
        Self { p50_ns: None, p90_ns: None, p99_ns: None, max_ns: None, ..self.clone() }
    }

    /// Adds the following stretch. A call that is open at the end of this one counts in the later
    /// one.
    pub fn add(&mut self, later: &Self) {
        let Self {
            path: _,
            parent: _,
            function: _,
            calls: _,
            open: _,
            total_ns,
            self_ns,
            p50_ns: _,
            p90_ns: _,
            p99_ns: _,
            max_ns,
            histogram: _,
        } = later;
        self.set_count(self.count().add(later.count()));
        self.total_ns = self.total_ns.saturating_add(*total_ns);
        self.self_ns = self.self_ns.saturating_add(*self_ns);
        self.max_ns = self.max_ns.max(*max_ns);
    }

    /// Leaves open calls to the following stretch.
    pub fn close(&mut self) {
        self.set_count(self.count().add(CallCount::default()));
    }

    /// Removes an earlier stretch with which this one begins. Calls that were open at its end stay.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            calls: self.count().since(earlier.count()).calls,
            total_ns: self.total_ns.since(earlier.total_ns),
            self_ns: self.self_ns.since(earlier.self_ns),
            ..self.sums()
        }
    }
}

impl ThreadReport {
    fn count(&self) -> CallCount {
        CallCount { calls: self.calls, open: self.open }
    }

    fn set_count(&mut self, count: CallCount) {
        (self.calls, self.open) = (count.calls, count.open);
    }

    /// Adds other calls of the same thread and the same time.
    #[must_use]
    pub(crate) fn with_beside(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            open: self.open.saturating_add(other.open),
            first_ns: self.first_ns.min(other.first_ns),
            last_ns: self.last_ns.max(other.last_ns),
            ..self
        }
    }

    /// Adds the following stretch. A call that is open at the end of this one counts in the later
    /// one.
    pub fn add(&mut self, later: &Self) {
        let Self { pid: _, tid: _, name, calls: _, open: _, first_ns, last_ns } = later;
        self.set_count(self.count().add(later.count()));
        self.first_ns = self.first_ns.min(*first_ns);
        self.last_ns = self.last_ns.max(*last_ns);
        self.name.clone_from(name);
    }

    /// Leaves open calls to the following stretch.
    pub fn close(&mut self) {
        self.set_count(self.count().add(CallCount::default()));
    }

    /// Takes away an earlier stretch with which this one begins; nothing if no calls are left. Calls
    /// that were open at its end are calls of what is left, too.
    pub fn since(&self, earlier: &Self) -> Option<Self> {
        let calls = self.count().since(earlier.count()).calls;
        let first_ns = earlier.last_ns.max(self.first_ns);
        (calls > 0).then(|| Self { calls, first_ns, ..self.clone() })
    }
}

impl FunctionReport {
    /// Returns its numbers over the whole time. If it was always armed, these are the observed
    /// ones.
    pub fn sampled_over(&self, stretch: Nanos) -> SampledReport {
        self.sampled.unwrap_or(SampledReport {
            armed_ns: stretch,
            armed_percent: 100.0,
            windows: 0,
            calls: Some(self.calls),
            calls_error: Some(0),
            total_ns: Some(self.total_ns),
            active_ns: Some(self.active_ns),
        })
    }
}

impl SampledReport {
    /// Adds the following stretch; `both` is the length of the two together. Estimates add up;
    /// their errors add up as independent ones do.
    pub fn add(&mut self, later: &Self, both: Nanos) {
        let sum = |a: Option<Nanos>, b: Option<Nanos>| Some(a?.saturating_add(b?));
        let armed_ns = self.armed_ns.saturating_add(later.armed_ns);
        *self = Self {
            armed_ns,
            armed_percent: armed_ns.percent_of(both),
            windows: self.windows.saturating_add(later.windows),
            calls: self.calls.zip(later.calls).map(|(a, b)| a.saturating_add(b)),
            calls_error: self
                .calls_error
                .zip(later.calls_error)
                .map(|(a, b)| (a as f64).hypot(b as f64) as u64),
            total_ns: sum(self.total_ns, later.total_ns),
            active_ns: sum(self.active_ns, later.active_ns),
        };
    }

    /// Removes an earlier stretch with which this one begins. `seen` is the observed row of the
    /// rest and thus a lower bound. Nothing is known of a stretch in which the function was not
    /// armed.
    #[must_use]
    pub fn since(&self, earlier: &Self, seen: &FunctionReport) -> Self {
        let armed_ns = self.armed_ns.since(earlier.armed_ns);
        let windows = self.windows.saturating_sub(earlier.windows);
        let is_known = armed_ns > Nanos::ZERO;
        let grown = |earlier: Option<Nanos>, later: Option<Nanos>, seen: Nanos| {
            Some(later?.since(earlier?).max(seen)).filter(|_| is_known)
        };
        let calls = self.calls.zip(earlier.calls).filter(|_| is_known);
        let calls = calls.map(|(later, earlier)| later.saturating_sub(earlier).max(seen.calls));
        // Fewer windows mean a larger error. Over all stretches the errors combine to that of the
        // whole.
        let calls_error = calls.filter(|_| windows > 0).and_then(|calls| {
            let relative = self.calls_error? as f64 / self.calls?.max(1) as f64;
            Some((calls as f64 * relative * (self.windows as f64 / windows as f64).sqrt()) as u64)
        });
        Self {
            armed_ns,
            armed_percent: armed_ns.percent_of(seen.stretch_ns),
            windows,
            calls,
            calls_error,
            total_ns: grown(earlier.total_ns, self.total_ns, seen.total_ns),
            active_ns: grown(earlier.active_ns, self.active_ns, seen.active_ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::LossReport;
    use crate::report::rendered::tests::row;
    use crate::stats::Summary;
    use crate::units::{Pid, Tid};
    use proptest::prelude::*;

    /// The end of the trace.
    const END: u64 = 1_000;

    /// A call's entry and exit. Some calls last longer than the trace.
    type Call = (u64, u64);

    fn calls() -> impl Strategy<Value = Vec<Call>> {
        let call = (0..END, 1u64..400).prop_map(|(entry, length)| (entry, entry + length));
        prop::collection::vec(call, 0..30)
    }

    /// Returns times at which a trace is cut, including its start and end.
    fn cuts() -> impl Strategy<Value = Vec<u64>> {
        prop::collection::vec(1..END, 0..6).prop_map(|mut cuts| {
            cuts.extend([0, END]);
            cuts.sort_unstable();
            cuts
        })
    }

    fn ended(calls: &[Call], from: u64, to: u64) -> impl Iterator<Item = &Call> {
        calls.iter().filter(move |call| call.1 > from && call.1 <= to)
    }

    /// Returns the observed row of a path in a period.
    fn path_row(calls: &[Call], from: u64, to: u64) -> PathReport {
        let open = calls.iter().filter(|call| call.0 <= to && to < call.1).count() as u64;
        let lengths = || ended(calls, from, to).map(|call| call.1 - call.0);
        PathReport {
            path: vec!["f".into()],
            parent: None,
            function: 0,
            calls: lengths().count() as u64 + open,
            open,
            total_ns: Nanos(lengths().sum()),
            self_ns: Nanos(lengths().map(|length| length / 3).sum()),
            p50_ns: None,
            p90_ns: None,
            p99_ns: None,
            max_ns: lengths().max().map(Nanos),
            histogram: None,
        }
    }

    /// All that a row says, to compare it.
    fn all(row: &impl std::fmt::Debug) -> String {
        format!("{row:?}")
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn paths_of_any_split_add_up_to_the_whole(calls in calls(), cuts in cuts()) {
            let mut rows = cuts.windows(2).map(|cut| path_row(&calls, cut[0], cut[1]));
            let mut sum = rows.next().expect("a trace has a begin and an end");
            rows.for_each(|row| sum.add(&row));
            prop_assert_eq!(all(&sum), all(&path_row(&calls, 0, END)));
        }

        #[test]
        fn the_rest_of_a_path_is_the_whole_without_its_begin(calls in calls(), cut in 1..END) {
            let rest = path_row(&calls, 0, END).since(&path_row(&calls, 0, cut));
            prop_assert_eq!(all(&rest), all(&path_row(&calls, cut, END).sums()));
        }
    }

    fn loss() -> impl Strategy<Value = LossReport> {
        prop::array::uniform9(0u64..1 << 40).prop_map(|counts| {
            let [events, late, calls_untimed, calls_open, calls_headless, ..] = counts;
            let [.., decode_errors, unreadable_calls, unreadable_bytes, payloads] = counts;
            LossReport {
                events,
                late,
                calls_untimed,
                calls_open,
                calls_headless,
                decode_errors,
                unreadable_calls,
                unreadable_bytes,
                payloads,
            }
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_rest_of_a_loss_is_what_was_added(earlier in loss(), later in loss()) {
            let mut both = earlier;
            both.add_later(&later);
            prop_assert_eq!(both.since(&earlier), later);
            prop_assert_eq!(both.payloads, earlier.payloads + later.payloads);
            prop_assert_eq!(both.calls_open, later.calls_open);
            // Of two files at the same time, both have open calls.
            let mut beside = earlier;
            beside.add(&later);
            prop_assert_eq!(beside.calls_open, earlier.calls_open + later.calls_open);
        }
    }

    #[test]
    fn since_undoes_add() {
        let path = |[calls, open, total, own]: [u64; 4]| PathReport {
            path: vec!["f".into()],
            calls,
            open,
            total_ns: Nanos(total),
            self_ns: Nanos(own),
            ..PathReport::default()
        };
        let (earlier, later) = (path([5, 2, 70, 30]), path([4, 1, 9, 8]));
        let mut both = earlier.clone();
        both.add(&later);
        assert_eq!(
            (both.calls, both.open, both.total_ns, both.self_ns),
            (7, 1, Nanos(79), Nanos(38))
        );
        let left = both.since(&earlier);
        assert_eq!(
            (left.calls, left.open, left.total_ns, left.self_ns),
            (4, 1, Nanos(9), Nanos(8))
        );

        let thread = |calls, open, first, last| ThreadReport {
            pid: Pid(7),
            tid: Tid(8),
            name: "worker".into(),
            calls,
            open,
            first_ns: Nanos(first),
            last_ns: Nanos(last),
        };
        let (earlier, later) = (thread(5, 2, 10, 20), thread(4, 1, 25, 30));
        let mut both = earlier.clone();
        both.add(&later);
        assert_eq!((both.calls, both.open), (7, 1));
        assert_eq!((both.first_ns, both.last_ns), (Nanos(10), Nanos(30)));
        let left = both.since(&earlier).expect("calls are left");
        assert_eq!((left.calls, left.open, left.first_ns), (4, 1, Nanos(20)));
        // It stays in its call, and is gone once that has ended.
        assert_eq!(both.since(&both).map(|left| (left.calls, left.open)), Some((1, 1)));
        let ended = ThreadReport { open: 0, ..both };
        assert!(ended.since(&ended).is_none());
    }

    /// The first stretch is armed throughout, the second for a fifth of the time.
    #[test]
    fn estimates_of_a_row_add_up_and_are_taken_apart() {
        let first = row(Summary::of(&[3, 4].map(Nanos)), Nanos(1_000));
        let mut second = row(Summary::of(&[6].map(Nanos)), Nanos(500));
        let estimate = SampledReport {
            armed_ns: Nanos(100),
            armed_percent: 20.0,
            windows: 2,
            calls: Some(5),
            calls_error: Some(1),
            total_ns: Some(Nanos(30)),
            active_ns: None,
        };
        second.sampled = Some(estimate);
        let mut both = first.clone();
        both.add(&second, Nanos(1_500));
        let sum = both.sampled.expect("an estimate");
        assert_eq!((sum.armed_ns, sum.windows, sum.calls), (Nanos(1_100), 2, Some(7)));
        assert_eq!((sum.total_ns, sum.active_ns), (Some(Nanos(37)), None));
        let left = sum.since(&first.sampled_over(Nanos(1_000)), &second);
        assert_eq!((left.armed_ns, left.armed_percent), (Nanos(100), 20.0));
        assert_eq!((left.calls, left.total_ns, left.active_ns), (Some(5), Some(Nanos(30)), None));
    }
}
