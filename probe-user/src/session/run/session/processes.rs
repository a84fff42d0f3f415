//! The processes beside the target that ctrace has decided on: each has one standing.
//!
//! | standing | how it begins | how it ends |
//! |---|---|---|
//! | none | it is awaited, or the kernel has admitted it and ctrace has not looked yet | |
//! | followed | it is named, or a followed process or the target has started it | it ends |
//! | joined | it came later, or one that did has started it | it ends, or is turned away |
//! | mistaken, refused | it was admitted and does not stay | it joins after all, or has ended |

use crate::target::process::Process;
use ctrace_core::units::Pid;
use std::collections::HashMap;

/// Processes that are not traced any more are looked through when there are as many.
const MANY: usize = 1 << 10;

/// The decision on a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    /// It is traced from the start, or as the child of one that is.
    Followed,
    /// It is traced, and has come later. What stands against tracing it costs it alone.
    Joined,
    /// The kernel had admitted it, although it is not meant.
    Mistaken,
    /// It is meant, and cannot be traced along with the others.
    Refused,
}

impl Standing {
    pub(super) fn is_traced(self) -> bool {
        matches!(self, Self::Followed | Self::Joined)
    }
}

#[derive(Default)]
pub(super) struct Processes {
    all: HashMap<Pid, Standing>,
    /// The number of those that are not traced.
    away: usize,
    /// Their number after the last look at them.
    seen_away: usize,
}

impl Processes {
    pub(super) fn standing(&self, pid: Pid) -> Option<Standing> {
        self.all.get(&pid).copied()
    }

    pub(super) fn is_traced(&self, pid: Pid) -> bool {
        self.standing(pid).is_some_and(Standing::is_traced)
    }

    /// Returns those that are traced.
    pub(super) fn traced(&self) -> impl Iterator<Item = Pid> {
        self.all.iter().filter(|(_, standing)| standing.is_traced()).map(|(pid, _)| *pid)
    }

    pub(super) fn has_traced(&self) -> bool {
        self.all.len() > self.away
    }

    pub(super) fn set(&mut self, pid: Pid, standing: Standing) {
        let before = self.all.insert(pid, standing);
        self.count_out(before);
        self.away += usize::from(!standing.is_traced());
        if self.away >= MANY.max(2 * self.seen_away) {
            self.all.retain(|pid, standing| standing.is_traced() || Process::is_running(pid.0));
            self.away = self.all.values().filter(|standing| !standing.is_traced()).count();
            self.seen_away = self.away;
        }
    }

    /// Forgets a process that has ended.
    pub(super) fn end(&mut self, pid: Pid) {
        let before = self.all.remove(&pid);
        self.count_out(before);
    }

    fn count_out(&mut self, before: Option<Standing>) {
        self.away -= usize::from(before.is_some_and(|standing| !standing.is_traced()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Standing::{Followed, Joined, Mistaken, Refused};

    #[test]
    fn each_process_has_one_standing() {
        let mut processes = Processes::default();
        let pids = |processes: &Processes| {
            let mut pids: Vec<_> = processes.traced().map(|pid| pid.0).collect();
            pids.sort_unstable();
            pids
        };
        for (pid, standing) in [(3, Followed), (4, Joined), (5, Mistaken), (6, Refused)] {
            processes.set(Pid(pid), standing);
        }
        assert_eq!((pids(&processes), processes.away), (vec![3, 4], 2));
        processes.set(Pid(4), Refused);
        processes.set(Pid(5), Joined);
        assert_eq!((pids(&processes), processes.away), (vec![3, 5], 2));
        assert!(processes.is_traced(Pid(5)) && !processes.is_traced(Pid(6)));
        [3, 4, 5].into_iter().for_each(|pid| processes.end(Pid(pid)));
        assert_eq!((processes.has_traced(), processes.away), (false, 1));
        assert_eq!(processes.standing(Pid(6)), Some(Refused));
    }

    #[test]
    fn those_that_were_turned_away_are_forgotten_after_their_end() {
        let mut processes = Processes::default();
        let own = Pid(std::process::id());
        processes.set(own, Mistaken);
        // No process has such an id.
        (0..3 * MANY as u32).for_each(|n| processes.set(Pid(5_000_000 + n), Mistaken));
        assert!(processes.all.len() < MANY, "{}", processes.all.len());
        assert_eq!(processes.standing(own), Some(Mistaken));
    }
}
