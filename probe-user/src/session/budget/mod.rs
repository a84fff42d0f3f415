//! Keeps what the probes cost within a share of the target's own processor time.
//!
//! The trap is the cost, so dropping records would save nothing: probes are taken away. The dearest
//! groups of functions go first. From then on they are armed in *windows* only, so short and so rare
//! that everything together stays within the budget. They share their windows, but for those that
//! would drown the others. What a window shows tells when a group is calm again, and what it did in
//! all of the time ([`sampling`]).

pub(crate) mod books;
pub(crate) mod calibrate;
pub(crate) mod costs;
pub(crate) mod note;
pub(crate) mod sampling;
pub(crate) mod slowdown;
#[cfg(test)]
mod tests;

use ctrace_core::units::Nanos;

/// Less than this share of one core is no cost: a target that hardly runs would have no budget.
const NEGLIGIBLE: f64 = 1e-4;
/// What stays armed all the time may take so much of the budget after probes had to go.
const FILL: f64 = 0.7;
/// A group comes back if with it so much of the budget is used.
const CALM: f64 = 0.5;
/// After so many windows in which it was calm.
const CALM_WINDOWS: u32 = 3;
/// With the windows, so much of the budget is used.
const CLOSE: f64 = 0.95;
/// Windows get this much of the budget at least.
const LEAST_FOR_WINDOWS: f64 = 0.2;
/// Over the budget by this factor, probes go at the first sight of it.
const FAR_BEYOND: f64 = 4.0;
/// Between looks, unless the probes cost this much before.
const LOOK: Nanos = Nanos::from_millis(1_000);
const DEAR: Nanos = Nanos::from_millis(20);
/// From window to window, where its length allows it.
const PERIOD: f64 = 5e9;
const LONGEST_PERIOD: f64 = 300e9;
const SHORTEST_WINDOW: f64 = 20e6;
const LONGEST_WINDOW: f64 = 1e9;
/// Groups that cost more than so many times what the target has for itself have their own windows:
/// what others do there could not be told.
const DROWNING: f64 = 0.5;
/// What they get of that which is left for windows.
const FOR_DROWNING: f64 = 0.25;
/// How fast the target's processor time is forgotten.
const MEMORY: f64 = 5e9;

/// Totals at one time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reading<'a> {
    pub at: Nanos,
    /// Processor time of the target, probes included.
    pub cpu: Nanos,
    /// What each group's probes have cost.
    pub spent: &'a [Nanos],
}

/// A time in which dear groups are armed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Window {
    pub begins: Nanos,
    pub length: Nanos,
    pub groups: Vec<usize>,
}

/// Costs are in nanoseconds per nanosecond in which a group is armed.
#[derive(Clone, Copy, Debug)]
enum Group {
    Always { cost: f64 },
    InWindows { cost: f64, calm: u32 },
}

#[derive(Debug)]
pub(crate) struct Budget {
    share: f64,
    groups: Vec<Group>,
    at: Nanos,
    cpu: Nanos,
    spent: Vec<Nanos>,
    /// Processor time that the target uses for itself, per time.
    own: Option<f64>,
    /// Looks in a row that found too much.
    beyond: u32,
    /// The next ones: of those that drown others, and of the others.
    windows: [Option<Window>; 2],
    /// Since when each of the two waits for its window.
    waits: [Nanos; 2],
}

impl Budget {
    /// `percent` of the target's processor time.
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

    /// Another group, armed.
    pub(crate) fn add(&mut self) {
        self.groups.push(Group::Always { cost: 0.0 });
        self.spent.push(Nanos::ZERO);
    }

    pub(crate) fn in_windows(&self, group: usize) -> bool {
        matches!(self.groups[group], Group::InWindows { .. })
    }

    /// It could not be armed again.
    pub(crate) fn put_in_windows(&mut self, group: usize) {
        if let Group::Always { cost } = self.groups[group] {
            self.groups[group] = Group::InWindows { cost, calm: 0 };
            self.windows = self.plan_windows();
        }
    }

    /// It is armed again after all, and needs no window any more.
    pub(crate) fn take_out_of_windows(&mut self, group: usize) {
        if let Group::InWindows { cost, .. } = self.groups[group] {
            self.groups[group] = Group::Always { cost };
            self.windows = self.plan_windows();
        }
    }

