//! Books on the times at which each function was armed, and on its events then. The samplings of an
//! interval are made from them.

use super::sampling::{Sampling, Time};
use ctrace_core::units::{FuncId, Nanos};

#[derive(Clone, Debug, Default)]
pub(crate) struct Books {
    groups: Vec<Entry>,
    /// The events entered so far, by function.
    entered: Vec<u64>,
    samplings: Vec<Sampling>,
}

#[derive(Clone, Debug)]
struct Entry {
    functions: Vec<FuncId>,
    /// The end of the time that is entered.
    since: Time,
}

impl Books {
    /// Adds a group that is armed from then on.
    pub(crate) fn add(&mut self, functions: &[FuncId], at: Time) {
        let all = functions.iter().map(|id| id.index() + 1).max().unwrap_or(0);
        self.entered.resize(all.max(self.entered.len()), 0);
        self.samplings.resize(self.entered.len(), Sampling::default());
        self.groups.push(Entry { functions: functions.to_vec(), since: at });
    }

    /// Begins anew: all groups are armed from `at` on, and everything before is forgotten.
    pub(crate) fn begin(&mut self, at: Time) {
        self.groups.iter_mut().for_each(|entry| entry.since = at);
        self.reset();
    }

    /// Enters that the group was armed throughout, up to `at`. `events`: all so far, by function.
    pub(crate) fn armed_throughout(&mut self, group: usize, at: Time, events: &[u64]) {
        let entry = &mut self.groups[group];
        let time = at.since(entry.since);
        entry.since = entry.since.max(at);
        for id in &entry.functions {
            let new = enter(&mut self.entered[id.index()], events[id.index()]);
            self.samplings[id.index()].armed_throughout(time, new);
        }
    }

    /// Enters that the group had only windows, up to `at`.
    pub(crate) fn in_windows(&mut self, group: usize, at: Time) {
        let entry = &mut self.groups[group];
        let time = at.since(entry.since);
        entry.since = entry.since.max(at);
        for id in &entry.functions {
            self.samplings[id.index()].in_windows(time);
        }
    }

    /// Enters a window of this length, or a part of one, in which probes took `spent`.
    pub(crate) fn window(&mut self, group: usize, armed: Time, events: &[u64], spent: Nanos) {
        for id in &self.groups[group].functions {
            let new = enter(&mut self.entered[id.index()], events[id.index()]);
            if armed.at > Nanos::ZERO {
                self.samplings[id.index()].window(armed, new, spent);
            }
        }
    }

    pub(crate) fn sampling(&self, id: usize) -> Option<&Sampling> {
        self.samplings.get(id)
    }

    /// Begins a new interval.
    pub(crate) fn reset(&mut self) {
        self.samplings.fill(Sampling::default());
    }
}

/// Enters all events and returns the number of new ones.
fn enter(entered: &mut u64, all: u64) -> u64 {
    all.saturating_sub(std::mem::replace(entered, all))
}
