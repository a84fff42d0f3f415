//! The time of the reader's next pass over the rings, if nothing calls it. It comes soon while they
//! fill, and as soon as the interval of a report is complete. Otherwise it comes as seldom as the
//! session permits. Sessions of one daemon pass at the same times: the second to wake finds warm
//! caches and a CPU that is awake.

use super::{bell::Woken, pace::Pace};
use ctrace_core::units::Nanos;
use std::time::Duration;

/// The pause between passes when much happens.
const BUSY_PAUSE: Duration = Duration::from_millis(5);
/// The pause after word of a new program: its records are in order by then.
const SETTLING_PAUSE: Duration = Duration::from_millis(150);
/// The pause while a report waits for a record that is still being written, or for marker buffers.
const LATE_PAUSE: Duration = Duration::from_millis(50);
/// A ring filled beyond this since the last pass is much.
const BUSY_FILL: f64 = 1.0 / 32.0;
/// The same in a calm session.
const VERY_BUSY_FILL: f64 = 1.0 / 2.0;

/// Consecutive intervals, each with a report.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Intervals {
    /// The end of the first interval that is not reported yet.
    pub end: Nanos,
    pub each: Nanos,
}

pub(crate) struct Timetable {
    pace: Pace,
    /// The pause; it grows step by step while all rings are nearly empty.
    pause: Duration,
    intervals: Option<Intervals>,
    /// The time for which events wait for older ones.
    hold: Nanos,
}

impl Timetable {
    pub(crate) fn new(pace: Pace, intervals: Option<Intervals>, hold: Nanos) -> Self {
        Self { pace, pause: BUSY_PAUSE, intervals, hold }
    }

    /// Returns the pause after a pass. The reader was `woken` for the pass, a ring was filled to
    /// `fill`, and everything before `settled` has arrived.
    pub(crate) fn pause(
        &mut self,
        woken: Woken,
        fill: f64,
        settled: Nanos,
        now: Nanos,
    ) -> Duration {
        let busy = if self.pace.is_calm { VERY_BUSY_FILL } else { BUSY_FILL };
        self.pause = match woken {
            _ if fill > busy => BUSY_PAUSE,
            Woken::Program | Woken::Session { and_by_program: true } => {
                SETTLING_PAUSE.min(self.pace.pass)
            }
            // A ring wakes the reader again.
            Woken::Ring => self.pause,
            Woken::Time | Woken::Session { .. } => (self.pause * 2).min(self.pace.pass),
        };
        self.together(now).min(self.until_report(settled, now))
    }

    /// Returns the pause; a usual one ends at a time that all sessions share.
    fn together(&self, now: Nanos) -> Duration {
        let pass = self.pace.pass;
        if !self.pace.is_calm || self.pause < pass {
            return self.pause;
        }
        let each = pass.as_nanos() as u64;
        Duration::from_nanos(each - now.0 % each)
    }

    fn until_report(&mut self, settled: Nanos, now: Nanos) -> Duration {
        let Some(Intervals { end, each }) = &mut self.intervals else { return Duration::MAX };
        while *end <= settled {
            *end = end.saturating_add((*each).max(Nanos(1)));
        }
        match end.saturating_add(self.hold).since(now) {
            Nanos::ZERO => LATE_PAUSE,
            left => Duration::from_nanos(left.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::collect::reader::HOLD;

    const CALM: Pace = Pace::calm(Duration::from_secs(8));
    const TEN_SECONDS: Nanos = Nanos::from_millis(10_000);

    #[test]
    fn passes_are_frequent_only_while_a_ring_fills() {
        let mut prompt = Timetable::new(Pace::PROMPT, None, HOLD);
        let mut pause = |fill| prompt.pause(Woken::Time, fill, Nanos::ZERO, TEN_SECONDS);
        let longest = (0..10).map(|_| pause(0.001)).last();
        assert_eq!(longest, Some(Pace::PROMPT.pass));
        assert_eq!(pause(0.1), BUSY_PAUSE);
        let mut calm = Timetable::new(CALM, None, HOLD);
        let mut pause = |fill| calm.pause(Woken::Ring, fill, Nanos::ZERO, TEN_SECONDS);
        assert_eq!(pause(0.6), BUSY_PAUSE);
    }

    #[test]
    fn calm_sessions_pass_at_the_same_times() {
        let mut calm = Timetable::new(CALM, None, HOLD);
        let mut pause = |woken, now| calm.pause(woken, 0.0, Nanos::ZERO, now);
        let first = pause(Woken::Time, TEN_SECONDS);
        let longest = (0..20).map(|_| pause(Woken::Time, TEN_SECONDS)).last();
        assert!(first < Duration::from_millis(50), "{first:?}");
        assert_eq!(longest, Some(Duration::from_secs(6)));
        assert_eq!(pause(Woken::Ring, TEN_SECONDS), Duration::from_secs(6));
        assert_eq!(pause(Woken::Program, TEN_SECONDS), SETTLING_PAUSE);
        let both = Woken::Session { and_by_program: true };
        assert_eq!(pause(both, TEN_SECONDS), SETTLING_PAUSE);
        assert_eq!(pause(Woken::Time, TEN_SECONDS), 2 * SETTLING_PAUSE);
    }

    #[test]
    fn a_report_is_not_kept_waiting() {
        let intervals = Intervals { end: Nanos::from_millis(60_000), each: TEN_SECONDS };
        let mut table = Timetable::new(CALM, Some(intervals), HOLD);
        let mut pause = |settled, now| {
            let millis = [settled, now].map(Nanos::from_millis);
            table.pause = CALM.pass;
            table.pause(Woken::Time, 0.0, millis[0], millis[1]).as_millis()
        };
        assert_eq!(pause(58_900, 59_000), 1_100);
        assert_eq!(pause(59_999, 60_100), LATE_PAUSE.as_millis());
        assert_eq!(pause(60_000, 60_100), 3_900, "to the others' next pass");
        assert_eq!(pause(63_900, 64_000), 6_100, "to the end of the interval");
        assert_eq!(pause(95_000, 95_100), 900);
    }
}
