//! A session with a budget: disarms what is too dear, arms it in windows, and brings it back.

use super::{
    Session,
    budgeted::{Budgeted, Now, Phase, RETRY, Window},
    clock::TargetClock,
    notes::Notes,
};
use crate::{
    bpf::{self, BpfError, Kernel, LinkKind},
    session::{
        budget::{
            Reading,
            costs::Costs,
            note::sampled_note,
            sampling::{Sampling, Time},
        },
        plan::ObjectPlan,
        run::{
            arm::LinkOptions,
            groups::{self, Group},
        },
    },
};
use ctrace_core::{
    engine::Engine,
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

/// What a budget looks at, and what it acts on.
pub(super) struct Scene<'a> {
    kernel: &'a Kernel,
    links: LinkOptions,
    engine: &'a mut Engine,
    costs: &'a Costs,
    clock: &'a TargetClock,
    notes: &'a mut Notes,
    start: Nanos,
    /// Everything older has been seen.
    settled: Nanos,
}

impl Session {
    /// The budget, if there is one, and the rest of the session as far as it is the budget's concern.
    fn budgeted(&mut self) -> Option<(&mut Budgeted, Scene<'_>)> {
        let parts = &mut self.parts;
        let scene = Scene {
            kernel: &parts.kernel,
            links: parts.links,
            engine: &mut parts.engine,
            costs: &self.costs,
            clock: &self.clock,
            notes: &mut self.notes,
            start: self.start,
            settled: self.settled,
        };
        Some((self.budget.as_mut()?, scene))
    }

    /// Attaches an object's functions group by group.
    pub(super) fn attach_groups(
        &mut self,
        object: &ObjectPlan,
        ids: &[FuncId],
    ) -> anyhow::Result<()> {
        self.budgeted().map_or(Ok(()), |(budget, scene)| budget.attach(object, ids, &scene))
    }

    /// Raises the semaphores of the object's scopes.
    pub(super) fn switch_groups_on(&mut self, object: &ObjectPlan) -> Result<(), BpfError> {
        self.budgeted().map_or(Ok(()), |(budget, scene)| budget.switch_on(object, &scene))
    }

    /// When [`Self::tend_budget`] wants to be called, besides now and then.
    pub(crate) fn budget_due(&self) -> Option<Nanos> {
        self.budget.as_ref().and_then(Budgeted::due)
    }

    pub(crate) fn tend_budget(&mut self) {
        let is_over = self.finishing;
        if let Some((budget, mut scene)) = self.budgeted().filter(|_| !is_over) {
            budget.tend(&mut scene);
        }
    }

    /// Tells in a report what was armed for a part of the time only. `reset`: a new interval begins.
    pub(super) fn add_samples(&mut self, report: &mut Report, end: Nanos, reset: bool) {
        if let Some((budget, scene)) = self.budgeted() {
            budget.add_samples(report, &scene.known(end), reset);
        }
    }
}

impl Scene<'_> {
    /// Events up to `at` have been counted, or all that there are by now.
    fn known(&self, at: Nanos) -> Now<'_> {
        let events = self.engine.counters().hits;
        let spent = self.costs.of(events);
        let own = self.clock.time().unwrap_or_default().since(spent);
        Now { events, spent, time: Time { at, own } }
    }

    fn arm(&mut self, group: &mut Group) -> Armed {
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
    fn forsake(&mut self, functions: impl Iterator<Item = FuncId>) {
        // Scopes end with their exits also when they are switched off.
        let is_function = |id: &FuncId| self.engine.kind(*id) == Some(FunctionKind::Function);
        let unseen: HashSet<FuncId> = functions.filter(is_function).collect();
        self.engine.forsake(&unseen);
    }
}

impl Budgeted {
    fn attach(
        &mut self,
        object: &ObjectPlan,
        ids: &[FuncId],
        scene: &Scene<'_>,
    ) -> anyhow::Result<()> {
        let now = scene.known(bpf::now()).time;
        let mut groups = groups::split(scene.kernel, object, ids)?;
        for group in &mut groups {
            group.probe(scene.kernel, scene.links)?;
            let perf = |attachment: &bpf::Attachment| attachment.kind() == LinkKind::Perf;
            if group.attachments().iter().any(perf) {
                anyhow::bail!(
                    "--budget needs probes that can be taken away quickly: Linux 6.6 or later"
                );
            }
        }
        for group in groups {
            self.control.add();
            self.books.add(&group.functions, now);
            self.groups.push(group);
        }
        Ok(())
    }

    fn switch_on(&mut self, object: &ObjectPlan, scene: &Scene<'_>) -> Result<(), BpfError> {
        let of_object = |group: &&mut Group| group.identity == object.identity;
        for group in self.groups.iter_mut().filter(of_object) {
            group.switch_on(scene.kernel, scene.links)?;
        }
        Ok(())
    }

