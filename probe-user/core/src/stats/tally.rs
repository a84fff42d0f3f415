//! The running sums of one path node: all numbers that need no memory of single calls.

use crate::waits::Waits;

/// Sums over finished calls. Sums saturate, so that absurd times cannot wrap into plausible ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tally {
    /// The number of calls with a known duration.
    pub timed: u64,
    pub untimed: u64,
    pub timed_ns: u64,
    /// The time that untimed calls were seen to last.
    pub untimed_ns: u64,
    pub self_ns: u64,
    /// The parts of the durations in which the thread waited.
    pub(crate) waits: Waits,
    /// The shortest timed call; the largest number if there is none.
    pub min_ns: u64,
    pub max_ns: u64,
    /// The sum of the squares of the timed calls' durations.
    pub squares: u128,
}

impl Default for Tally {
    fn default() -> Self {
        Self {
            timed: 0,
            untimed: 0,
            timed_ns: 0,
            untimed_ns: 0,
            self_ns: 0,
            waits: Waits::default(),
            min_ns: u64::MAX,
            max_ns: 0,
            squares: 0,
        }
    }
}

impl Tally {
    #[inline]
    pub(crate) fn add_timed(&mut self, duration: u64, own: u64) {
        self.timed += 1;
        self.timed_ns = self.timed_ns.saturating_add(duration);
        self.self_ns = self.self_ns.saturating_add(own);
        self.min_ns = self.min_ns.min(duration);
        self.max_ns = self.max_ns.max(duration);
        self.squares = self.squares.saturating_add(u128::from(duration) * u128::from(duration));
    }

    pub(crate) fn add_untimed(&mut self, duration: u64, own: u64) {
        self.untimed += 1;
        self.untimed_ns = self.untimed_ns.saturating_add(duration);
        self.self_ns = self.self_ns.saturating_add(own);
    }

    pub(crate) fn sum<'a>(tallies: impl Iterator<Item = &'a Self>) -> Self {
        tallies.fold(Self::default(), |mut sum, tally| {
            sum.merge(tally);
            sum
        })
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.timed = self.timed.saturating_add(other.timed);
        self.untimed = self.untimed.saturating_add(other.untimed);
        self.timed_ns = self.timed_ns.saturating_add(other.timed_ns);
        self.untimed_ns = self.untimed_ns.saturating_add(other.untimed_ns);
        self.self_ns = self.self_ns.saturating_add(other.self_ns);
        self.waits.add(other.waits);
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
        self.squares = self.squares.saturating_add(other.squares);
    }

    /// Returns the sums without calls that this tally includes. The extremes are still those of
    /// all.
    pub(crate) fn since(&self, earlier: &Self) -> Self {
        let timed = self.timed.saturating_sub(earlier.timed);
        let none = Self::default();
        let extremes = if timed == 0 { &none } else { self };
        Self {
            timed,
            untimed: self.untimed.saturating_sub(earlier.untimed),
            timed_ns: self.timed_ns.saturating_sub(earlier.timed_ns),
            untimed_ns: self.untimed_ns.saturating_sub(earlier.untimed_ns),
            self_ns: self.self_ns.saturating_sub(earlier.self_ns),
            waits: self.waits.since(earlier.waits),
            min_ns: extremes.min_ns,
            max_ns: extremes.max_ns,
            squares: self.squares.saturating_sub(earlier.squares),
        }
    }

    /// Narrows the extremes to these bounds on every duration. Extremes beyond those of `earlier`,
    /// which was subtracted, are exact and stay.
    pub(crate) fn narrow(&mut self, earlier: &Self, least: u64, most: u64) {
        if self.min_ns >= earlier.min_ns {
            self.min_ns = self.min_ns.max(least);
        }
        if self.max_ns <= earlier.max_ns {
            self.max_ns = self.max_ns.min(most);
        }
    }

    /// Returns the number of ended calls, with or without a known duration.
    pub fn ended(&self) -> u64 {
        self.timed.saturating_add(self.untimed)
    }

    pub fn total_ns(&self) -> u64 {
        self.timed_ns.saturating_add(self.untimed_ns)
    }

    pub fn min(&self) -> Option<u64> {
        (self.timed > 0).then_some(self.min_ns)
    }

    pub fn max(&self) -> Option<u64> {
        (self.timed > 0).then_some(self.max_ns)
    }

    pub fn mean(&self) -> Option<u64> {
        mean(self.timed_ns, self.timed)
    }

    /// Returns the standard deviation of the population, rounded, and the exact one divided by the
    /// mean.
    pub fn spread(&self) -> Option<(u64, Option<f64>)> {
        let (sd, cv) = self.deviation()?;
        Some((sd.round() as u64, cv))
    }

    /// Returns the standard deviation of the population, and that divided by the mean.
    ///
    /// Deviations are taken from the whole part of the mean, in integers, so nothing cancels.
    pub(crate) fn deviation(&self) -> Option<(f64, Option<f64>)> {
        let (floor, rest) = (self.timed_ns.checked_div(self.timed)?, self.timed_ns % self.timed);
        let [n, sum, m] = [self.timed, self.timed_ns, floor].map(u128::from);
        let squares = self.squares.saturating_add(n.saturating_mul(m * m));
        let deviations = squares.saturating_sub((m * sum).saturating_mul(2)) as f64;
        let shift = rest as f64 / n as f64;
        let sd = (deviations / n as f64 - shift * shift).max(0.0).sqrt();
        let mean = sum as f64 / n as f64;
        Some((sd, (mean > 0.0).then(|| sd / mean)))
    }
}

/// Returns `sum / count`, rounded to the nearest integer.
pub(crate) fn mean(sum: u64, count: u64) -> Option<u64> {
    let (sum, count) = (u128::from(sum), u128::from(count));
    (sum + count / 2).checked_div(count).map(|mean| mean as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(durations: &[u64], mean: Option<u64>, sd: Option<u64>, cv: Option<f64>) {
        let mut tally = Tally::default();
        for &duration in durations {
            tally.add_timed(duration, duration);
        }
        assert_eq!(tally.mean(), mean, "{durations:?}");
        assert_eq!(tally.spread().map(|s| s.0), sd, "{durations:?}");
        match (tally.spread().and_then(|s| s.1), cv) {
            (Some(got), Some(cv)) => assert!((got - cv).abs() < 1e-9, "{durations:?}: {got}"),
            (got, cv) => assert_eq!(got, cv, "{durations:?}"),
        }
    }

    #[test]
    fn spread_is_the_populations() {
        check(&[], None, None, None);
        check(&[0, 0], Some(0), Some(0), None);
        check(&[5], Some(5), Some(0), Some(0.0));
        check(&[2, 4, 4, 4, 5, 5, 7, 9], Some(5), Some(2), Some(0.4));
        check(&[1, 2], Some(2), Some(1), Some(1.0 / 3.0));
        let far = 1 << 50;
        check(&[far, far + 6], Some(far + 3), Some(3), Some(3.0 / (far + 3) as f64));
    }

    #[test]
    fn absurd_times_saturate() {
        let mut tally = Tally::default();
        for _ in 0..3 {
            tally.add_timed(u64::MAX, u64::MAX);
            tally.add_untimed(u64::MAX, u64::MAX);
        }
        assert_eq!(tally.total_ns(), u64::MAX);
        assert!(tally.spread().is_some());
    }
}
