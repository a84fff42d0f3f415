//! Adds and subtracts rows of successive stretches: those of paths, of threads, and estimates.
//! [`super::rendered`] does so for functions.

use super::render::rows::percent;
use super::{FunctionReport, PathReport, SampledReport, ThreadReport};
use crate::units::Nanos;

impl PathReport {
    /// Returns the row without numbers that cannot be combined over stretches.
    #[must_use]
    pub fn sums(&self) -> Self {
        Self { p50_ns: None, p90_ns: None, p99_ns: None, max_ns: None, ..self.clone() }
    }

    /// Adds the following stretch. A call that is open at the end of this one counts in the later
    /// one.
    pub fn add(&mut self, later: &Self) {
        self.close();
        self.calls = self.calls.saturating_add(later.calls);
        self.open = later.open;
        self.total_ns = self.total_ns.saturating_add(later.total_ns);
        self.self_ns = self.self_ns.saturating_add(later.self_ns);
        self.max_ns = self.max_ns.max(later.max_ns);
    }

    /// Leaves open calls to the following stretch.
    pub fn close(&mut self) {
        self.calls = self.calls.saturating_sub(self.open);
        self.open = 0;
    }

    /// Removes an earlier stretch with which this one begins. Calls that were open at its end stay.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(earlier.calls.saturating_sub(earlier.open)),
            total_ns: self.total_ns.since(earlier.total_ns),
            self_ns: self.self_ns.since(earlier.self_ns),
            ..self.sums()
        }
    }
}

impl ThreadReport {
    /// Adds the following stretch.
    pub fn add(&mut self, later: &Self) {
        self.calls = self.calls.saturating_add(later.calls);
        self.last_ns = self.last_ns.max(later.last_ns);
        self.name = later.name.clone();
    }

    /// Removes an earlier stretch with which this one begins. Returns `None` if no calls are left.
    pub fn since(&self, earlier: &Self) -> Option<Self> {
        let calls = self.calls.saturating_sub(earlier.calls);
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
            armed_percent: percent(armed_ns, both),
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
            armed_percent: percent(armed_ns, seen.stretch_ns),
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

    /// Returns the observed row of a thread in a period; `None` if no call ended.
    fn thread_row(calls: &[Call], from: u64, to: u64) -> Option<ThreadReport> {
        let calls: Vec<_> = ended(calls, from, to).collect();
        Some(ThreadReport {
            pid: Pid(7),
            tid: Tid(8),
            name: "worker".into(),
            calls: calls.len() as u64,
            first_ns: Nanos(calls.iter().map(|call| call.0).min()?),
            last_ns: Nanos(calls.iter().map(|call| call.1).max()?),
        })
    }

    /// Returns all fields of a row as text for comparison.
    fn all(row: &impl std::fmt::Debug) -> String {
        format!("{row:?}")
    }

    /// Makes the calls successive, as on one thread.
    fn in_turn(calls: Vec<Call>) -> Vec<Call> {
        let mut now = 0;
        let turn = calls.into_iter().map(|(entry, exit)| {
            let begin = now + entry / 20;
            now = begin + (exit - entry) / 10 + 1;
            (begin, now)
        });
        turn.collect()
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

        #[test]
        fn threads_of_any_split_add_up_to_the_whole(calls in calls(), cuts in cuts()) {
            let calls = in_turn(calls);
            let rows = cuts.windows(2).filter_map(|cut| thread_row(&calls, cut[0], cut[1]));
            let sum = rows.reduce(|mut sum, row| {
                sum.add(&row);
                sum
            });
            prop_assert_eq!(all(&sum), all(&thread_row(&calls, 0, END)));
        }

        #[test]
        fn the_rest_of_a_thread_is_the_whole_without_its_begin(calls in calls(), cut in 1..END) {
            let calls = in_turn(calls);
            let rows = (thread_row(&calls, 0, END), thread_row(&calls, 0, cut));
            let (Some(whole), Some(begin)) = rows else { return Ok(()) };
            let (rest, seen) = (whole.since(&begin), thread_row(&calls, cut, END));
            let counts = |row: &ThreadReport| (row.calls, row.last_ns);
            prop_assert_eq!(rest.as_ref().map(counts), seen.as_ref().map(counts));
            // The rest is only known to begin after the last call seen before.
            if let Some((rest, seen)) = rest.zip(seen) {
                prop_assert!(rest.first_ns == begin.last_ns && rest.first_ns <= seen.first_ns);
            }
        }
    }

    #[test]
    fn since_undoes_add() {
        let path = |[calls, open, total, own]: [u64; 4]| PathReport {
            path: vec!["f".into()],
            parent: None,
            function: 0,
            calls,
            open,
            total_ns: Nanos(total),
            self_ns: Nanos(own),
            p50_ns: None,
            p90_ns: None,
            p99_ns: None,
            max_ns: None,
            histogram: None,
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

        let thread = |calls, first, last| ThreadReport {
            pid: Pid(7),
            tid: Tid(8),
            name: "worker".into(),
            calls,
            first_ns: Nanos(first),
            last_ns: Nanos(last),
        };
        let (earlier, later) = (thread(3, 10, 20), thread(4, 25, 30));
        let mut both = earlier.clone();
        both.add(&later);
        assert_eq!((both.calls, both.first_ns, both.last_ns), (7, Nanos(10), Nanos(30)));
        assert_eq!(both.since(&earlier).map(|left| left.calls), Some(4));
        assert!(both.since(&both).is_none());
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
