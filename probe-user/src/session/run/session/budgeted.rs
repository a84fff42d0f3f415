//! The budget of a session: disarms costly groups, arms them in windows, and brings them back.

use super::scene::{Armed, Now, Scene};
use crate::{
    bpf::{self, BpfError},
    session::{
        budget::{
            self, Budget, Reading,
            books::Books,
            note::sampled_note,
            sampling::{Sampling, Time},
        },
        plan::ObjectPlan,
        run::groups::LinkGroup,
    },
};
use ctrace_core::{
    report::Report,
    units::{FuncId, Nanos},
};

/// The groups, the state of their arming, and the books.
pub(super) struct Budgeted {
    percent: f64,
    control: Budget,
    books: Books,
    groups: Vec<LinkGroup>,
    phase: Phase,
    /// Groups that are calm again, but that the kernel has not let go of yet.
    returning: Vec<usize>,
    /// The time of the next try.
    retry: Nanos,
    /// The number of names of scopes and methods that are known.
    names: usize,
}

/// The time between two tries to arm a group that the kernel still holds.
const RETRY: Nanos = Nanos::from_millis(100);
/// The reason why a group has windows again after all tries.
const HELD: &str =
    "the kernel has held the last probes for half a minute, as it does during a call";

enum Phase {
    /// Waiting for the next window, if there is to be one.
    Waiting,
    Armed {
        window: Window,
    },
    /// Disarmed; earlier events are still on their way. `cpu`: CPU time of the target when it was
    /// disarmed.
    Settling {
        at: Nanos,
        cpu: Nanos,
        window: Option<Window>,
        shed: Vec<usize>,
    },
}

/// A time in which costly groups are armed.
struct Window {
    plan: budget::Window,
    begun: Nanos,
    /// The cost of each group of the session, armed or not, before the window.
    before: Vec<Nanos>,
    /// The groups of the plan that could be armed.
    groups: Vec<usize>,
    /// The end of what the books have of it. A report moves this, but not `begun`.
    since: Time,
    /// The cost of all probes together, up to `since`.
    spent: Nanos,
}

impl Window {
    /// Returns the cost of each group that was armed for it. `spent`: that of each group so far.
    fn costs(&self, spent: &[Nanos]) -> Vec<(usize, Nanos)> {
        let cost = |&group: &usize| (group, spent[group].since(self.before[group]));
        self.groups.iter().map(cost).collect()
    }

    fn is_over(&self, now: Nanos, spent: &[Nanos]) -> bool {
        let cost = self.costs(spent).iter().map(|(_, cost)| cost.0).sum();
        self.plan.is_over(now.since(self.begun), Nanos(cost))
    }
}

impl Budgeted {
    /// Returns the percent of the target's own CPU time that probes may take.
    pub(super) fn percent(&self) -> f64 {
        self.percent
    }

    pub(super) fn new(percent: f64) -> Self {
        let (control, books, groups) = (Budget::new(percent), Books::default(), Vec::new());
        let (phase, returning) = (Phase::Waiting, Vec::new());
        Self { percent, control, books, groups, phase, returning, retry: Nanos::ZERO, names: 0 }
    }

    pub(super) fn begin(&mut self, at: Nanos, cpu: Nanos) {
        self.control.begin(at, cpu);
        self.books.begin(Time { at, own: cpu });
    }

    pub(super) fn groups(&self) -> &[LinkGroup] {
        &self.groups
    }

    /// Returns the place of the group that a function is in.
    pub(super) fn group_of(&self, function: FuncId) -> Option<usize> {
        self.groups.iter().position(|group| group.functions.binary_search(&function).is_ok())
    }

    pub(super) fn groups_mut(&mut self) -> &mut [LinkGroup] {
        &mut self.groups
    }

    /// Adds the functions that stand for names of scopes and of methods, and are armed whenever their scopes or
    /// pairs are. `all`: those of the session, with these.
    pub(super) fn know_names(&mut self, all: &[(FuncId, FuncId)]) {
        for (named, scope) in all.iter().skip(self.names) {
            let has_scope = |group: &LinkGroup| group.functions.contains(scope);
            if let Some(at) = self.groups.iter().position(has_scope) {
                self.groups[at].functions.push(*named);
                self.books.join(at, *named, *scope);
            }
        }
        self.names = all.len();
    }

