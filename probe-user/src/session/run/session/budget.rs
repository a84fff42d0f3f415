//! A session with a budget: disarms what is too dear, arms it in windows, and brings it back.

use super::{
    Session,
    budgeted::{Budgeted, Now, Phase, RETRY, Window},
};
use crate::{
    bpf::{self, BpfError, LinkKind},
    session::{
        budget::{
            Reading,
            note::sampled_note,
            sampling::{Sampling, Time},
        },
        plan::ObjectPlan,
        run::groups::{self, Group},
    },
};
use ctrace_core::{
    function::FunctionKind,
    report::Report,
    units::{FuncId, Nanos},
};
use std::collections::HashSet;

/// What became of a group that was to be armed.
#[derive(PartialEq, Eq)]
enum Armed {
    Yes,
    /// The kernel has not let go of its last links yet.
    StillHeld,
    Failed,
}

impl Session {
    /// Attaches an object's functions group by group.
    pub(super) fn attach_groups(
        &mut self,
        object: &ObjectPlan,
        ids: &[FuncId],
    ) -> anyhow::Result<()> {
        let now = self.known(bpf::now()).time;
        let Some(budgeted) = &mut self.budget else { return Ok(()) };
        let (kernel, links) = (&self.parts.kernel, self.parts.links);
        let mut groups = groups::split(kernel, object, ids)?;
        for group in &mut groups {
            group.probe(kernel, links)?;
            let perf = |attachment: &bpf::Attachment| attachment.kind() == LinkKind::Perf;
            if group.attachments().iter().any(perf) {
                anyhow::bail!(
                    "--budget needs probes that can be taken away quickly: Linux 6.6 or later"
                );
            }
        }
        for group in groups {
            budgeted.control.add();
            budgeted.books.add(&group.functions, now);
            budgeted.groups.push(group);
        }
        Ok(())
    }

    /// Raises the semaphores of the object's scopes.
    pub(super) fn switch_groups_on(&mut self, object: &ObjectPlan) -> Result<(), BpfError> {
        let Some(budgeted) = &mut self.budget else { return Ok(()) };
        let of_object = |group: &&mut Group| group.identity == object.identity;
        for group in budgeted.groups.iter_mut().filter(of_object) {
            group.switch_on(&self.parts.kernel, self.parts.links)?;
        }
        Ok(())
    }

    /// When [`Self::tend_budget`] wants to be called, besides now and then.
    pub fn budget_due(&self) -> Option<Nanos> {
        self.budget.as_ref().and_then(Budgeted::due)
    }

    pub fn tend_budget(&mut self) {
        let Some(mut budgeted) = self.budget.take() else { return };
        if !self.finishing {
            self.tend(&mut budgeted);
        }
        self.budget = Some(budgeted);
    }

    fn tend(&mut self, budgeted: &mut Budgeted) {
        let now = bpf::now();
        match &mut budgeted.phase {
            Phase::Settling { at, .. } if self.settled < *at => {}
            Phase::Settling { .. } => self.settle(budgeted),
            Phase::Armed { until, .. } if now >= *until => self.disarm(budgeted, Vec::new()),
            Phase::Waiting if !budgeted.returning.is_empty() && now >= budgeted.retry => {
                self.bring_back(budgeted);
            }
            Phase::Waiting if budgeted.control.window().is_some_and(|next| next.begins <= now) => {
                self.open_window(budgeted);
            }
            Phase::Waiting | Phase::Armed { .. } => self.look_at_cost(budgeted),
        }
    }

    fn look_at_cost(&mut self, budgeted: &mut Budgeted) {
        let hits = self.parts.engine.counters().hits;
        let cost = |group: &Group| {
            let of = |id: &FuncId| self.costs.of_function(id.index(), hits[id.index()]).0;
            Nanos(group.functions.iter().map(of).sum())
        };
        let spent: Vec<Nanos> = budgeted.groups.iter().map(cost).collect();
        let at = self.settled.max(self.start);
        if !budgeted.control.is_due(at, &spent) {
            return;
        }
        let Some(cpu) = self.cpu_time() else { return };
        let shed = budgeted.control.look(Reading { at, cpu, spent: &spent });
        tracing::debug!("shed {shed:?} of {:?}", budgeted.control);
        if !shed.is_empty() {
            self.disarm(budgeted, shed);
        }
    }

    /// What is to go, and what is armed for a window.
    fn disarm(&mut self, budgeted: &mut Budgeted, shed: Vec<usize>) {
        let window = match std::mem::replace(&mut budgeted.phase, Phase::Waiting) {
            Phase::Armed { window, .. } => Some(window),
            _ => None,
        };
        let (at, cpu) = (bpf::now(), self.cpu_time().unwrap_or_default());
        for group in window.iter().flat_map(|window| &window.groups).chain(&shed) {
            budgeted.groups[*group].disarm();
        }
        budgeted.phase = Phase::Settling { at, cpu, window, shed };
    }

