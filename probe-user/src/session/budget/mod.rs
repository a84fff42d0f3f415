//! Keeps the cost of the probes within a share of the target's own CPU time.
//!
//! The trap is the cost, so dropping records would save nothing: probes are taken away. The
//! costliest groups of functions go first. From then on they are armed in *windows* only, so short
//! and so rare that everything together stays within the budget. Groups share their windows, except
//! those that would drown the others. A window shows whether a group is calm again, and it is the
//! sample from which its totals are estimated ([`sampling`]).

pub(crate) mod books;
pub(crate) mod calibrate;
pub(crate) mod costs;
pub(crate) mod evidence;
mod group;
pub(crate) mod markers;
pub(crate) mod note;
pub(crate) mod remembered;
pub(crate) mod sampling;
mod single_steps;
pub(crate) mod slowdown;
#[cfg(test)]
mod tests;
mod window;

use ctrace_core::units::Nanos;
use group::CostGroup;
use window::{is_telling, plan};

pub(crate) use window::Window;

/// Less than this share of one core is no cost. A target that hardly runs would have no budget.
const NEGLIGIBLE: f64 = 1e-4;
/// The part of the budget for groups that stay armed, after others had to go.
const FILL: f64 = 0.7;
/// A group comes back if no more than this part of the budget is used with it.
const CALM: f64 = 0.5;
/// It also comes back if it takes no more than this part of what the others leave of the budget:
/// they may use more than `CALM` for ever.
const LITTLE: f64 = 0.05;
/// The number of calm windows in a row before a group comes back.
const CALM_WINDOWS: u32 = 3;
/// The longest time to wait for the kernel to let go of a group that is to come back. What its
/// windows showed is too old then.
const LONGEST_RETURN: Nanos = Nanos::from_millis(30_000);
/// The part of the budget that windows fill up.
const CLOSE: f64 = 0.95;
/// The least part of the budget for windows.
const LEAST_FOR_WINDOWS: f64 = 0.2;
/// Above the budget by this factor, groups go after one look instead of two.
const FAR_BEYOND: f64 = 4.0;
/// The time between looks, unless the probes cost `DEAR` before.
const LOOK: Nanos = Nanos::from_millis(1_000);
const DEAR: Nanos = Nanos::from_millis(20);
/// Groups that cost more than this share of the target's own time have windows of their own: they
/// would distort what other groups show.
const DROWNING: f64 = 0.5;
/// Their part of the cost of windows.
const FOR_DROWNING: f64 = 0.25;
/// The time constant of the average of the target's own CPU time.
const MEMORY: f64 = 5e9;

/// Totals at one time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading<'a> {
    pub at: Nanos,
    /// CPU time of the target, probes included.
    pub cpu: Nanos,
    /// The cost of each group's probes so far.
    pub spent: &'a [Nanos],
}

#[derive(Debug)]
pub(crate) struct Budget {
    share: f64,
    groups: Vec<CostGroup>,
    at: Nanos,
    cpu: Nanos,
    spent: Vec<Nanos>,
    /// CPU time that the target uses for itself, per time.
    own: Option<f64>,
    /// Looks in a row that found too high a cost.
    beyond: u32,
    /// The next window of groups that drown others, and the next of all other groups.
    windows: [Option<Window>; 2],
    /// Since when each of the two waits for its window.
    waits: [Nanos; 2],
}

impl Budget {
    /// `percent` of the target's own CPU time.
    pub(crate) fn new(percent: f64) -> Self {
        Self {
            share: percent / 100.0,
            groups: Vec::new(),
            at: Nanos::ZERO,
            cpu: Nanos::ZERO,
            spent: Vec::new(),
            own: None,
            beyond: 0,
            windows: [None, None],
            waits: [Nanos::ZERO; 2],
        }
    }

    /// Everything is armed.
    pub(crate) fn begin(&mut self, at: Nanos, cpu: Nanos) {
        (self.at, self.cpu) = (at, cpu);
    }

    /// Adds a group, which is armed.
    pub(crate) fn add(&mut self) {
        self.groups.push(CostGroup::Always { cost: 0.0 });
        self.spent.push(Nanos::ZERO);
    }

    /// Returns whether the group is disarmed outside of windows.
    pub(crate) fn in_windows(&self, group: usize) -> bool {
        !matches!(self.groups[group], CostGroup::Always { .. })
    }

