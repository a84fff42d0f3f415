//! The parts of a session that its budget reads and acts on.

use super::{clock::TargetClock, notes::Notes};
use crate::{
    bpf::{self, Kernel},
    session::{
        budget::{costs::Costs, sampling::Time},
        run::{arm::LinkOptions, groups::LinkGroup},
    },
};
use ctrace_core::{
    engine::Engine,
    function::FunctionKind,
    units::{FuncId, Nanos},
};
use std::{collections::HashSet, fmt::Display};

/// The result of an attempt to arm a group.
#[derive(PartialEq, Eq)]
pub(super) enum Armed {
    Yes,
    /// The kernel has not let go of its last links yet.
    StillHeld,
    Failed,
}

/// The parts of a session that its budget reads and acts on.
pub(super) struct Scene<'a> {
    pub(super) kernel: &'a Kernel,
    pub(super) links: LinkOptions,
    pub(super) engine: &'a mut Engine,
    pub(super) costs: &'a Costs,
    pub(super) clock: &'a TargetClock,
    pub(super) notes: &'a mut Notes,
    pub(super) start: Nanos,
    /// Everything older has been seen.
    pub(super) settled: Nanos,
}

/// The totals up to a time before which everything is known.
pub(super) struct Now<'a> {
    /// Events so far, by function.
    pub(super) events: &'a [u64],
    /// The cost of these events.
    pub(super) spent: Nanos,
    pub(super) time: Time,
}

impl Now<'_> {
    /// Returns the time at which groups were disarmed, if all events before it are known.
    pub(super) fn at(&self, at: Nanos, cpu: Nanos) -> Time {
        Time { at, own: cpu.since(self.spent) }
    }
}

impl Scene<'_> {
    /// Returns the totals when all events up to `at` have been counted, or all that exist by now.
    pub(super) fn known(&self, at: Nanos) -> Now<'_> {
        let events = self.engine.counters().hits;
        let spent = self.costs.of(events);
        let own = self.clock.time().unwrap_or_default().since(spent);
        Now { events, spent, time: Time { at, own } }
    }

    pub(super) fn arm(&mut self, group: &mut LinkGroup) -> Armed {
        match group.arm(self.kernel, self.links) {
            Ok(true) => Armed::Yes,
            Ok(false) => Armed::StillHeld,
            Err(error) => {
                self.note_failure(group, error);
                Armed::Failed
            }
        }
    }

    /// Notes why a group could not be armed, if it is the first time.
    pub(super) fn note_failure(&mut self, group: &mut LinkGroup, why: impl Display) {
        if let Some(note) = group.failure(why, bpf::now().since(self.start)) {
            self.notes.add(note);
        }
    }

    /// Tells the engine that calls under way of functions that were disarmed from `at` on have no end.
    pub(super) fn forsake(&mut self, functions: impl Iterator<Item = FuncId>, at: Nanos) {
        // Scopes that are switched off still deliver the exits of calls under way.
        let is_scope = |id: &FuncId| self.engine.kind(*id) == Some(FunctionKind::Marker);
        let unseen: HashSet<FuncId> = functions.filter(|id| !is_scope(id)).collect();
        if let Some(counts) = self.kernel.counts() {
            counts.forsake(unseen.iter().copied(), bpf::now());
        }
        self.engine.forsake(&unseen, at);
    }
}
