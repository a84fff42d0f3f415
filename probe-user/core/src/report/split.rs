//! The durations of a function's calls, split into running and waiting.

use crate::stats::Tally;
use crate::units::Nanos;
use crate::waits::Waits;
use serde::Deserialize;

/// The parts of `total_ns`; all null where nobody asked for waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct SplitReport {
    /// The thread had a processor.
    pub running_ns: Option<Nanos>,
    /// It waited for one.
    pub runnable_ns: Option<Nanos>,
    /// It waited for something else.
    pub blocked_ns: Option<Nanos>,
}

impl SplitReport {
    /// Splits the durations of these calls.
    pub(super) fn of(tally: &Tally) -> Self {
        let Waits { runnable, blocked } = tally.waits;
        let running = tally.total_ns().saturating_sub(runnable).saturating_sub(blocked);
        Self {
            running_ns: Some(Nanos(running)),
            runnable_ns: Some(Nanos(runnable)),
            blocked_ns: Some(Nanos(blocked)),
        }
    }

    /// Returns true if waits were told apart.
    pub fn is_known(&self) -> bool {
        self.running_ns.is_some()
    }
}
