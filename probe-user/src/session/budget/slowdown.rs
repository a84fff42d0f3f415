//! Acts if the probes slow the target. The cost of the probes is an estimate ([`super::evidence`]);
//! nothing is done unless the least that it can be is too much.

use super::evidence::Estimate;
use ctrace_core::units::Nanos;

/// Warn beyond this share of the target's own CPU time.
const WARN_PERCENT: f64 = 50.0;
/// Stretches with less CPU time say nothing: hits become known a little later than the time.
const LEAST_CPU: Nanos = Nanos::from_millis(1_000);
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

/// The action to take now, with the slowdown in words.
#[derive(Debug, PartialEq)]
pub(crate) enum BudgetAction {
    Fine,
    Warn(String),
    Stop(String),
}

/// Compares the cost of the hits of each stretch with the CPU time that the target had in it.
pub(crate) struct Watch {
    policy: SlowdownPolicy,
    warned: bool,
    bad: u32,
    spent: Estimate,
    cpu: Nanos,
}

impl Watch {
    pub(crate) fn new(policy: SlowdownPolicy) -> Self {
        Self { policy, warned: false, bad: 0, spent: Estimate::default(), cpu: Nanos::ZERO }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.policy != SlowdownPolicy::Off
    }

    /// True if a check at this CPU time would tell anything.
    pub(crate) fn is_due(&self, cpu: Nanos) -> bool {
        cpu.since(self.cpu) >= LEAST_CPU
    }

    /// Checks the totals since the start: the cost of the probes and the CPU time used.
    pub(crate) fn check(&mut self, spent: Estimate, cpu: Nanos) -> BudgetAction {
        if !self.is_due(cpu) {
            return BudgetAction::Fine;
        }
        let (stretch, length) = (spent.since(&self.spent), cpu.since(self.cpu));
        (self.spent, self.cpu) = (spent, cpu);
        let (cost, used) = (stretch.least.0 as f64, length.0 as f64);
        // The target's own work is its CPU time less that of the probes. If the probes took most of
        // it, a small error of their cost is a large one of the rest.
        let percent = 100.0 * cost / (used - cost).max(used * 0.01);
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

    /// Checks totals of the least and the most cost, and of CPU time, in milliseconds.
    #[track_caller]
    fn check(policy: SlowdownPolicy, millis: &[(u64, u64, u64)], want: &[&str]) {
        let mut watch = Watch::new(policy);
        let nanos = Nanos::from_millis;
        let each = millis.iter().map(|(least, most, cpu)| {
            let spent = Estimate { least: nanos(*least), most: Some(nanos(*most)) };
            match watch.check(spent, nanos(*cpu)) {
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

    #[test]
    fn only_a_certain_slowdown_is_acted_on() {
        let steps = [(100, 600, 1000), (200, 1200, 2000), (300, 1800, 3000)];
        check(SlowdownPolicy::StopBeyond(20.0), &steps, &[""; 3]);
        let stopped = ["", "stop: between 1.11 and 2.5× slower"];
        check(SlowdownPolicy::StopBeyond(10.0), &steps[..2], &stopped);
    }

    #[test]
    fn a_burst_in_an_idle_target_is_none() {
        check(SlowdownPolicy::Warn, &[(50, 55, 60), (90, 95, 100)], &["", ""]);
    }
}
