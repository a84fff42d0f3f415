//! Who ended the waits of functions, and how long these took.

use crate::units::Nanos;
use serde::Serialize;
use std::sync::Arc;

/// Waits by the function that waited, by what it waited for, and by who ended them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct WakersReport {
    /// Those whose waits took the most time.
    pub rows: Vec<WakerReport>,
    /// All other waits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others: Option<WokenWaits>,
    /// True if there are too many to compare all: one of the others may have taken more than one that
    /// is shown.
    pub unsure: bool,
}

/// The waker of threads that a timer or a device woke.
pub const INTERRUPT: &str = "[interrupt]";

/// Waits of one function for one thing, all ended by the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WakerReport {
    /// Index in `functions` of the one that waited. `None`: there are too many paths to know.
    pub function: Option<usize>,
    /// Index in `functions` of what it waited for.
    pub wait: usize,
    /// A traced function and the thread, in parentheses, that was in it, or [`INTERRUPT`].
    pub waker: Arc<str>,
    #[serde(flatten)]
    pub of: WokenWaits,
}

/// Waits that have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct WokenWaits {
    pub waits: u64,
    /// The number of those with a known duration.
    pub timed: u64,
    pub total_ns: Nanos,
    pub mean_ns: Option<Nanos>,
    pub max_ns: Option<Nanos>,
}
