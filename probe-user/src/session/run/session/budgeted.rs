//! What a session with a budget keeps: its groups, which of them are armed, and the books.

use crate::session::{
    budget::{Budget, books::Books, sampling::Time},
    run::groups::Group,
};
use ctrace_core::units::Nanos;

pub(super) struct Budgeted {
    pub(super) percent: f64,
    pub(super) control: Budget,
    pub(super) books: Books,
    pub(super) groups: Vec<Group>,
    pub(super) phase: Phase,
    /// Groups that are calm again, but that the kernel has not let go of yet.
    pub(super) returning: Vec<usize>,
    /// When they are tried again.
    pub(super) retry: Nanos,
}

/// From one try to arm a group that the kernel still holds to the next.
pub(super) const RETRY: Nanos = Nanos::from_millis(100);

pub(super) enum Phase {
    /// For the next window, if there is to be one.
    Waiting,
    Armed {
        until: Nanos,
        window: Window,
    },
    /// Disarmed; events from before are still on their way. `cpu`: of the target, then.
    Settling {
        at: Nanos,
        cpu: Nanos,
        window: Option<Window>,
        shed: Vec<usize>,
    },
}

/// These groups are armed for a while.
pub(super) struct Window {
    pub(super) since: Time,
    /// All probes together, up to then.
    pub(super) spent: Nanos,
    pub(super) groups: Vec<usize>,
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

impl Budgeted {
    pub(super) fn new(percent: f64) -> Self {
        let (control, books, groups) = (Budget::new(percent), Books::default(), Vec::new());
        let (phase, returning) = (Phase::Waiting, Vec::new());
        Self { percent, control, books, groups, phase, returning, retry: Nanos::ZERO }
    }

    pub(super) fn begin(&mut self, at: Nanos, cpu: Nanos) {
        self.control.begin(at, cpu);
        self.books.begin(Time { at, own: cpu });
    }

    pub(super) fn groups(&self) -> &[Group] {
        &self.groups
    }

    pub(super) fn groups_mut(&mut self) -> &mut [Group] {
        &mut self.groups
    }

    /// When something is to be done that no event tells.
    pub(super) fn due(&self) -> Option<Nanos> {
        match &self.phase {
            Phase::Waiting => {
                let window = self.control.window().map(|window| window.begins);
                let retry = (!self.returning.is_empty()).then_some(self.retry);
                window.into_iter().chain(retry).min()
            }
            Phase::Armed { until, .. } => Some(*until),
            Phase::Settling { .. } => None,
        }
    }

    /// Everything that happened up to now is entered.
    pub(super) fn enter(&self, books: &mut Books, now: &Now<'_>) {
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
                Phase::Armed { window, .. } if window.groups.contains(&group) => {
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

    /// What is entered up to now is not entered again.
    pub(super) fn entered(&mut self, now: (Time, Nanos)) {
        let window = match &mut self.phase {
            Phase::Armed { window, .. } => window,
            Phase::Settling { window: Some(window), .. } => window,
            _ => return,
        };
        (window.since, window.spent) = (now.0.max(window.since), now.1);
    }
}
