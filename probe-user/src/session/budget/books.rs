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

    /// Adds a function that has come with another one of the group, and was armed when that was.
    pub(crate) fn join(&mut self, group: usize, new: FuncId, with: FuncId) {
        let all = self.entered.len().max(new.index() + 1);
        self.entered.resize(all, 0);
        self.samplings.resize(all, Sampling::default());
        self.samplings[new.index()] = self.samplings[with.index()].without_events();
        self.groups[group].functions.push(new);
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
            let new = enter(&mut self.entered[id.index()], of(events, *id));
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
            let new = enter(&mut self.entered[id.index()], of(events, *id));
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

/// Returns the events of a function, which may be newer than the counts.
fn of(events: &[u64], id: FuncId) -> u64 {
    events.get(id.index()).copied().unwrap_or(0)
}

/// Enters all events and returns the number of new ones.
fn enter(entered: &mut u64, all: u64) -> u64 {
    all.saturating_sub(std::mem::replace(entered, all))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(millis: u64) -> Time {
        Time { at: Nanos::from_millis(millis), own: Nanos::from_millis(millis) }
    }

    /// A name that comes late was armed when its scope was, so its row has the same mark.
    #[test]
    fn a_name_is_armed_when_its_scope_is() {
        let [scope, name] = [FuncId(2), FuncId(3)];
        let mut books = Books::default();
        books.add(&[scope], time(0));
        books.in_windows(0, time(40));
        books.window(0, time(10), &[0, 0, 30], Nanos::ZERO);
        assert!(books.sampling(name.index()).is_none());
        books.join(0, name, scope);
        books.window(0, time(6), &[0, 0, 50, 7], Nanos::ZERO);
        let [of_scope, of_name] = [scope, name].map(|id| {
            let sampling = books.sampling(id.index()).expect("it is known");
            sampling.report(57, Nanos(900), Nanos(800)).expect("it had windows only")
        });
        assert_eq!((of_name.windows, of_name.armed_ns), (of_scope.windows, of_scope.armed_ns));
        assert_eq!(of_name.armed_ns, Nanos::from_millis(16));
    }
}
