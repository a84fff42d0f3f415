//! Converts the TSC to CLOCK_MONOTONIC.
//!
//! The rates of the clocks change all the time, so their relation is measured: the session takes a
//! sample of both after each reading of the buffers. Every event lies between two samples, where
//! the relation is a straight line.

use super::layout::Clock;
use crate::units::Nanos;
use ctrace_common::Mark;
use std::collections::VecDeque;

/// A reading of the TSC.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticks(pub u64);

/// Both clocks at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockSample {
    pub ticks: Ticks,
    pub time: Nanos,
}

/// Limit of kept samples. At ten a second, events older than some minutes use the oldest line.
const SAMPLES: usize = 4096;
/// Fractional bits of a line's slope.
const SHIFT: u32 = 52;

/// The distances of samples from the line through the two before them. They come from changes of
/// the clocks' rates and from the uncertainty of reading both at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockResidual {
    pub samples: u64,
    pub mean: Nanos,
    pub largest: Nanos,
}

/// The map between the clocks: see the module.
#[derive(Debug, Default)]
pub(super) struct ClockMap {
    lines: VecDeque<Line>,
    latest: Option<ClockSample>,
    /// The number of samples, and the sum and maximum of their residuals.
    residuals: (u64, u64, u64),
}

/// The line between two samples.
#[derive(Clone, Copy, Debug)]
struct Line {
    from: ClockSample,
    to: ClockSample,
    /// Nanoseconds per tick, in fixed point.
    slope: u64,
}

#[inline]
fn scaled(ticks: u64, slope: u64) -> u128 {
    (u128::from(ticks) * u128::from(slope)) >> SHIFT
}

impl Line {
    fn between(from: ClockSample, to: ClockSample) -> Option<Self> {
        let ticks = to.ticks.0.checked_sub(from.ticks.0).filter(|ticks| *ticks > 0)?;
        let nanos = to.time.0.checked_sub(from.time.0)?;
        let slope = u64::try_from((u128::from(nanos) << SHIFT) / u128::from(ticks)).ok()?;
        Some(Self { from, to, slope })
    }

    /// Returns the time at `ticks`, on this line or its extension.
    fn at(&self, ticks: Ticks) -> Nanos {
        let scaled = |ticks| u64::try_from(scaled(ticks, self.slope)).unwrap_or(u64::MAX);
        match ticks.0.checked_sub(self.from.ticks.0) {
            Some(after) => Nanos(self.from.time.0.saturating_add(scaled(after))),
            None => Nanos(self.from.time.0.saturating_sub(scaled(self.from.ticks.0 - ticks.0))),
        }
    }
}

impl ClockMap {
    /// Returns whether the clocks have gone back since the last sample.
    pub(super) fn is_set_back_by(&self, sample: ClockSample) -> bool {
        self.latest.is_some_and(|last| sample.ticks < last.ticks || sample.time < last.time)
    }

    /// Adds a later sample. One that goes back, as after a machine's sleep, restarts the map.
    pub(super) fn add(&mut self, sample: ClockSample) {
        if let Some(latest) = self.latest {
            match Line::between(latest, sample) {
                Some(line) => {
                    if let Some(before) = self.lines.back() {
                        let residual = before.at(sample.ticks).0.abs_diff(sample.time.0);
                        let (samples, sum, largest) = self.residuals;
                        let sum = sum.saturating_add(residual);
                        self.residuals = (samples + 1, sum, largest.max(residual));
                    }
                    if self.lines.len() == SAMPLES {
                        self.lines.pop_front();
                    }
                    self.lines.push_back(line);
                }
                None if self.is_set_back_by(sample) => self.lines.clear(),
                None => return,
            }
        }
        self.latest = Some(sample);
    }

    pub(super) fn residual(&self) -> ClockResidual {
        let (samples, sum, largest) = self.residuals;
        let mean = Nanos(sum.checked_div(samples).unwrap_or(0));
        ClockResidual { samples, mean, largest: Nanos(largest) }
    }

    /// Returns the converter for a buffer's events; `None` before the first sample.
    pub(super) fn times(&self, clock: Clock) -> Option<Times<'_>> {
        let latest = self.latest?;
        let (latest, span) = match clock {
            Clock::Tsc => (latest.ticks.0, 0),
            Clock::Monotonic => (latest.time.0, u64::MAX),
        };
        let latest = latest.saturating_add(AHEAD);
        Some(Times { map: self, latest, from: 0, span, time: 0, slope: 1 << SHIFT })
    }

    /// Returns the line of `ticks`, or the nearest one.
    fn line(&self, ticks: Ticks) -> Option<Line> {
        let after = self.lines.partition_point(|line| line.to.ticks <= ticks);
        self.lines.get(after.min(self.lines.len().checked_sub(1)?)).copied()
    }
}

/// A generous limit of the difference between two CPUs' clocks.
const AHEAD: u64 = 1 << 20;

