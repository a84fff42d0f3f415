//! How much the probes slow the target: hits seen times what a hit costs by its class, against the
//! CPU time that the target used. An estimate, and told as one; `ctrace doctor --calibrate` measures
//! the costs.

use ctrace_core::units::Nanos;

/// Warn beyond this much of the target's own CPU time.
const WARN_PERCENT: f64 = 50.0;
/// Stretches with less CPU time say nothing: hits become known a little later than the time.
const LEAST_CPU: Nanos = Nanos::from_millis(1_000);
/// So many stretches in a row must be bad.
const BAD_STRETCHES: u32 = 2;

/// What to do about a target that the probes slow.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum SlowdownPolicy {
    Off,
    #[default]
    Warn,
    /// End the session beyond so many percent.
    StopBeyond(f64),
}

/// What to do now.
#[derive(Debug, PartialEq)]
pub(crate) enum Verdict {
    Fine,
    Warn(f64),
    Stop(f64),
}

/// Compares the cost of the hits of each stretch with the CPU time the target had in it.
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

    /// Whether a check at this CPU time would tell anything.
    pub(crate) fn is_due(&self, cpu: Nanos) -> bool {
        cpu.since(self.cpu) >= LEAST_CPU
    }

    /// Both arguments are totals since the start: what probes cost, what CPU time was used.
    pub(crate) fn check(&mut self, spent: Nanos, cpu: Nanos) -> Verdict {
        if !self.is_due(cpu) {
            return Verdict::Fine;
        }
        let used = cpu.since(self.cpu);
        let (cost, used) = (spent.since(self.spent).0 as f64, used.0 as f64);
        (self.spent, self.cpu) = (spent, cpu);
        // The target's own work is what the probes left of its CPU time. Where they took most of it, a
        // small error of their cost is a large one of the rest. They cost more there than they did
        // when they were measured, so this is the least that they slow it.
        let percent = 100.0 * cost / (used - cost).max(used * 0.01);
        let limit = match self.policy {
            SlowdownPolicy::Off => f64::INFINITY,
            SlowdownPolicy::Warn => WARN_PERCENT,
            SlowdownPolicy::StopBeyond(limit) => limit,
        };
        self.bad = if percent > limit { self.bad + 1 } else { 0 };
        match self.policy {
            _ if self.bad < BAD_STRETCHES => Verdict::Fine,
            SlowdownPolicy::StopBeyond(_) => Verdict::Stop(percent),
            _ if self.warned => Verdict::Fine,
            _ => {
                self.warned = true;
                Verdict::Warn(percent)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(policy: SlowdownPolicy, millis: &[(u64, u64)], want: &[Verdict]) {
        let mut watch = Watch::new(policy);
        let nanos = Nanos::from_millis;
        let got: Vec<_> =
            millis.iter().map(|(spent, cpu)| watch.check(nanos(*spent), nanos(*cpu))).collect();
        assert_eq!(got, want);
    }

    #[test]
    fn a_slow_target_is_told_once() {
        let steps = [(10, 1000), (510, 2000), (1010, 3000), (1510, 4000)];
        let warned = [Verdict::Fine, Verdict::Fine, Verdict::Warn(100.0), Verdict::Fine];
        check(SlowdownPolicy::Warn, &steps, &warned);
        check(SlowdownPolicy::Off, &steps, &[const { Verdict::Fine }; 4]);
    }

    #[test]
    fn a_limit_stops_after_two_bad_stretches() {
        let limit = SlowdownPolicy::StopBeyond(20.0);
        let steps = [(500, 1000), (510, 2000), (1010, 3000), (1510, 4000)];
        let stopped = [Verdict::Fine, Verdict::Fine, Verdict::Fine, Verdict::Stop(100.0)];
        check(limit, &steps, &stopped);
    }

    #[test]
    fn a_burst_in_an_idle_target_is_none() {
        check(SlowdownPolicy::Warn, &[(50, 60), (90, 100)], &[Verdict::Fine, Verdict::Fine]);
    }
}
