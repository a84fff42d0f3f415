//! Which function was armed when, and how many events it had then: what the samplings of an
//! interval are made of.

use super::sampling::{Sampling, Time};
use ctrace_core::units::{FuncId, Nanos};

#[derive(Clone, Debug, Default)]
pub(crate) struct Books {
    groups: Vec<Entry>,
    /// By function: events that are entered.
    entered: Vec<u64>,
    samplings: Vec<Sampling>,
}

#[derive(Clone, Debug)]
struct Entry {
    functions: Vec<FuncId>,
    /// Up to when its time is entered.
    since: Time,
}

impl Books {
    /// Another group, armed from then on.
    pub(crate) fn add(&mut self, functions: &[FuncId], at: Time) {
        let all = functions.iter().map(|id| id.index() + 1).max().unwrap_or(0);
        self.entered.resize(all.max(self.entered.len()), 0);
        self.samplings.resize(self.entered.len(), Sampling::default());
        self.groups.push(Entry { functions: functions.to_vec(), since: at });
    }

    /// All groups are armed from `at` on; what was before is forgotten.
    pub(crate) fn begin(&mut self, at: Time) {
        self.groups.iter_mut().for_each(|entry| entry.since = at);
        self.reset();
    }

    /// Up to `at` the group was armed throughout. `events`: all so far, by function.
    pub(crate) fn armed_throughout(&mut self, group: usize, at: Time, events: &[u64]) {
        let entry = &mut self.groups[group];
        let time = at.since(entry.since);
        entry.since = entry.since.max(at);
        for id in &entry.functions {
            let new = enter(&mut self.entered[id.index()], events[id.index()]);
            self.samplings[id.index()].armed_throughout(time, new);
        }
    }

    /// Up to `at` there were only windows for the group.
    pub(crate) fn in_windows(&mut self, group: usize, at: Time) {
        let entry = &mut self.groups[group];
        let time = at.since(entry.since);
        entry.since = entry.since.max(at);
        for id in &entry.functions {
            self.samplings[id.index()].in_windows(time);
        }
    }

    /// A window of such a length is over, or a part of one, in which probes took so much.
    pub(crate) fn window(&mut self, group: usize, armed: Time, events: &[u64], spent: Nanos) {
        for id in &self.groups[group].functions {
            let new = enter(&mut self.entered[id.index()], events[id.index()]);
            if armed.at > Nanos::ZERO {
                self.samplings[id.index()].window(armed, new, spent);
            }
        }
    }

    /// Events of the group's functions that are not entered yet.
    pub(crate) fn new_events(
        &self,
        group: usize,
        events: &[u64],
    ) -> impl Iterator<Item = (FuncId, u64)> {
        let ids = self.groups[group].functions.iter();
        ids.map(|id| (*id, events[id.index()].saturating_sub(self.entered[id.index()])))
    }

    pub(crate) fn sampling(&self, id: usize) -> Option<&Sampling> {
        self.samplings.get(id)
    }

    /// A new interval begins.
    pub(crate) fn reset(&mut self) {
        self.samplings.fill(Sampling::default());
    }
}

/// How many are new.
fn enter(entered: &mut u64, all: u64) -> u64 {
    all.saturating_sub(std::mem::replace(entered, all))
}
