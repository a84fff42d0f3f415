//! What a budget sees of its session, and what it acts on.

use super::{clock::TargetClock, notes::Notes};
use crate::{
    bpf::Kernel,
    session::{
        budget::{costs::Costs, sampling::Time},
        run::{arm::LinkOptions, groups::Group},
    },
};
use ctrace_core::{
    engine::Engine,
    function::FunctionKind,
    units::{FuncId, Nanos},
};
use std::collections::HashSet;

/// What became of a group that was to be armed.
#[derive(PartialEq, Eq)]
pub(super) enum Armed {
    Yes,
    /// The kernel has not let go of its last links yet.
    StillHeld,
    Failed,
}

/// What a budget looks at, and what it acts on.
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

/// How far everything is known.
pub(super) struct Now<'a> {
    /// Events so far, by function.
    pub(super) events: &'a [u64],
    /// What they cost.
    pub(super) spent: Nanos,
    pub(super) time: Time,
}

impl Now<'_> {
    /// When groups were disarmed, all events of before being known.
    pub(super) fn at(&self, at: Nanos, cpu: Nanos) -> Time {
        Time { at, own: cpu.since(self.spent) }
    }
}

impl Scene<'_> {
    /// Events up to `at` have been counted, or all that there are by now.
    pub(super) fn known(&self, at: Nanos) -> Now<'_> {
        let events = self.engine.counters().hits;
        let spent = self.costs.of(events);
        let own = self.clock.time().unwrap_or_default().since(spent);
        Now { events, spent, time: Time { at, own } }
    }

    pub(super) fn arm(&mut self, group: &mut Group) -> Armed {
        match group.arm(self.kernel, self.links) {
            Ok(true) => Armed::Yes,
            Ok(false) => Armed::StillHeld,
            Err(error) => {
                let functions = group.functions.len();
                self.notes.add(format!("{functions} functions are not traced any more: {error}"));
                Armed::Failed
            }
        }
    }

    /// Calls under way of functions that were disarmed have no end.
    pub(super) fn forsake(&mut self, functions: impl Iterator<Item = FuncId>) {
        // Scopes end with their exits also when they are switched off.
        let is_function = |id: &FuncId| self.engine.kind(*id) == Some(FunctionKind::Function);
        let unseen: HashSet<FuncId> = functions.filter(is_function).collect();
        self.engine.forsake(&unseen);
    }
}