    /// The next time at which something is to be armed for a while.
    pub(crate) fn window(&self) -> Option<&Window> {
        self.windows.iter().flatten().min_by_key(|window| window.begins)
    }

    /// What all probes may cost, per time.
    fn allowed(&self) -> f64 {
        (self.share * self.own.unwrap_or(0.0)).max(NEGLIGIBLE)
    }

    fn always(&self) -> f64 {
        let cost = |group: &Group| match group {
            Group::Always { cost } => *cost,
            Group::InWindows { .. } => 0.0,
        };
        self.groups.iter().map(cost).sum()
    }

    /// Whether a look would tell anything: a reading takes time itself.
    pub(crate) fn is_due(&self, at: Nanos, spent: &[Nanos]) -> bool {
        let all = || spent.iter().zip(&self.spent).map(|(now, before)| now.since(*before).0).sum();
        match at.since(self.at) {
            Nanos::ZERO => false,
            time => time >= LOOK || DEAR <= Nanos(all()),
        }
    }

    /// Compares cost and budget; the groups that are to be disarmed at once.
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
            if let Group::Always { cost } = group {
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
        // What probes cost is an estimate, and may come out above all that was used.
        let own = (used - spent).max(used * 0.01) / length;
        let weight = 1.0 - (-length / MEMORY).exp();
        self.own = Some(self.own.map_or(own, |before| before + weight * (own - before)));
    }

    /// The dearest groups, until the others cost no more than `rest`.
    fn shed(&mut self, always: f64, rest: f64) -> Vec<usize> {
        let mut dear: Vec<(f64, usize)> = self
            .groups
            .iter()
            .enumerate()
            .filter_map(|(index, group)| match group {
                Group::Always { cost } if *cost > 0.0 => Some((*cost, index)),
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
            self.groups[index] = Group::InWindows { cost, calm: 0 };
            shed.push(index);
        }
        shed
    }

    /// A window is over that was armed for so long, at this cost of each group that took part; the
    /// groups that are calm again, to be armed from here on.
    pub(crate) fn window_over(
        &mut self,
        at: Nanos,
        armed: Nanos,
        spent: &[(usize, Nanos)],
    ) -> Vec<usize> {
        let allowed = self.allowed();
        let mut always = self.always();
        let mut back = Vec::new();
        for &(index, spent) in spent {
            let group = &mut self.groups[index];
            let Group::InWindows { cost, calm } = group else { continue };
            let seen = spent.0 as f64 / armed.0.max(1) as f64;
            // That it became calm shows soon; a burst that is over should not keep it away for long.
            let weight = if seen < *cost { 0.8 } else { 0.5 };
            *cost += weight * (seen - *cost);
            *calm = if always + seen <= CALM * allowed { *calm + 1 } else { 0 };
            if *calm >= CALM_WINDOWS {
                always += seen;
                *group = Group::Always { cost: seen };
                back.push(index);
            }
        }
        // The other kind keeps its time.
        let of_this =
            |window: &Window| spent.iter().any(|(group, _)| window.groups.contains(group));
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

    /// When the next windows are, by what everything costs now.
    fn plan_windows(&self) -> [Option<Window>; 2] {
        let limit = DROWNING * self.own.unwrap_or(0.0);
        let cost = |(index, group): (usize, &Group)| match group {
            Group::Always { .. } => None,
            Group::InWindows { cost, .. } => Some((index, *cost)),
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

/// The next window of groups with their costs, which wait since then and may cost so much together.
fn plan(since: Nanos, groups: Vec<(usize, f64)>, left: f64) -> Option<Window> {
    if groups.is_empty() {
        return None;
    }
    let (groups, costs): (Vec<usize>, Vec<f64>) = groups.into_iter().unzip();
    let part = left / costs.iter().sum::<f64>().max(left);
    let length = (part * PERIOD).clamp(SHORTEST_WINDOW, LONGEST_WINDOW);
    let period = (length / part).min(LONGEST_PERIOD);
    Some(Window {
        begins: since.saturating_add(Nanos((period - length) as u64)),
        length: Nanos(length as u64),
        groups,
    })
}