    fn open_window(&mut self, budgeted: &mut Budgeted) {
        let Some(window) = budgeted.control.window() else { return };
        let mut armed = window.groups.clone();
        budgeted.returning.retain(|group| !armed.contains(group));
        armed.retain(|group| self.arm_group(&mut budgeted.groups[*group]) == Armed::Yes);
        let Now { spent, time, .. } = self.known(bpf::now());
        let until = time.at.saturating_add(window.length);
        let window = Window { since: time, spent, groups: armed };
        budgeted.phase = Phase::Armed { until, window };
    }

    /// Events up to `at` have been counted, or all that there are by now.
    fn known(&self, at: Nanos) -> Now<'_> {
        let events = self.parts.engine.counters().hits;
        let spent = self.costs.of(events);
        let own = self.cpu_time().unwrap_or_default().since(spent);
        Now { events, spent, time: Time { at, own } }
    }

    fn arm_group(&mut self, group: &mut Group) -> Armed {
        match group.arm(&self.parts.kernel, self.parts.links) {
            Ok(true) => Armed::Yes,
            Ok(false) => Armed::StillHeld,
            Err(error) => {
                let functions = group.functions.len();
                self.note(format!("{functions} functions are not traced any more: {error}"));
                Armed::Failed
            }
        }
    }

    /// Arms the groups that are calm again and that the kernel has let go of meanwhile.
    fn bring_back(&mut self, budgeted: &mut Budgeted) {
        for group in std::mem::take(&mut budgeted.returning) {
            let before = self.known(bpf::now()).time;
            match self.arm_group(&mut budgeted.groups[group]) {
                Armed::Yes => {
                    budgeted.books.in_windows(group, before);
                    budgeted.control.take_out_of_windows(group);
                }
                Armed::StillHeld => budgeted.returning.push(group),
                Armed::Failed => {}
            }
        }
        budgeted.retry = bpf::now().saturating_add(RETRY);
    }

    /// All events from before groups were disarmed have been seen.
    fn settle(&mut self, budgeted: &mut Budgeted) {
        let Budgeted { control, books, groups, phase, returning, retry, .. } = budgeted;
        let Phase::Settling { at, cpu, window, shed } = std::mem::replace(phase, Phase::Waiting)
        else {
            return;
        };
        let disarmed = window.iter().flat_map(|window| &window.groups).chain(&shed);
        self.forsake(disarmed.flat_map(|group| &groups[*group].functions).copied());
        let now = self.known(at);
        let at = now.at(at, cpu);
        for &group in &shed {
            books.armed_throughout(group, at, now.events);
        }
        let Some(window) = window else { return };
        let armed = at.since(window.since);
        let cost = |&group: &usize| {
            let events = books.new_events(group, now.events);
            let cost = events.map(|(id, events)| self.costs.of_function(id.index(), events).0);
            (group, Nanos(cost.sum()))
        };
        let costs: Vec<(usize, Nanos)> = window.groups.iter().map(cost).collect();
        for &group in &window.groups {
            books.window(group, armed, now.events, now.spent.since(window.spent));
        }
        for group in control.window_over(at.at, armed.at, &costs) {
            let now = self.known(bpf::now()).time;
            books.in_windows(group, now);
            let armed = self.arm_group(&mut groups[group]);
            if armed != Armed::Yes {
                control.put_in_windows(group);
            }
            // On a busy machine the kernel holds its links for longer than its events take.
            if armed == Armed::StillHeld {
                returning.push(group);
                *retry = bpf::now().saturating_add(RETRY);
            }
        }
    }

    /// Calls under way of functions that were disarmed have no end.
    fn forsake(&mut self, functions: impl Iterator<Item = FuncId>) {
        let engine = &mut self.parts.engine;
        // Scopes end with their exits also when they are switched off.
        let is_function = |id: &FuncId| engine.kind(*id) == Some(FunctionKind::Function);
        let unseen: HashSet<FuncId> = functions.filter(is_function).collect();
        engine.forsake(&unseen);
    }

    /// Tells in a report what was armed for a part of the time only. `reset`: a new interval begins.
    pub(super) fn add_samples(&mut self, report: &mut Report, end: Nanos, reset: bool) {
        let Some(mut budgeted) = self.budget.take() else { return };
        let now = self.known(end);
        let mut books = budgeted.books.clone();
        budgeted.enter(&mut books, &now);
        for (id, function) in report.functions.iter_mut().enumerate() {
            let sampled = |sampling: &Sampling| {
                sampling.report(function.calls, function.total_ns, function.active_ns)
            };
            function.sampled = books.sampling(id).and_then(sampled);
        }
        report.notes.extend(sampled_note(report, budgeted.percent));
        if reset {
            books.reset();
            budgeted.books = books;
            budgeted.entered((now.time, now.spent));
        }
        self.budget = Some(budgeted);
    }
}
