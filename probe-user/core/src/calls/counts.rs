//! A function's counts other than those of its calls.

use crate::units::Nanos;
use serde::{Deserialize, Serialize};

/// Counts of one function that belong to no path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FunctionCounts {
    pub(crate) headless: u64,
    pub(crate) threads: u64,
    /// Calls inside its own that are left out, because they are too deep.
    pub(crate) callees_left_out: u64,
    pub(crate) restored: RestoredTimes,
}

/// Calls of a function in which return addresses were put back. How long that took is not known: it is a part
/// of the time from then on until the thread went on with something else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RestoredTimes {
    /// The number of times that a call of it was open.
    pub calls: u64,
    /// The part of its total that may be the time for this.
    pub total_ns: Nanos,
    /// The part of its self time that may be.
    pub self_ns: Nanos,
}

impl RestoredTimes {
    pub(crate) fn is_none(&self) -> bool {
        self.calls == 0
    }

    /// Adds those of another stretch of time.
    pub fn plus(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            total_ns: self.total_ns.saturating_add(other.total_ns),
            self_ns: self.self_ns.saturating_add(other.self_ns),
        }
    }

    /// Takes away an earlier stretch with which this one begins.
    pub fn since(self, earlier: Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(earlier.calls),
            total_ns: self.total_ns.since(earlier.total_ns),
            self_ns: self.self_ns.since(earlier.self_ns),
        }
    }
}