    /// The kernel refused the group's probes. It has windows until it is calm, after a pause.
    pub(crate) fn could_not_arm(&mut self, group: usize) {
        self.groups[group] = self.groups[group].refused(self.at, self.own_time());
        self.windows = self.plan_windows();
    }

    /// The kernel still holds the last links of a group that is to come back. It has no windows
    /// meanwhile: a window would only give it new links to hold. Returns false if this has taken
    /// too long: it has windows again, until they show anew that it is calm.
    pub(crate) fn let_return(&mut self, group: usize, at: Nanos) -> bool {
        let cost = self.groups[group].cost();
        let since = match self.groups[group] {
            CostGroup::Returning { since, .. } => since,
            _ => at,
        };
        let goes_on = at.since(since) < LONGEST_RETURN;
        self.groups[group] = match goes_on {
            true => CostGroup::Returning { cost, since },
            false => CostGroup::in_windows(cost, self.own_time()),
        };
        self.windows = self.plan_windows();
        goes_on
    }

    /// The group is armed again, and stays so.
    pub(crate) fn take_out_of_windows(&mut self, group: usize) {
        self.groups[group] = CostGroup::Always { cost: self.groups[group].cost() };
        self.windows = self.plan_windows();
    }

    /// Returns the next window.
    pub(crate) fn window(&self) -> Option<&Window> {
        self.windows.iter().flatten().min_by_key(|window| window.begins)
    }

    fn own_time(&self) -> f64 {
        self.own.unwrap_or(0.0)
    }

    /// Returns the cost of all probes that the budget allows, per time.
    fn allowed(&self) -> f64 {
        (self.share * self.own_time()).max(NEGLIGIBLE)
    }

    fn always(&self) -> f64 {
        self.cost_of(|group| matches!(group, CostGroup::Always { .. }))
    }

    /// Returns the expected cost of groups that are going to be armed again.
    fn returning(&self) -> f64 {
        self.cost_of(|group| matches!(group, CostGroup::Returning { .. }))
    }

    fn cost_of(&self, is_meant: fn(&CostGroup) -> bool) -> f64 {
        let groups = self.groups.iter().copied().filter(is_meant);
        groups.map(CostGroup::cost).sum()
    }

    /// Returns whether a look would show anything new: a reading takes time itself.
    pub(crate) fn is_due(&self, at: Nanos, spent: &[Nanos]) -> bool {
        let all = || spent.iter().zip(&self.spent).map(|(now, before)| now.since(*before).0).sum();
        match at.since(self.at) {
            Nanos::ZERO => false,
            time => time >= LOOK || DEAR <= Nanos(all()),
        }
    }

    /// Compares cost and budget. Returns the groups to disarm at once.
    pub(crate) fn look(&mut self, now: Reading<'_>) -> Vec<usize> {
        if !self.is_due(now.at, now.spent) {
            return Vec::new();
        }
        let spent: Vec<Nanos> =
            now.spent.iter().zip(&self.spent).map(|(now, before)| now.since(*before)).collect();
        let all: u64 = spent.iter().map(|spent| spent.0).sum();
        let length = now.at.since(self.at).0 as f64;
        self.learn_own(now.cpu.since(self.cpu).0 as f64, all as f64, length);
        for (group, spent) in self.groups.iter_mut().zip(&spent) {
            if let CostGroup::Always { cost } = group {
                *cost = spent.0 as f64 / length;
            }
        }
        (self.at, self.cpu, self.spent) = (now.at, now.cpu, now.spent.to_vec());
        let (always, allowed) = (self.always(), self.allowed());
        self.beyond = if always > allowed { self.beyond + 1 } else { 0 };
        if self.beyond < 2 && always <= FAR_BEYOND * allowed {
            self.plan_again(now.at);
            return Vec::new();
        }
        self.beyond = 0;
        let shed = self.shed(always, FILL * allowed);
        self.waits = [now.at; 2];
        self.windows = self.plan_windows();
        shed
    }

    /// Windows that have not begun follow what the target uses now. One that was planned while it
    /// seemed to use next to nothing would come minutes later.
    fn plan_again(&mut self, at: Nanos) {
        if self.windows.iter().flatten().any(|window| window.begins <= at) {
            return;
        }
        self.windows = self.plan_windows();
        for window in self.windows.iter_mut().flatten() {
            window.begins = window.begins.max(at);
        }
    }

