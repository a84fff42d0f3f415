//! Running counts, for live displays and warnings.

use super::Engine;
use super::tracker::Tracker;

/// Running counts since the engine was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counters<'a> {
    pub events: u64,
    /// The number of calls that ended and were not filtered, without waits.
    pub calls: u64,
    /// The number of events by function.
    pub hits: &'a [u64],
}

impl Engine {
    /// Returns counters for live displays and warnings.
    pub fn counters(&self) -> Counters<'_> {
        let Tracker { events, ledger, hits, .. } = &self.tracker;
        let calls = ledger.calls.saturating_sub(ledger.ended_waits);
        Counters { events: *events, calls, hits }
    }

    /// Returns the number of calls of this period that are over, and whose ends were not seen.
    pub fn ended_unseen(&self) -> u64 {
        let Tracker { functions, ledger, .. } = &self.tracker;
        ledger.untimed(|function| functions.get(function.index()).is_some_and(|it| !it.is_point()))
    }

    /// Returns the number of calls whose ends were not seen because too many calls with return probes were
    /// open around them.
    pub fn too_deep(&self) -> u64 {
        self.tracker.ledger.too_deep
    }
}
