//! The cost of the probes, judged by the target's own clock. Hits times the cost of a hit is a guess
//! where that was not measured, and too little where caches are cold. The kernel charges the work of
//! a probe to its target as system time: the probes cannot cost more than that, and where the
//! target's own system time is known, they cost the rest.

use super::costs::Spent;
use crate::target::process::cpu_times::CpuTimes;
use ctrace_core::units::Nanos;

/// A hit costs this many times as much where the target has used the caches for other things.
const COLD: f64 = 4.0;
/// A guess of the cost of a hit may be twice as much as it really is.
const GUESSED: f64 = 0.5;
/// A target with less CPU time before the probes came has no habits.
const HABIT: Nanos = Nanos::from_millis(500);
/// The part by which the target's own system time may differ from what it was before.
const CHANGE: f64 = 0.25;
/// Above this factor a slowdown is not told in figures: hardly anything is left to compare with.
const MOST: f64 = 10.0;
/// Factors that differ by less are one.
const SAME: f64 = 1.25;

/// The CPU time of the target since its probes are in place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Used {
    pub(crate) user: Nanos,
    pub(crate) system: Nanos,
    /// Its own system time for each unit of user time, as it was before.
    pub(crate) habit: Option<f64>,
}

/// Returns the system time for each unit of user time of a target that has run before.
pub(crate) fn habit(before: CpuTimes) -> Option<f64> {
    let has_run = before.user.saturating_add(before.system) >= HABIT && before.user > Nanos::ZERO;
    has_run.then(|| before.system.0 as f64 / before.user.0 as f64)
}

/// The cost of the probes, as far as it is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Estimate {
    pub(crate) least: Nanos,
    /// `None` if nothing tells.
    pub(crate) most: Option<Nanos>,
}

impl Estimate {
    /// Judges the cost of hits. `measured`: the cost of a hit was measured on this machine.
    pub(crate) fn of(spent: &Spent, measured: bool, used: Option<Used>) -> Self {
        let Some(Used { user, system, habit }) = used else {
            return Self { least: spent.cost, most: None };
        };
        let aside = spent.cost.since(spent.trapped);
        let hits = spent.trapped.0 as f64;
        let unseen = (spent.unseen.0 as f64).min(user.0 as f64);
        let bound = system.0 as f64 + unseen;
        let most = bound.min(COLD * hits);
        let least = hits.min(most);
        let (least, most) = match habit {
            None => (least, most),
            Some(habit) => {
                let own = habit * (user.0 as f64 - unseen);
                let floor = if measured { least } else { GUESSED * least };
                let without = |own: f64| (bound - own).clamp(floor, most);
                (without((1.0 + CHANGE) * own), without((1.0 - CHANGE) * own))
            }
        };
        let with_aside = |ns: f64| Nanos(ns as u64).saturating_add(aside);
        Self { least: with_aside(least), most: Some(with_aside(most)) }
    }

    /// Takes away an earlier stretch with which this one begins.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let most = |most: Nanos| most.since(earlier.most.unwrap_or_default());
        Self { least: self.least.since(earlier.least), most: self.most.map(most) }
    }

    /// Returns how many times as long the target takes, at least and at most, in this CPU time.
    fn factors(&self, cpu: Nanos) -> (f64, Option<f64>) {
        let factor = |cost: Nanos| {
            let (cpu, cost) = (cpu.0 as f64, cost.0 as f64);
            cpu / (cpu - cost).max(cpu * 0.01)
        };
        (factor(self.least), self.most.map(factor))
    }

    /// Returns the slowdown in words, for a CPU time of the target that includes the probes.
    pub(crate) fn slowdown(&self, cpu: Nanos) -> String {
        let digits = |factor: f64| if factor < 2.0 { 2 } else { 1 };
        let rounded = |factor: f64| format!("{factor:.*}", digits(factor));
        // Rounded down: that much is certain.
        let down = |factor: f64| {
            let scale = 10_f64.powi(digits(factor) as i32);
            rounded((factor * scale).floor() / scale)
        };
        match self.factors(cpu) {
            (least, _) if least > MOST => format!("more than {MOST}× slower"),
            (least, Some(most)) if most < least * SAME => {
                format!("about {}× slower", rounded((least * most).sqrt()))
            }
            (least, Some(most)) if most <= MOST => {
                format!("between {} and {}× slower", rounded(least), rounded(most))
            }
            (least, _) => format!("at least {}× slower", down(least)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Nanos = Nanos::from_millis;

    /// Returns what is told of hits that cost so many milliseconds by the guess, a tenth of it unseen.
    fn told(hits: u64, user: u64, system: u64, habit: Option<f64>) -> String {
        let spent = Spent { cost: MS(hits), trapped: MS(hits), unseen: MS(hits / 10) };
        let used = Used { user: MS(user), system: MS(system), habit };
        Estimate::of(&spent, false, Some(used)).slowdown(MS(user + system))
    }

    #[test]
    fn a_target_with_a_known_habit_is_told_plainly() {
        // It used no system time before, so all of it is the probes'. The guess is half of that.
        assert_eq!(told(1_000, 1_600, 1_900, Some(0.0)), "about 2.3× slower");
        // It was in the kernel for half of its time before, too.
        assert_eq!(told(100, 1_010, 1_090, Some(1.0)), "about 1.11× slower");
        // A guess that exceeds the system time is too high.
        assert_eq!(told(3_000, 3_300, 1_000, Some(0.0)), "about 1.43× slower");
    }

    #[test]
    fn without_a_habit_the_system_time_is_the_bound() {
        assert_eq!(told(1_000, 1_600, 1_900, None), "between 1.40 and 2.3× slower");
        // Few hits are not to blame for the time that the target is in the kernel.
        assert_eq!(told(10, 500, 9_000, None), "about 1.00× slower");
        assert_eq!(told(1_500, 300, 1_850, None), "at least 3.3× slower");
        assert_eq!(told(9_000, 500, 8_900, None), "more than 10× slower");
    }

    #[test]
    fn scopes_are_no_system_time() {
        let spent = Spent { cost: MS(500), trapped: MS(0), unseen: MS(0) };
        let used = Used { user: MS(1_000), system: MS(10), habit: None };
        let estimate = Estimate::of(&spent, false, Some(used));
        assert_eq!(estimate, Estimate { least: MS(500), most: Some(MS(500)) });
    }

    #[test]
    fn a_cost_that_nothing_bounds_is_the_least() {
        let spent = Spent { cost: MS(500), trapped: MS(500), unseen: MS(0) };
        let estimate = Estimate::of(&spent, true, None);
        assert_eq!(estimate.slowdown(MS(1_004)), "at least 1.99× slower");
    }

    #[test]
    fn a_habit_needs_time() {
        let before = |user, system| habit(CpuTimes { user: MS(user), system: MS(system) });
        assert_eq!(before(300, 100), None);
        assert_eq!(before(600, 150), Some(0.25));
    }
}
