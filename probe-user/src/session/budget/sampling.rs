//! Estimates a function's totals for all of the time from the windows in which it was armed.
//!
//! The number of its calls per *CPU time that the target has for itself* is assumed to be constant:
//! while probes slow a busy target, a window of time holds less of its work. The rate between
//! windows is estimated by the rate in them (a ratio estimator). The error comes from the
//! differences between windows, and from the uncertainty of the cost of the probes.

use ctrace_core::{report::SampledReport, units::Nanos};

/// Half a 95 % interval in standard errors, by the number of windows less two (Student's t).
const STUDENT: [f64; 30] = [
    12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18, 2.16, 2.14, 2.13,
    2.12, 2.11, 2.10, 2.09, 2.09, 2.08, 2.07, 2.07, 2.06, 2.06, 2.06, 2.05, 2.05, 2.05, 2.04,
];
/// The relative error of the cost of a probe.
const COST_ERROR: f64 = 0.15;
/// If probes took more than this multiple of the target's own time, there is no estimate.
const MOST_COST: f64 = 2.0;
/// An estimate with an error of this multiple of itself says nothing.
const MOST_ERROR: f64 = 1.0;
/// So few windows may miss bursts, or have seen nothing else, however much they are alike.
pub(super) const FEWEST_WINDOWS: u64 = 4;
/// With fewer events than this in all windows, their number is mostly chance (Poisson). Windows
/// that happen to be alike do not show that.
const FEW_EVENTS: f64 = 10.0;

/// A moment, or the time between two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Time {
    pub at: Nanos,
    /// CPU time of the target, without the time that probes took.
    pub own: Nanos,
}

impl Time {
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self { at: self.at.since(earlier.at), own: self.own.since(earlier.own) }
    }

    pub(crate) fn max(self, other: Self) -> Self {
        Self { at: self.at.max(other.at), own: self.own.max(other.own) }
    }

    pub(crate) fn min(self, other: Self) -> Self {
        Self { at: self.at.min(other.at), own: self.own.min(other.own) }
    }
}

/// One function in one interval.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sampling {
    /// The time in which it was armed throughout; `known_events` are its events then.
    known: Time,
    known_events: f64,
    /// The time in which there were windows only.
    sampled: Time,
    windows: u64,
    armed: Time,
    events: f64,
    /// The time that probes took in the windows.
    spent: f64,
    /// Sums of squares and products of each window's own time and events.
    own2: f64,
    events2: f64,
    both: f64,
}

fn add(sum: &mut Time, more: Time) {
    *sum = Time { at: sum.at.saturating_add(more.at), own: sum.own.saturating_add(more.own) };
}

impl Sampling {
    /// Returns the same times, with no events in them.
    pub(crate) fn without_events(self) -> Self {
        Self { known_events: 0.0, events: 0.0, events2: 0.0, both: 0.0, ..self }
    }

    pub(crate) fn armed_throughout(&mut self, time: Time, events: u64) {
        add(&mut self.known, time);
        self.known_events += events as f64;
    }

    /// Adds a stretch of time in which there are windows only.
    pub(crate) fn in_windows(&mut self, time: Time) {
        add(&mut self.sampled, time);
    }

    /// Adds a window, and the time that probes took in it.
    pub(crate) fn window(&mut self, armed: Time, events: u64, spent: Nanos) {
        add(&mut self.armed, armed);
        let (own, events) = (armed.own.0 as f64, events as f64);
        self.windows += 1;
        self.events += events;
        self.spent += spent.0 as f64;
        self.own2 += own * own;
        self.events2 += events * events;
        self.both += own * events;
    }

    /// Returns the estimate, or nothing if it was armed throughout. `calls` and the times are those
    /// that were seen.
    pub(crate) fn report(&self, calls: u64, total: Nanos, active: Nanos) -> Option<SampledReport> {
        if self.sampled.at == Nanos::ZERO {
            return None;
        }
        let armed = self.known.at.saturating_add(self.armed.at);
        let all = self.known.at.saturating_add(self.sampled.at);
        let error = self.relative_error();
        let factor = self.factor().filter(|_| error.is_some_and(|error| error <= MOST_ERROR));
        let scaled = |value: u64| factor.map(|factor| (value as f64 * factor).round() as u64);
        let error = |calls: u64| error.map(|error| (error * calls as f64).round() as u64);
        Some(SampledReport {
            armed_ns: armed,
            armed_percent: 100.0 * armed.0 as f64 / all.0 as f64,
            windows: self.windows,
            calls: scaled(calls),
            calls_error: scaled(calls).and_then(error),
            total_ns: scaled(total.0).map(Nanos),
            active_ns: scaled(active.0).map(Nanos),
        })
    }

    /// Returns the events per own time, and the own time between the windows.
    fn rate(&self) -> Option<(f64, f64)> {
        let armed = self.armed.own.0 as f64;
        let idle = self.windows > 0 && self.events == 0.0;
        if idle {
            return Some((0.0, self.sampled.own.0 as f64));
        }
        (armed > 0.0 && self.spent <= MOST_COST * armed)
            .then(|| (self.events / armed, self.sampled.own.0 as f64))
    }

    /// Returns the ratio of all events to those that were seen.
    fn factor(&self) -> Option<f64> {
        let (rate, sampled) = self.rate()?;
        let seen = self.known_events + self.events;
        let all = self.known_events + rate * sampled;
        Some(if seen > 0.0 { (all / seen).max(1.0) } else { 1.0 })
    }

    /// Returns half a 95 % interval around the estimate of all events, as a part of it.
    fn relative_error(&self) -> Option<f64> {
        let student = STUDENT.get(self.windows.checked_sub(2)? as usize).copied().unwrap_or(1.96);
        if self.windows < FEWEST_WINDOWS {
            return None;
        }
        let ((rate, sampled), armed) = (self.rate()?, self.armed.own.0 as f64);
        let all = self.known_events + rate * sampled;
        if all == 0.0 {
            return None;
        }
        let windows = self.windows as f64;
        let off = self.events2 - 2.0 * rate * self.both + rate * rate * self.own2;
        let by_windows =
            student * (off.max(0.0) / (windows - 1.0) * windows).sqrt() / armed * sampled / all;
        let by_chance = match self.events {
            few if few < FEW_EVENTS => 1.96 * (few + 2.0).sqrt() / armed * sampled / all,
            _ => 0.0,
        };
        let by_cost = COST_ERROR * self.spent / armed * (rate * sampled / all);
        Some(by_windows.max(by_chance).hypot(by_cost))
    }
}

#[cfg(test)]
#[path = "sampling_tests.rs"]
mod tests;
