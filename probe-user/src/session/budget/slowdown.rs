//! The slowdown of the target by the probes: hits seen times the cost of a hit by its class,
//! relative to the CPU time that the target used. It is an estimate, and reported as one; `ctrace
//! doctor --calibrate` measures the costs.

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

/// The action to take now.
#[derive(Debug, PartialEq)]
pub(crate) enum BudgetAction {
    Fine,
    Warn(f64),
    Stop(f64),
}

/// Compares the cost of the hits of each stretch with the CPU time that the target had in it.
pub(crate) struct Watch {
    policy: SlowdownPolicy,
    warned: bool,
    bad: u32,
    spent: Nanos,
    cpu: Nanos,
}

impl Watch {
    pub(crate) fn new(policy: SlowdownPolicy) -> Self {
        Self { policy, warned: false, bad: 0, spent: Nanos::ZERO, cpu: Nanos::ZERO }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.policy != SlowdownPolicy::Off
    }

    /// True if a check at this CPU time would tell anything.
    pub(crate) fn is_due(&self, cpu: Nanos) -> bool {
        cpu.since(self.cpu) >= LEAST_CPU
    }

    /// Checks the totals since the start: the cost of the probes and the CPU time used.
    pub(crate) fn check(&mut self, spent: Nanos, cpu: Nanos) -> BudgetAction {
        if !self.is_due(cpu) {
            return BudgetAction::Fine;
        }
        let used = cpu.since(self.cpu);
        let (cost, used) = (spent.since(self.spent).0 as f64, used.0 as f64);
        (self.spent, self.cpu) = (spent, cpu);
        // The target's own work is its CPU time less that of the probes. If the probes took most of
        // it, a small error of their cost is a large one of the rest. They cost more then than when
        // they were measured, so this is the least slowdown.
        let percent = 100.0 * cost / (used - cost).max(used * 0.01);
        let limit = match self.policy {
            SlowdownPolicy::Off => f64::INFINITY,
            SlowdownPolicy::Warn => WARN_PERCENT,
            SlowdownPolicy::StopBeyond(limit) => limit,
        };
        self.bad = if percent > limit { self.bad + 1 } else { 0 };
        match self.policy {
            _ if self.bad < BAD_STRETCHES => BudgetAction::Fine,
            SlowdownPolicy::StopBeyond(_) => BudgetAction::Stop(percent),
            _ if self.warned => BudgetAction::Fine,
            _ => {
                self.warned = true;
                BudgetAction::Warn(percent)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(policy: SlowdownPolicy, millis: &[(u64, u64)], want: &[BudgetAction]) {
        let mut watch = Watch::new(policy);
        let nanos = Nanos::from_millis;
        let got: Vec<_> =
            millis.iter().map(|(spent, cpu)| watch.check(nanos(*spent), nanos(*cpu))).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn a_slow_target_is_told_once() {
        let steps = [(10, 1000), (510, 2000), (1010, 3000), (1510, 4000)];
        let warned =
            [BudgetAction::Fine, BudgetAction::Fine, BudgetAction::Warn(100.0), BudgetAction::Fine];
        check(SlowdownPolicy::Warn, &steps, &warned);
        check(SlowdownPolicy::Off, &steps, &[const { BudgetAction::Fine }; 4]);
    }

    #[test]
    fn a_limit_stops_after_two_bad_stretches() {
        let limit = SlowdownPolicy::StopBeyond(20.0);
        let steps = [(500, 1000), (510, 2000), (1010, 3000), (1510, 4000)];
        let stopped =
            [BudgetAction::Fine, BudgetAction::Fine, BudgetAction::Fine, BudgetAction::Stop(100.0)];
        check(limit, &steps, &stopped);
    }

    #[test]
    fn a_burst_in_an_idle_target_is_none() {
        check(
            SlowdownPolicy::Warn,
            &[(50, 60), (90, 100)],
            &[BudgetAction::Fine, BudgetAction::Fine],
        );
    }
}
