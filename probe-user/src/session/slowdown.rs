//! How much the probes slow the target: hits seen times what a hit costs here, against the time
//! that passed. An estimate, and told as one; the cost figures are those of docs/overhead.md
//! unless this machine was calibrated.

use crate::cli::SlowdownArg;
use ctrace_core::units::Nanos;

/// Warn beyond this much of the time of the target's busiest stretch.
const WARN_PERCENT: f64 = 50.0;

/// What to do now.
#[derive(Debug, PartialEq)]
pub enum Verdict {
    Fine,
    Warn(f64),
    Stop(f64),
}

/// Compares the cost of the hits of each stretch with the CPU time the target had in it.
pub struct Watch {
    policy: SlowdownArg,
    warned: bool,
    spent: Nanos,
    cpu: Nanos,
}

impl Watch {
    pub fn new(policy: SlowdownArg) -> Self {
        Self { policy, warned: false, spent: Nanos::ZERO, cpu: Nanos::ZERO }
    }

    /// Both arguments are totals since the start: what probes cost, what CPU time was used.
    pub fn check(&mut self, spent: Nanos, cpu: Nanos) -> Verdict {
        let cost = spent.since(self.spent).0 as f64;
        let used = cpu.since(self.cpu).0 as f64;
        (self.spent, self.cpu) = (spent, cpu);
        // The target's own work is what the probes left of its CPU time.
        let own = (used - cost).max(used * 0.01);
        if own <= 0.0 || cost <= 0.0 {
            return Verdict::Fine;
        }
        let percent = 100.0 * cost / own;
        match self.policy {
            SlowdownArg::StopBeyond(limit) if percent > limit => Verdict::Stop(percent),
            SlowdownArg::Warn if percent > WARN_PERCENT && !self.warned => {
                self.warned = true;
                Verdict::Warn(percent)
            }
            _ => Verdict::Fine,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(policy: SlowdownArg, steps: &[(u64, u64)], want: &[Verdict]) {
        let mut watch = Watch::new(policy);
        let got: Vec<_> =
            steps.iter().map(|(spent, cpu)| watch.check(Nanos(*spent), Nanos(*cpu))).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn a_slow_stretch_is_told_once() {
        let steps = [(10, 1000), (510, 2000), (1010, 3000)];
        check(SlowdownArg::Warn, &steps, &[Verdict::Fine, Verdict::Warn(100.0), Verdict::Fine]);
        check(SlowdownArg::Off, &steps, &[Verdict::Fine, Verdict::Fine, Verdict::Fine]);
    }

    #[test]
    fn a_limit_stops() {
        let limit = SlowdownArg::StopBeyond(20.0);
        check(limit, &[(100, 1000), (400, 1600)], &[Verdict::Fine, Verdict::Stop(100.0)]);
    }

    #[test]
    fn an_idle_target_is_not_slowed() {
        check(SlowdownArg::Warn, &[(0, 0), (0, 0)], &[Verdict::Fine, Verdict::Fine]);
    }
}
