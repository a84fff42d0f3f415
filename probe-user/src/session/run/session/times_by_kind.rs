//! The CPU time of the target's processes by kind, since the probes are in place. Times are compared of
//! one process each, as processes come and go.

use crate::target::process::{Process, cpu_times::CpuTimes, since_boot};
use ctrace_core::units::{Nanos, Pid};
use std::collections::BTreeMap;

/// The processes that are read, if there are more: each look takes a read of each.
const MOST_READ: usize = 64;

/// A process that no later one with its pid is taken for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Whose {
    pid: Pid,
    started: Nanos,
}

/// The times of a process when it was first and last read.
#[derive(Clone, Copy)]
struct Times {
    first: CpuTimes,
    last: CpuTimes,
}

impl Times {
    fn used(&self) -> CpuTimes {
        self.last.since(self.first)
    }
}

#[derive(Default)]
pub(super) struct TimesByKind {
    /// The time since boot at the start.
    begun: Nanos,
    read: BTreeMap<Whose, Times>,
    of_ended: CpuTimes,
}

impl TimesByKind {
    /// Begins to count the times of these processes.
    pub(super) fn begin(processes: &[Pid]) -> Self {
        let begun = since_boot();
        let mut times = Self { begun, ..Self::default() };
        times.look(processes, Process::cpu_times);
        times
    }

    /// Reads the times, and takes in processes that are new.
    pub(super) fn update(&mut self, processes: &[Pid]) {
        self.look(processes, Process::cpu_times);
    }

    /// Returns the time used so far. What a process used between its last look and its end is missing.
    pub(super) fn used(&self) -> CpuTimes {
        self.read.values().map(Times::used).fold(self.of_ended, CpuTimes::plus)
    }

    /// Returns whether a process could be read at the last look.
    pub(super) fn has_one(&self) -> bool {
        !self.read.is_empty()
    }

    fn look(&mut self, processes: &[Pid], read: impl Fn(u32) -> Option<(Nanos, CpuTimes)>) {
        let of_ended = &mut self.of_ended;
        self.read.retain(|whose, times| {
            let now = read(whose.pid.0).filter(|(started, _)| *started == whose.started);
            match now {
                Some((_, now)) => times.last = now,
                None => *of_ended = of_ended.plus(times.used()),
            }
            now.is_some()
        });
        for pid in processes {
            if self.read.len() >= MOST_READ {
                return;
            }
            let Some((started, last)) = read(pid.0) else { continue };
            // All time of a process that began later counts.
            let first = if started > self.begun { CpuTimes::default() } else { last };
            self.read.entry(Whose { pid: *pid, started }).or_insert(Times { first, last });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    #[test]
    fn times_are_compared_of_one_process_each() {
        let mut times = TimesByKind { begun: MS(500), ..TimesByKind::default() };
        let mut look = |processes: &[(u32, u64, u64, u64)]| {
            let pids: Vec<_> = processes.iter().map(|process| Pid(process.0)).collect();
            times.look(&pids, |pid| {
                let (_, started, user, system) = processes.iter().find(|it| it.0 == pid)?;
                Some((MS(*started), CpuTimes { user: MS(*user), system: MS(*system) }))
            });
            let CpuTimes { user, system } = times.used();
            (user.0 / 1_000_000, system.0 / 1_000_000)
        };
        assert_eq!(look(&[(7, 100, 9_000, 4_000), (8, 200, 70, 30)]), (0, 0));
        assert_eq!(look(&[(7, 100, 9_010, 4_001), (8, 200, 73, 35)]), (13, 6));
        // One ends, one begins, and one that ran before is seen late.
        assert_eq!(look(&[(8, 200, 74, 37), (9, 600, 100, 200), (6, 300, 900, 800)]), (114, 208));
        // Another has the pid of one that has ended.
        assert_eq!(look(&[(8, 700, 1_000, 2_000), (9, 600, 101, 200)]), (1_115, 2_208));
    }

    #[test]
    fn the_same_processes_are_read_of_many() {
        let mut times = TimesByKind { begun: MS(500), ..TimesByKind::default() };
        let mut look = |pids: std::ops::Range<u32>, ms| {
            let pids: Vec<_> = pids.rev().map(Pid).collect();
            let read =
                |pid: u32| Some((MS(100), CpuTimes { user: MS(ms), system: MS(u64::from(pid)) }));
            times.look(&pids, read);
            times.used().user.0 / 1_000_000
        };
        assert_eq!(look(1..101, 5), 0);
        assert_eq!(look(1..161, 7), 2 * 64);
    }
}
