//! The CPU time of the target, with which the cost of the probes is compared.

use crate::{
    bpf::CpuClock,
    session::budget::evidence::{self, Used},
    target::process::{Process, cpu_times::CpuTimes},
};
use ctrace_core::units::{Nanos, Pid};
use std::cell::Cell;

/// The processes whose times by kind are read, if more are followed: each look takes a read of each.
const MOST_READ: usize = 64;

pub(super) struct TargetClock {
    pid: Pid,
    /// The CPU time of its children counts, too.
    follows: bool,
    /// Counters of the process and its children, while those are followed.
    pub(super) counters: Option<CpuClock>,
    /// The times by kind when the probes were in place.
    at_start: CpuTimes,
    /// What was last seen to be used since then: a process that is gone tells nothing more.
    used: Cell<Option<Used>>,
}

impl TargetClock {
    pub(super) fn new(pid: Pid, follows: bool) -> Self {
        Self { pid, follows, counters: None, at_start: CpuTimes::default(), used: Cell::new(None) }
    }

    pub(super) fn follows(&self) -> bool {
        self.follows
    }

    /// Returns the CPU time of the target process alone.
    pub(super) fn own_time(&self) -> Option<Nanos> {
        Process::cpu_time(self.pid.0)
    }

    /// Returns the CPU time of all processes whose hits are counted.
    pub(super) fn time(&self) -> Option<Nanos> {
        match &self.counters {
            Some(counters) => counters.read().ok(),
            None if self.follows => None,
            None => self.own_time(),
        }
    }

    /// Begins to count the times by kind, of these processes.
    pub(super) fn begin(&mut self, readable: &[Pid]) {
        self.at_start = self.times(readable).unwrap_or_default();
    }

    /// Returns the times by kind since the start.
    pub(super) fn used(&self, readable: &[Pid]) -> Option<Used> {
        if let Some(now) = self.times(readable) {
            let CpuTimes { user, system } = now.since(self.at_start);
            let habit = evidence::habit(self.at_start);
            self.used.set(Some(self.in_all(Used { user, system, habit })));
        }
        self.used.get()
    }

    /// Returns times by kind that add up to what the counters have. They see processes whose times
    /// nobody can read any more.
    fn in_all(&self, used: Used) -> Used {
        let seen = used.user.saturating_add(used.system);
        let all = self.counters.as_ref().and_then(|counters| counters.read().ok());
        let Some(all) = all.filter(|_| self.follows && seen > Nanos::ZERO) else { return used };
        let part = |time: Nanos| Nanos((time.0 as f64 * all.0 as f64 / seen.0 as f64) as u64);
        Used { user: part(used.user), system: part(used.system), ..used }
    }

    fn times(&self, readable: &[Pid]) -> Option<CpuTimes> {
        let read = |pid: &Pid| {
            let [own, of_children] = Process::cpu_times(pid.0)?;
            Some(if self.follows { own.plus(of_children) } else { own })
        };
        readable.iter().take(MOST_READ).filter_map(read).reduce(CpuTimes::plus)
    }
}