    fn learn_own(&mut self, used: f64, spent: f64, length: f64) {
        // The cost of probes is an estimate, and may exceed the time used.
        let own = (used - spent).max(used * 0.01) / length;
        let weight = 1.0 - (-length / MEMORY).exp();
        self.own = Some(self.own.map_or(own, |before| before + weight * (own - before)));
    }

    /// Sheds the costliest groups until the others cost no more than `rest`, and returns them.
    fn shed(&mut self, always: f64, rest: f64) -> Vec<usize> {
        let mut dear: Vec<(f64, usize)> = self
            .groups
            .iter()
            .enumerate()
            .filter_map(|(index, group)| match group {
                CostGroup::Always { cost } if *cost > 0.0 => Some((*cost, index)),
                _ => None,
            })
            .collect();
        dear.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut left = always;
        let mut shed = Vec::new();
        for (cost, index) in dear {
            if left <= rest {
                break;
            }
            left -= cost;
            self.groups[index] = CostGroup::in_windows(cost, self.own_time());
            shed.push(index);
        }
        shed
    }

    /// Ends a planned window that was armed for this time. `spent`: the groups that could be armed,
    /// with their cost. Returns those that are calm again, to be armed from here on. Nothing is
    /// learned from a window that was cut short.
    pub(crate) fn window_over(
        &mut self,
        over: &Window,
        at: Nanos,
        armed: Nanos,
        spent: &[(usize, Nanos)],
    ) -> Vec<usize> {
        let (allowed, own_now) = (self.allowed(), self.own_time());
        let mut always = self.always() + self.returning();
        let mut back = Vec::new();
        for &(index, spent) in spent {
            let group = &mut self.groups[index];
            let expected = group.expected(own_now);
            let CostGroup::InWindows { cost, own, calm, pause, .. } = group else { continue };
            *pause = 0.0;
            if !is_telling(armed) {
                continue;
            }
            let seen = spent.0 as f64 / armed.0.max(1) as f64;
            // A burst that is over must not keep it away for long.
            let weight = if seen < expected { 0.8 } else { 0.5 };
            (*cost, *own) = (expected + weight * (seen - expected), own_now);
            let is_calm = always + seen <= CALM * allowed || seen <= LITTLE * (allowed - always);
            *calm = if is_calm { *calm + 1 } else { 0 };
            if *calm >= CALM_WINDOWS {
                always += seen;
                *group = CostGroup::Always { cost: seen };
                back.push(index);
            }
        }
        // The other kind keeps its time. This one's is over even if nothing could be armed.
        let of_this = |window: &Window| over.groups.iter().any(|g| window.groups.contains(g));
        let is_other = |window: &Option<Window>| {
            back.is_empty() && window.as_ref().is_some_and(|window| !of_this(window))
        };
        let keep = self.windows.each_ref().map(is_other);
        for (wait, keep) in self.waits.iter_mut().zip(keep) {
            *wait = if keep { *wait } else { at };
        }
        let planned = self.plan_windows();
        for ((window, planned), keep) in self.windows.iter_mut().zip(planned).zip(keep) {
            if !keep {
                *window = planned;
            }
        }
        back
    }

    /// Plans the next windows by the cost that is expected of each group.
    fn plan_windows(&self) -> [Option<Window>; 2] {
        let own_now = self.own_time();
        let limit = DROWNING * own_now;
        let cost = |(index, group): (usize, &CostGroup)| match group {
            CostGroup::InWindows { resumes, .. } if *resumes <= self.at => {
                Some((index, group.expected(own_now)))
            }
            _ => None,
        };
        let dear = self.groups.iter().enumerate().filter_map(cost);
        let (drowning, others): (Vec<_>, Vec<_>) = dear.partition(|(_, cost)| *cost > limit);
        let allowed = self.allowed();
        let left = (CLOSE * allowed - self.always()).max(LEAST_FOR_WINDOWS * allowed);
        let for_drowning = match (drowning.is_empty(), others.is_empty()) {
            (false, false) => FOR_DROWNING,
            _ => 1.0,
        };
        let for_others = if drowning.is_empty() { 1.0 } else { 1.0 - FOR_DROWNING };
        let [first, second] = self.waits;
        [plan(first, drowning, for_drowning * left), plan(second, others, for_others * left)]
    }
}
