//! Adds and subtracts successive stretches: sums, paths, threads, estimates. Functions: [`super::rendered`].

use super::{
    FunctionReport, PathReport, PointsReport, ProcessorTimes, Report, SampledReport, TargetReport,
    ThreadReport,
};
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
            of_fleet: _,
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
            slow_calls: _,
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
        let processor = (self.target.processor.into_iter().chain(target.processor))
            .reduce(ProcessorTimes::plus);
        self.target = TargetReport { processor, ..target.clone() };
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
            target: TargetReport {
                processor: self
                    .target
                    .processor
                    .map(|all| all.since(earlier.target.processor.unwrap_or_default())),
                ..self.target.clone()
            },
            part: self.part.clone(),
            start_ns: earlier.end_ns,
            end_ns: self.end_ns,
            duration_ns,
            tracked_ns,
            tracked_percent: tracked_ns.map(|tracked| tracked.percent_of(duration_ns)),
            approximate: self.approximate,
            counted: self.counted,
            of_fleet: false,
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
            slow_calls: Vec::new(),
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
        Self {
            p50_ns: None,
            p90_ns: None,
            p99_ns: None,
            max_ns: None,
            latencies: None,
            ..self.clone()
        }
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
            latencies: _,
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
#[path = "stretches_tests.rs"]
mod tests;
