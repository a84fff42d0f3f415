//! Acts if the probes slow the target. The cost of the probes is an estimate ([`super::evidence`]);
//! nothing is done unless the least that it can be is too much.

use super::{
    costs::Spent,
    evidence::{Estimate, percent_of_own},
};
use crate::target::process::cpu_times::CpuTimes;
use ctrace_core::units::Nanos;

/// Warn beyond this share of the target's own CPU time.
const WARN_PERCENT: f64 = 50.0;
/// Stretches with less CPU time say little: hits become known a little later than the time.
const LEAST_CPU: Nanos = Nanos::from_millis(250);
/// The number of bad stretches in a row before anything is done.
const BAD_STRETCHES: u32 = 2;

/// The action if the probes slow a target.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum SlowdownPolicy {
    Off,
    #[default]
    Warn,
    /// End the session beyond this percentage.
    StopBeyond(f64),
}

impl SlowdownPolicy {
    /// Returns whether it needs the cost of a hit here: a guess may be ten times too low or too high.
    pub(crate) fn needs_costs(self) -> bool {
        matches!(self, Self::StopBeyond(_))
    }
}

/// The action to take now, with the slowdown in words.
#[derive(Debug, PartialEq)]
pub(crate) enum BudgetAction {
    Fine,
    Warn(String),
    Stop(String),
}

/// Totals since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Totals {
    pub(crate) spent: Spent,
    /// The CPU time of the target.
    pub(crate) cpu: Nanos,
    /// The same by kind, if that is known.
    pub(crate) used: Option<CpuTimes>,
}

impl Totals {
    fn since(&self, earlier: &Self) -> Self {
        Self {
            spent: self.spent.since(earlier.spent),
            cpu: self.cpu.since(earlier.cpu),
            used: self.used.zip(earlier.used).map(|(now, earlier)| now.since(earlier)),
        }
    }
}

/// Compares the cost of the hits of each stretch with the CPU time that the target had in it.
pub(crate) struct Watch {
    policy: SlowdownPolicy,
    warned: bool,
    bad: u32,
    /// At the end of the last stretch.
    last: Totals,
}

impl Watch {
    pub(crate) fn new(policy: SlowdownPolicy) -> Self {
        let last = Totals { used: Some(CpuTimes::default()), ..Totals::default() };
        Self { policy, warned: false, bad: 0, last }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.policy != SlowdownPolicy::Off
    }

    /// True if a check at this CPU time would tell anything.
    pub(crate) fn is_due(&self, cpu: Nanos) -> bool {
        cpu.since(self.last.cpu) >= LEAST_CPU
    }

    /// Judges the stretch since the last check. `measured`: the cost of a hit was measured here.
    pub(crate) fn check(&mut self, now: Totals, measured: bool) -> BudgetAction {
        if !self.is_due(now.cpu) {
            return BudgetAction::Fine;
        }
        let Totals { spent, cpu: length, used } = now.since(&self.last);
        self.last = now;
        let stretch = Estimate::of(&spent, measured, used);
        let percent = percent_of_own(length, stretch.least);
        let limit = match self.policy {
            SlowdownPolicy::Off => f64::INFINITY,
            SlowdownPolicy::Warn => WARN_PERCENT,
            SlowdownPolicy::StopBeyond(limit) => limit,
        };
        self.bad = if percent > limit { self.bad + 1 } else { 0 };
        match self.policy {
            _ if self.bad < BAD_STRETCHES => BudgetAction::Fine,
            SlowdownPolicy::StopBeyond(_) => BudgetAction::Stop(stretch.slowdown(length)),
            _ if self.warned => BudgetAction::Fine,
            _ => {
                self.warned = true;
                BudgetAction::Warn(stretch.slowdown(length))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks totals of the certain cost of hits, of system time, and of CPU time, in milliseconds.
    #[track_caller]
    fn check(policy: SlowdownPolicy, millis: &[(u64, u64, u64)], want: &[&str]) {
        let mut watch = Watch::new(policy);
        let nanos = Nanos::from_millis;
        let each = millis.iter().map(|(least, system, cpu)| {
            let (traps, least) = (nanos(2 * least), nanos(*least));
            let spent = Spent { traps, least, ..Spent::default() };
            let used = CpuTimes { user: nanos(cpu - system), system: nanos(*system) };
            let now = Totals { spent, cpu: nanos(*cpu), used: Some(used) };
            match watch.check(now, false) {
                BudgetAction::Fine => String::new(),
                BudgetAction::Warn(slowdown) => format!("warn: {slowdown}"),
                BudgetAction::Stop(slowdown) => format!("stop: {slowdown}"),
            }
        });
        assert_eq!(each.collect::<Vec<_>>(), want);
    }

    #[test]
    fn a_slow_target_is_told_once() {
        let steps = [(10, 10, 1000), (510, 510, 2000), (1010, 1010, 3000), (1510, 1510, 4000)];
        check(SlowdownPolicy::Warn, &steps, &["", "", "warn: about 2.0× slower", ""]);
        check(SlowdownPolicy::Off, &steps, &[""; 4]);
    }

    #[test]
    fn a_limit_stops_after_two_bad_stretches() {
        let limit = SlowdownPolicy::StopBeyond(20.0);
        let steps = [(500, 510, 1000), (510, 520, 2000), (1010, 1030, 3000), (1510, 1540, 4000)];
        check(limit, &steps, &["", "", "", "stop: about 2.0× slower"]);
    }

    /// A quarter of a second of CPU time is a stretch.
    #[test]
    fn a_limit_stops_within_half_a_second_of_work() {
        let limit = SlowdownPolicy::StopBeyond(20.0);
        let steps = [(150, 160, 240), (160, 170, 255), (330, 350, 510), (340, 360, 600)];
        check(limit, &steps, &["", "", "stop: about 3.2× slower", ""]);
    }

    /// The target may use the rest of the system time itself, in any stretch.
    #[test]
    fn only_a_certain_slowdown_is_acted_on() {
        let steps = [(100, 600, 1000), (200, 1200, 2000), (300, 1800, 3000)];
        check(SlowdownPolicy::StopBeyond(20.0), &steps, &[""; 3]);
        let stopped = ["", "stop: between 1.11 and 2.5× slower"];
        check(SlowdownPolicy::StopBeyond(10.0), &steps[..2], &stopped);
        // No stretch has what a bound cut off the ones before.
        let bound = [(400, 100, 1000), (450, 1000, 2000), (500, 1900, 3000), (550, 2800, 4000)];
        check(SlowdownPolicy::StopBeyond(20.0), &bound, &[""; 4]);
    }

    #[test]
    fn a_burst_in_an_idle_target_is_none() {
        check(SlowdownPolicy::Warn, &[(50, 55, 60), (90, 95, 100)], &["", ""]);
    }
}
