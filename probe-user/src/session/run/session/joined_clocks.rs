//! The CPU time of the processes that have joined. A counter holds the time of one thread and of all
//! that it has started since, so it is kept as long as one of those runs.

use crate::{
    bpf::{self, CpuClock},
    target::process::{Process, threads},
};
use ctrace_core::units::{Nanos, Pid, Tid};
use std::collections::HashMap;

/// Threads that have counters at one time: each costs a file descriptor.
const MOST: usize = 512;

#[derive(Default)]
pub(super) struct JoinedClocks {
    /// By the process that joined.
    families: HashMap<Pid, Family>,
    /// Each process that may run.
    of: HashMap<Pid, Member>,
    threads: usize,
    /// The time of families that have ended.
    ended: Nanos,
    /// Processes with threads whose time is not counted.
    pub(super) unclocked: u64,
}

/// A process whose time is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Member {
    /// The process that joined.
    family: Pid,
    /// A time at which it was there.
    at: Nanos,
}

/// A process that joined, with what it has started since.
struct Family {
    clock: CpuClock,
    /// The time from which on it counts what the process starts.
    begun: Nanos,
    /// The time that the process had used before.
    used: Nanos,
    alive: usize,
}

impl JoinedClocks {
    /// Counts the CPU time of a process and its children from now on. What it has `used` before counts
    /// as well.
    pub(super) fn begin(&mut self, pid: Pid, used: Nanos) {
        // The end of another process with this id may have been lost.
        self.end(pid);
        let threads: Vec<Tid> = threads::ids_of(pid).collect();
        let room = MOST.saturating_sub(self.threads);
        let clock = CpuClock::start(threads.iter().take(room).copied(), true);
        let begun = clock.as_ref().map_or(0, CpuClock::threads);
        if begun == 0 || threads.len() > room {
            self.unclocked += 1;
        }
        if let Ok(clock) = clock
            && begun > 0
        {
            self.threads += begun;
            let now = bpf::now();
            self.of.insert(pid, Member { family: pid, at: now });
            self.families.insert(pid, Family { clock, begun: now, used, alive: 1 });
        }
    }

    /// Takes note of a process that began at that time.
    pub(super) fn fork(&mut self, parent: Pid, child: Pid, at: Nanos) {
        if self.of.get(&child).is_some_and(|known| known.at >= at) {
            // It was told before, or has joined by itself.
            return;
        }
        let Some(Member { family: first, .. }) = self.of.get(&parent).copied() else { return };
        let Some(family) = self.families.get_mut(&first) else { return };
        if at < family.begun {
            // The counter of its parent came too late for it.
            return self.begin(child, Process::cpu_time(child.0).unwrap_or_default());
        }
        family.alive += 1;
        self.end(child);
        self.of.insert(child, Member { family: first, at });
    }

    /// Takes note of the end of a process.
    pub(super) fn end(&mut self, pid: Pid) {
        let Some(Member { family: first, .. }) = self.of.remove(&pid) else { return };
        let Some(family) = self.families.get_mut(&first) else { return };
        family.alive -= 1;
        if family.alive == 0
            && let Some(family) = self.families.remove(&first)
        {
            self.threads -= family.clock.threads();
            self.ended = self.ended.saturating_add(family.time());
        }
    }

    /// Returns the time of all.
    pub(super) fn read(&self) -> Nanos {
        self.families.values().map(Family::time).fold(self.ended, Nanos::saturating_add)
    }
}

impl Family {
    fn time(&self) -> Nanos {
        self.used.saturating_add(self.clock.read().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    #[test]
    fn the_time_of_what_has_ended_stays_without_its_counters() {
        let mut clocks = JoinedClocks::default();
        let script = "read x; i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; read x";
        let mut busy = Command::new("sh");
        busy.args(["-c", script]).stdin(std::process::Stdio::piped());
        let mut busy = busy.spawn().expect("starts");
        let (pid, child) = (Pid(busy.id()), Pid(4_194_304));
        clocks.begin(pid, Nanos::ZERO);
        if clocks.unclocked > 0 {
            busy.kill().expect("ours");
            busy.wait().expect("ours");
            return eprintln!("skipped: no right to count CPU time");
        }
        clocks.fork(pid, child, Nanos::MAX);
        drop(busy.stdin.take());
        busy.wait().expect("ends");
        clocks.end(pid);
        assert_eq!((clocks.threads, clocks.families.len()), (1, 1));
        let used = clocks.read();
        assert!(used > Nanos::from_millis(5), "{used:?}");
        clocks.end(child);
        assert_eq!((clocks.threads, clocks.families.len(), clocks.of.len()), (0, 0, 0));
        assert_eq!(clocks.read(), used);
        // It has ended, and nobody knows its parent.
        clocks.begin(pid, Nanos::ZERO);
        clocks.fork(child, pid, Nanos::MAX);
        assert_eq!((clocks.unclocked, clocks.of.len()), (1, 0));
    }

    /// Its parent's counter holds the time of what was started since, and no more.
    #[test]
    fn a_child_that_was_started_before_has_a_counter_of_its_own() {
        let mut clocks = JoinedClocks::default();
        let sleeper = || Command::new("sleep").arg("100").spawn().expect("starts");
        let mut both = [sleeper(), sleeper()];
        let [parent, child] = [Pid(both[0].id()), Pid(both[1].id())];
        let before = bpf::now();
        clocks.begin(parent, Nanos(7_000_000_000));
        let can_count = clocks.unclocked == 0;
        clocks.fork(parent, child, before);
        let families = clocks.families.len();
        // Told once more, what it had used does not count again.
        let once = clocks.read();
        clocks.families.values_mut().for_each(|family| family.used = Nanos(5));
        clocks.fork(parent, child, before);
        let used = clocks.families.values().map(|family| family.used).collect::<Vec<_>>();
        clocks.families.values_mut().for_each(|family| family.used = Nanos(7_000_000_000));
        let twice = (clocks.ended, clocks.threads, used);
        for sleeper in &mut both {
            sleeper.kill().expect("ours");
            sleeper.wait().expect("ours");
        }
        if can_count {
            assert_eq!((families, clocks.of.get(&child).map(|it| it.family)), (2, Some(child)));
            assert_eq!(twice, (Nanos::ZERO, 2, vec![Nanos(5), Nanos(5)]));
            assert!(once >= Nanos(7_000_000_000), "what it had used counts");
            clocks.end(parent);
            clocks.end(child);
            assert_eq!((clocks.threads, clocks.families.len()), (0, 0));
            assert!(clocks.read() >= Nanos(7_000_000_000));
        }
    }
}