    /// Returns the time of the next step that no event announces.
    pub(super) fn due(&self) -> Option<Nanos> {
        match &self.phase {
            Phase::Waiting => {
                let window = self.control.window().map(|window| window.begins);
                let retry = (!self.returning.is_empty()).then_some(self.retry);
                window.into_iter().chain(retry).min()
            }
            Phase::Armed { window } => Some(window.begun.saturating_add(window.plan.length)),
            Phase::Settling { .. } => None,
        }
    }

    /// Enters everything that happened up to now.
    fn enter(&self, books: &mut Books, now: &Now<'_>) {
        let Now { events, spent, time } = now;
        for group in 0..self.groups.len() {
            match &self.phase {
                Phase::Settling { at, cpu, shed, .. } if shed.contains(&group) => {
                    books.armed_throughout(group, time.min(now.at(*at, *cpu)), events);
                }
                _ if !self.control.in_windows(group) => {
                    books.armed_throughout(group, *time, events);
                    continue;
                }
                Phase::Armed { window } if window.groups.contains(&group) => {
                    let spent = spent.since(window.spent);
                    books.window(group, time.since(window.since), events, spent);
                }
                Phase::Settling { at, cpu, window: Some(window), .. }
                    if window.groups.contains(&group) =>
                {
                    let end = time.min(now.at(*at, *cpu));
                    let spent = spent.since(window.spent);
                    books.window(group, end.since(window.since), events, spent);
                }
                _ => {}
            }
            books.in_windows(group, *time);
        }
    }

    /// Moves the window's start to `now`, so that nothing is entered twice.
    fn entered(&mut self, now: (Time, Nanos)) {
        let window = match &mut self.phase {
            Phase::Armed { window } => window,
            Phase::Settling { window: Some(window), .. } => window,
            _ => return,
        };
        (window.since, window.spent) = (now.0.max(window.since), now.1);
    }

    /// Adds a group that is armed from then on.
    pub(super) fn add(&mut self, group: LinkGroup, at: Time) {
        self.control.add();
        self.books.add(&group.functions, at);
        self.groups.push(group);
    }

    pub(super) fn switch_on(
        &mut self,
        object: &ObjectPlan,
        scene: &Scene<'_>,
    ) -> Result<(), BpfError> {
        let of_object = |group: &&mut LinkGroup| group.identity == object.identity;
        for group in self.groups.iter_mut().filter(of_object) {
            group.switch_on(scene.kernel, scene.links)?;
        }
        Ok(())
    }

    pub(super) fn tend(&mut self, scene: &mut Scene<'_>) {
        let now = bpf::now();
        self.forsake(scene);
        match &self.phase {
            Phase::Settling { at, .. } if scene.settled < *at => {}
            Phase::Settling { .. } => self.settle(scene),
            Phase::Waiting if !self.returning.is_empty() && now >= self.retry => {
                self.bring_back(scene);
            }
            Phase::Waiting if self.control.window().is_some_and(|next| next.begins <= now) => {
                self.open_window(scene);
            }
            Phase::Waiting | Phase::Armed { .. } => {
                let spent = self.spent(scene);
                match &self.phase {
                    Phase::Armed { window } if window.is_over(now, &spent) => {
                        self.disarm(scene, Vec::new());
                    }
                    _ => self.look_at_cost(scene, &spent),
                }
            }
        }
    }

    /// Returns the cost of each group so far. Events of probes count as they come: while they wait for
    /// older ones, a burst would stall the target. Those of scopes, which cost little, come later.
    fn spent(&self, scene: &Scene<'_>) -> Vec<Nanos> {
        let hits = scene.engine.arrived();
        let cost = |group: &LinkGroup| {
            let of = |id: &FuncId| scene.costs.of_function(id.index(), hits[id.index()]).0;
            Nanos(group.functions.iter().map(of).sum())
        };
        self.groups.iter().map(cost).collect()
    }

    fn look_at_cost(&mut self, scene: &Scene<'_>, spent: &[Nanos]) {
        let at = bpf::now();
        if !self.control.is_due(at, spent) {
            return;
        }
        let Some(cpu) = scene.clock.time() else { return };
        let shed = self.control.look(Reading { at, cpu, spent });
        tracing::debug!("shed {shed:?} of {:?}", self.control);
        if !shed.is_empty() {
            self.disarm(scene, shed);
        }
    }

