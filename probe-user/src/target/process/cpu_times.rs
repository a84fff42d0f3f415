//! The CPU time of a process by kind, as the kernel charges the work of a probe as system time; and of
//! a thread, beside the time that it waits for a CPU.

use super::{parse_stat, proc_path};
use ctrace_core::units::{Nanos, Pid, Tid};
use std::fs;

/// CPU time, by where it was used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CpuTimes {
    pub user: Nanos,
    pub system: Nanos,
}

impl CpuTimes {
    /// Returns both kinds together.
    pub(crate) fn total(self) -> Nanos {
        self.user.saturating_add(self.system)
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        let user = self.user.saturating_add(other.user);
        Self { user, system: self.system.saturating_add(other.system) }
    }

    pub(crate) fn since(self, earlier: Self) -> Self {
        Self { user: self.user.since(earlier.user), system: self.system.since(earlier.system) }
    }
}

/// How long a thread had a processor, and how long it was ready and waited for one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QueueTimes {
    pub used: Nanos,
    pub waited: Nanos,
}

impl QueueTimes {
    pub(crate) fn plus(self, other: Self) -> Self {
        let used = self.used.saturating_add(other.used);
        Self { used, waited: self.waited.saturating_add(other.waited) }
    }

    pub(crate) fn since(self, earlier: Self) -> Self {
        Self { used: self.used.since(earlier.used), waited: self.waited.since(earlier.waited) }
    }

    /// Returns those of a thread that still exists, if the kernel counts them.
    pub(crate) fn of(pid: Pid, tid: Tid) -> Option<Self> {
        let text =
            fs::read_to_string(proc_path(pid.0, &format!("task/{}/schedstat", tid.0))).ok()?;
        let mut numbers = text.split(' ').map_while(|word| word.parse().ok().map(Nanos));
        Some(Self { used: numbers.next()?, waited: numbers.next()? })
    }
}

/// Returns when a thread began, as the time since boot.
pub(crate) fn started(pid: Pid, tid: Tid) -> Option<Nanos> {
    let stat = fs::read(proc_path(pid.0, &format!("task/{}/stat", tid.0))).ok()?;
    parse_stat(&stat).map(|stat| stat.started())
}

/// Returns the threads of a process.
pub(crate) fn threads_of(pid: Pid) -> impl Iterator<Item = Tid> {
    let tasks = fs::read_dir(proc_path(pid.0, "task")).into_iter().flatten();
    tasks.filter_map(|task| task.ok()?.file_name().to_str()?.parse().ok().map(Tid))
}