/// Converts times of events from the low bits of the writer's clock.
#[derive(Debug)]
pub(super) struct Times<'a> {
    map: &'a ClockMap,
    /// The latest possible time of an event, by the writer's clock.
    latest: u64,
    // The line that was used last: its start and length by the writer's clock, time and slope.
    from: u64,
    span: u64,
    time: u64,
    slope: u64,
}

impl Times<'_> {
    /// Returns `None` while the relation of the clocks is unknown.
    #[inline]
    pub(super) fn at(&mut self, low: u64) -> Option<u64> {
        let whole = self.latest.saturating_sub(self.age(low));
        let after = whole.wrapping_sub(self.from);
        if after >= self.span {
            return self.on_another_line(Ticks(whole));
        }
        Some(self.time.wrapping_add(scaled(after, self.slope) as u64))
    }

    /// Returns the time of the oldest of these.
    pub(super) fn oldest(&mut self, lows: impl Iterator<Item = u64>) -> Option<u64> {
        let low = lows.max_by_key(|low| self.age(*low))?;
        self.at(low)
    }

    /// Returns the age by the writer's clock.
    #[inline]
    fn age(&self, low: u64) -> u64 {
        self.latest.wrapping_sub(low) & ((1 << Mark::TIME_BITS) - 1)
    }

    #[cold]
    #[inline(never)]
    fn on_another_line(&mut self, ticks: Ticks) -> Option<u64> {
        let line = self.map.line(ticks)?;
        (self.from, self.time, self.slope) = (line.from.ticks.0, line.from.time.0, line.slope);
        self.span = line.to.ticks.0 - line.from.ticks.0;
        Some(line.at(ticks).0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(samples: &[(u64, u64)]) -> ClockMap {
        let mut map = ClockMap::default();
        for &(ticks, time) in samples {
            map.add(ClockSample { ticks: Ticks(ticks), time: Nanos(time) });
        }
        map
    }

    fn check(map: &ClockMap, ticks: u64, expected: u64) {
        let line = map.line(Ticks(ticks)).expect("two samples");
        let at = line.at(Ticks(ticks)).0;
        assert!(at.abs_diff(expected) <= 1, "{ticks}: {at}, not {expected}");
    }

    #[test]
    fn between_samples_lies_a_line() {
        let map = map(&[(1000, 500), (3000, 1500), (5000, 2600)]);
        check(&map, 1000, 500);
        check(&map, 2000, 1000);
        check(&map, 3000, 1500);
        check(&map, 4000, 2050);
    }

    #[test]
    fn beyond_the_samples_the_nearest_line_goes_on() {
        let map = map(&[(1000, 500), (3000, 1500), (5000, 2600)]);
        check(&map, 500, 250);
        check(&map, 6000, 3150);
        check(&map, 0, 0);
    }

    #[test]
    fn a_line_is_exact_over_days() {
        let (hz, day) = (3_000_000_000, 86_400);
        let map = map(&[(0, 0), (hz * day, 1_000_000_000 * day)]);
        check(&map, hz * day / 2 + 3, 500_000_000 * day + 1);
    }

    #[test]
    fn a_sample_that_goes_back_starts_anew() {
        let map = map(&[(1000, 500), (3000, 1500), (100, 2000), (100, 2000), (1100, 2500)]);
        check(&map, 600, 2250);
        assert_eq!(map.times(Clock::Tsc).and_then(|mut times| times.at(1090)), Some(2495));
    }

    #[test]
    fn samples_off_the_line_are_told() {
        let samples = [(1000, 500), (3000, 1500), (5000, 2506), (7000, 3510), (9000, 4514)];
        let expected = ClockResidual { samples: 3, mean: Nanos(2), largest: Nanos(6) };
        assert_eq!(map(&samples).residual(), expected);
        assert_eq!(map(&samples[..2]).residual(), ClockResidual::default());
    }

    #[test]
    fn low_bits_are_completed() {
        let map = map(&[(0, 0), (0x5_0000_0000_1000, 0x5_0000_0000_1000)]);
        for clock in [Clock::Tsc, Clock::Monotonic] {
            let mut times = map.times(clock).expect("a sample");
            for (low, all) in [
                (0x0fff, 0x5_0000_0000_0fff),
                (0x1001, 0x5_0000_0000_1001),
                (0xffff_ffff_ffff, 0x4_ffff_ffff_ffff),
            ] {
                assert_eq!(times.at(low), Some(all), "{clock:?}");
            }
        }
    }

    #[test]
    fn without_samples_nothing_is_known() {
        assert!(map(&[]).times(Clock::Monotonic).is_none());
        let one = map(&[(1, 1)]);
        assert_eq!(one.times(Clock::Tsc).and_then(|mut times| times.at(1)), None);
        assert!(one.line(Ticks(5)).is_none());
    }
}