    /// Disarms the groups to shed, and those that are armed for a window.
    fn disarm(&mut self, scene: &Scene<'_>, shed: Vec<usize>) {
        let window = match std::mem::replace(&mut self.phase, Phase::Waiting) {
            Phase::Armed { window } => Some(window),
            _ => None,
        };
        let (at, cpu) = (bpf::now(), scene.clock.time().unwrap_or_default());
        for group in window.iter().flat_map(|window| &window.groups).chain(&shed) {
            self.groups[*group].disarm(at);
        }
        self.phase = Phase::Settling { at, cpu, window, shed };
    }

    /// Ends the calls that may have no end, as the probes of their groups go. At each look, as they seem to
    /// last otherwise until the kernel has let go of all of these.
    fn forsake(&mut self, scene: &mut Scene<'_>) {
        for group in &mut self.groups {
            if let Some(since) = group.loses_ends(scene.settled) {
                scene.forsake(group.functions.iter().copied(), since);
            }
        }
    }

    fn open_window(&mut self, scene: &mut Scene<'_>) {
        let Some(plan) = self.control.window().cloned() else { return };
        let mut groups = Vec::new();
        for &group in &plan.groups {
            match scene.arm(&mut self.groups[group]) {
                Armed::Yes => groups.push(group),
                Armed::StillHeld => {}
                Armed::Failed => self.control.could_not_arm(group),
            }
        }
        let Now { spent, time: since, .. } = scene.known(bpf::now());
        let before = self.spent(scene);
        let window = Window { plan, begun: since.at, before, groups, since, spent };
        self.phase = Phase::Armed { window };
    }

    /// Arms the groups that are calm again if the kernel has let go of them meanwhile.
    fn bring_back(&mut self, scene: &mut Scene<'_>) {
        for group in std::mem::take(&mut self.returning) {
            let before = scene.known(bpf::now()).time;
            match scene.arm(&mut self.groups[group]) {
                Armed::Yes => {
                    self.books.in_windows(group, before);
                    self.control.take_out_of_windows(group);
                }
                Armed::StillHeld if self.control.let_return(group, bpf::now()) => {
                    self.returning.push(group);
                }
                Armed::StillHeld => scene.note_failure(&mut self.groups[group], HELD),
                Armed::Failed => self.control.could_not_arm(group),
            }
        }
        self.retry = bpf::now().saturating_add(RETRY);
    }

    /// Ends the phase in which events from before the disarming are awaited: all of them have been
    /// seen.
    fn settle(&mut self, scene: &mut Scene<'_>) {
        let Phase::Settling { at, .. } = self.phase else { return };
        let spent = self.spent(scene);
        for group in self.settled(&scene.known(at), &spent) {
            self.books.in_windows(group, scene.known(bpf::now()).time);
            match scene.arm(&mut self.groups[group]) {
                Armed::Yes => {}
                // On a busy machine the kernel may hold the links for longer than the events take
                // to arrive.
                Armed::StillHeld => {
                    self.control.let_return(group, bpf::now());
                    self.returning.push(group);
                    self.retry = bpf::now().saturating_add(RETRY);
                }
                Armed::Failed => self.control.could_not_arm(group),
            }
        }
    }

    /// Enters what was disarmed, now that all of its events are known. `spent`: the cost of each
    /// group so far. Returns the groups that are calm again.
    fn settled(&mut self, now: &Now<'_>, spent: &[Nanos]) -> Vec<usize> {
        let Phase::Settling { at, cpu, window, shed } =
            std::mem::replace(&mut self.phase, Phase::Waiting)
        else {
            return Vec::new();
        };
        let at = now.at(at, cpu);
        for &group in &shed {
            self.books.armed_throughout(group, at, now.events);
        }
        let Some(window) = window else { return Vec::new() };
        let (armed, of_all) = (at.since(window.since), now.spent.since(window.spent));
        for &group in &window.groups {
            self.books.window(group, armed, now.events, of_all);
        }
        let (armed, costs) = (at.at.since(window.begun), window.costs(spent));
        self.control.window_over(&window.plan, at.at, armed, &costs)
    }

    pub(super) fn add_samples(&mut self, report: &mut Report, now: &Now<'_>, reset: bool) {
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

#[cfg(test)]
#[path = "budgeted_tests.rs"]
mod tests;