    fn tend(&mut self, scene: &mut Scene<'_>) {
        let now = bpf::now();
        match &mut self.phase {
            Phase::Settling { at, .. } if scene.settled < *at => {}
            Phase::Settling { .. } => self.settle(scene),
            Phase::Armed { until, .. } if now >= *until => self.disarm(scene, Vec::new()),
            Phase::Waiting if !self.returning.is_empty() && now >= self.retry => {
                self.bring_back(scene);
            }
            Phase::Waiting if self.control.window().is_some_and(|next| next.begins <= now) => {
                self.open_window(scene);
            }
            Phase::Waiting | Phase::Armed { .. } => self.look_at_cost(scene),
        }
    }

    fn look_at_cost(&mut self, scene: &Scene<'_>) {
        let hits = scene.engine.counters().hits;
        let cost = |group: &Group| {
            let of = |id: &FuncId| scene.costs.of_function(id.index(), hits[id.index()]).0;
            Nanos(group.functions.iter().map(of).sum())
        };
        let spent: Vec<Nanos> = self.groups.iter().map(cost).collect();
        let at = scene.settled.max(scene.start);
        if !self.control.is_due(at, &spent) {
            return;
        }
        let Some(cpu) = scene.clock.time() else { return };
        let shed = self.control.look(Reading { at, cpu, spent: &spent });
        tracing::debug!("shed {shed:?} of {:?}", self.control);
        if !shed.is_empty() {
            self.disarm(scene, shed);
        }
    }

    /// What is to go, and what is armed for a window.
    fn disarm(&mut self, scene: &Scene<'_>, shed: Vec<usize>) {
        let window = match std::mem::replace(&mut self.phase, Phase::Waiting) {
            Phase::Armed { window, .. } => Some(window),
            _ => None,
        };
        let (at, cpu) = (bpf::now(), scene.clock.time().unwrap_or_default());
        for group in window.iter().flat_map(|window| &window.groups).chain(&shed) {
            self.groups[*group].disarm();
        }
        self.phase = Phase::Settling { at, cpu, window, shed };
    }

    fn open_window(&mut self, scene: &mut Scene<'_>) {
        let Some(window) = self.control.window() else { return };
        let mut armed = window.groups.clone();
        self.returning.retain(|group| !armed.contains(group));
        armed.retain(|group| scene.arm(&mut self.groups[*group]) == Armed::Yes);
        let Now { spent, time, .. } = scene.known(bpf::now());
        let until = time.at.saturating_add(window.length);
        let window = Window { since: time, spent, groups: armed };
        self.phase = Phase::Armed { until, window };
    }

    /// Arms the groups that are calm again and that the kernel has let go of meanwhile.
    fn bring_back(&mut self, scene: &mut Scene<'_>) {
        for group in std::mem::take(&mut self.returning) {
            let before = scene.known(bpf::now()).time;
            match scene.arm(&mut self.groups[group]) {
                Armed::Yes => {
                    self.books.in_windows(group, before);
                    self.control.take_out_of_windows(group);
                }
                Armed::StillHeld => self.returning.push(group),
                Armed::Failed => {}
            }
        }
        self.retry = bpf::now().saturating_add(RETRY);
    }

    /// All events from before groups were disarmed have been seen.
    fn settle(&mut self, scene: &mut Scene<'_>) {
        let Budgeted { control, books, groups, phase, returning, retry, .. } = self;
        let Phase::Settling { at, cpu, window, shed } = std::mem::replace(phase, Phase::Waiting)
        else {
            return;
        };
        let disarmed = window.iter().flat_map(|window| &window.groups).chain(&shed);
        scene.forsake(disarmed.flat_map(|group| &groups[*group].functions).copied());
        let now = scene.known(at);
        let at = now.at(at, cpu);
        for &group in &shed {
            books.armed_throughout(group, at, now.events);
        }
        let Some(window) = window else { return };
        let armed = at.since(window.since);
        let cost = |&group: &usize| {
            let events = books.new_events(group, now.events);
            let cost = events.map(|(id, events)| scene.costs.of_function(id.index(), events).0);
            (group, Nanos(cost.sum()))
        };
        let costs: Vec<(usize, Nanos)> = window.groups.iter().map(cost).collect();
        for &group in &window.groups {
            books.window(group, armed, now.events, now.spent.since(window.spent));
        }
        for group in control.window_over(at.at, armed.at, &costs) {
            let now = scene.known(bpf::now()).time;
            books.in_windows(group, now);
            let armed = scene.arm(&mut groups[group]);
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

    fn add_samples(&mut self, report: &mut Report, now: &Now<'_>, reset: bool) {
        let mut books = self.books.clone();
        self.enter(&mut books, now);
        for (id, function) in report.functions.iter_mut().enumerate() {
            let sampled = |sampling: &Sampling| {
                sampling.report(function.calls, function.total_ns, function.active_ns)
            };
            function.sampled = books.sampling(id).and_then(sampled);
        }
        report.notes.extend(sampled_note(report, self.percent));
        if reset {
            books.reset();
            self.books = books;
            self.entered((now.time, now.spent));
        }
    }
}
