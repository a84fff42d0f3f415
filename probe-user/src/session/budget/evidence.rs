//! The cost of the probes, between bounds. A hit costs at least what it costs in a loop, where that was
//! measured. The kernel charges the work of a probe to its target as system time, so the probes cost
//! at most the target's system time. Nothing tells how much of that is the target's own: what it used
//! before the probes came is no proof, as it may do other work now.

use super::costs::Spent;
use crate::target::process::cpu_times::CpuTimes;
use ctrace_core::units::Nanos;

/// Above this factor a slowdown is not told in figures: hardly anything is left to compare with.
const MOST: f64 = 10.0;
/// Factors that differ by less are one.
const SAME: f64 = 1.25;

/// Returns the target's own work: its CPU time less that of the probes. If the probes took most of it,
/// a small error of their cost is a large one of the rest.
pub(crate) fn own(cpu: Nanos, cost: Nanos) -> f64 {
    let (cpu, cost) = (cpu.0 as f64, cost.0 as f64);
    (cpu - cost).max(cpu * 0.01)
}

/// Returns the least cost in percent of the target's own work, in words.
pub(crate) fn share_of_own(cpu: Nanos, cost: Nanos) -> String {
    let most = 100.0 * (MOST - 1.0);
    let percent = percent_of_own(cpu, cost);
    if percent > most { format!("more than {most} %") } else { format!("at least {percent:.0} %") }
}

/// Returns the cost in percent of the target's own work.
pub(crate) fn percent_of_own(cpu: Nanos, cost: Nanos) -> f64 {
    100.0 * cost.0 as f64 / own(cpu, cost)
}

/// The cost of the probes, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Estimate {
    pub(crate) least: Nanos,
    /// `None` if nothing tells.
    pub(crate) most: Option<Nanos>,
}

impl Estimate {
    /// Judges the cost of hits. `measured`: the cost of a hit was measured on this machine. `used`: the
    /// CPU time of the target since its probes are in place.
    pub(crate) fn of(spent: &Spent, measured: bool, used: Option<CpuTimes>) -> Self {
        let with_aside = |trapped: Nanos| trapped.saturating_add(spent.aside);
        let Some(CpuTimes { user, system }) = used else {
            return Self { least: with_aside(spent.least), most: None };
        };
        let bound = system.saturating_add(spent.unseen.min(user));
        // Without traps, the probes add nothing to the system time.
        let is_known = measured || spent.traps == Nanos::ZERO;
        let most = if is_known { bound.min(spent.cold()) } else { bound };
        // A kernel that cannot tick within a trap charges all of it as user time. What was measured
        // holds there as well.
        let least = if measured { spent.least } else { spent.least.min(most) };
        Self { least: with_aside(least), most: Some(with_aside(most.max(least))) }
    }

    /// Returns how many times as long the target takes, at least and at most, in this CPU time.
    fn factors(&self, cpu: Nanos) -> (f64, Option<f64>) {
        let factor = |cost| cpu.0 as f64 / own(cpu, cost);
        (factor(self.least), self.most.map(factor))
    }

    /// Returns the slowdown in words, for a CPU time of the target that includes the probes.
    pub(crate) fn slowdown(&self, cpu: Nanos) -> String {
        let digits = |factor: f64| if factor < 2.0 { 2 } else { 1 };
        let rounded = |factor: f64| format!("{factor:.*}", digits(factor));
        let scale = |factor: f64| 10_f64.powi(digits(factor) as i32);
        // What is told contains the truth.
        let down = |factor: f64| rounded((factor * scale(factor)).floor() / scale(factor));
        let up = |factor: f64| rounded((factor * scale(factor)).ceil() / scale(factor));
        match self.factors(cpu) {
            (least, _) if least > MOST => format!("more than {MOST}× slower"),
            (least, Some(most)) if most < least * SAME => {
                format!("about {}× slower", rounded((least * most).sqrt()))
            }
            (least, Some(most)) if most <= MOST => {
                format!("between {} and {}× slower", down(least), up(most))
            }
            (least, Some(_)) => {
                format!("at least {}× slower, maybe over {MOST}×", down(least))
            }
            (least, _) => format!("at least {}× slower", down(least)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    /// Returns what is told of hits that cost so many milliseconds at least, and a tenth of it unseen.
    fn told(hits: u64, measured: bool, user: u64, system: u64) -> String {
        let traps = if measured { MS(hits) } else { MS(2 * hits) };
        let (least, unseen) = (MS(hits), MS(hits / 10));
        let spent = Spent { traps, least, unseen, aside: Nanos::ZERO };
        let used = CpuTimes { user: MS(user), system: MS(system) };
        Estimate::of(&spent, measured, Some(used)).slowdown(MS(user + system))
    }

    #[test]
    fn the_system_time_is_the_bound() {
        assert_eq!(told(1_000, true, 1_600, 1_900), "between 1.40 and 2.4× slower");
        assert_eq!(told(1_750, true, 1_600, 1_900), "about 2.2× slower");
        assert_eq!(told(1_500, true, 300, 1_850), "at least 3.3× slower, maybe over 10×");
        assert_eq!(told(9_000, true, 500, 8_900), "more than 10× slower");
    }

    /// Few hits are not to blame for the time that the target is in the kernel.
    #[test]
    fn a_measured_cost_bounds_it_as_well() {
        assert_eq!(told(10, true, 500, 9_000), "about 1.00× slower");
        assert_eq!(told(150, true, 900, 1_000), "between 1.08 and 1.47× slower");
        assert_eq!(told(150, false, 900, 1_000), "between 1.08 and 2.2× slower");
    }

    /// The probes cannot cost more than the target was in the kernel.
    #[test]
    fn a_guess_that_is_too_high_is_none() {
        assert_eq!(told(3_000, false, 3_300, 1_000), "about 1.43× slower");
    }

    #[test]
    fn scopes_are_no_system_time() {
        let spent = Spent { aside: MS(500), ..Spent::default() };
        let used = CpuTimes { user: MS(1_000), system: MS(10) };
        let estimate = |measured| Estimate::of(&spent, measured, Some(used));
        assert_eq!(estimate(true), Estimate { least: MS(500), most: Some(MS(500)) });
        assert_eq!(estimate(false), estimate(true));
    }

    /// Where hardly anything is left to compare with, no figure is told.
    #[test]
    fn a_share_of_hardly_anything_is_no_figure() {
        for (cost, told) in [
            (30, "at least 3 %"),
            (500, "at least 100 %"),
            (899, "at least 890 %"),
            (901, "more than 900 %"),
            (3_000, "more than 900 %"),
        ] {
            assert_eq!(share_of_own(MS(1_000), MS(cost)), told, "{cost}");
        }
    }

    #[test]
    fn a_cost_that_nothing_bounds_is_the_least() {
        let spent = Spent { traps: MS(700), least: MS(500), ..Spent::default() };
        let estimate = Estimate::of(&spent, true, None);
        assert_eq!(estimate.slowdown(MS(1_004)), "at least 1.99× slower");
    }
}
