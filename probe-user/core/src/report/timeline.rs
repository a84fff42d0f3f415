//! What ran when, thread by thread, at the resolution of a screen.

use crate::units::{Nanos, Pid, Tid};
use serde::Serialize;
use std::sync::Arc;

/// Time in slices, and what threads did in each.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TimelineReport {
    /// Edges of the slices: one more than there are slices.
    pub slice_edges_ns: Vec<Nanos>,
    /// By first event.
    pub lanes: Vec<LaneReport>,
    /// Threads with calls that have no lane.
    pub lanes_left_out: u64,
}

/// One thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LaneReport {
    pub pid: Pid,
    pub tid: Tid,
    pub name: Arc<str>,
    /// Calls that took less than a slice, and their time.
    pub short_calls: u64,
    pub short_ns: Nanos,
    /// What was innermost; only slices in which something was.
    pub innermost: Vec<TimelineCell>,
    /// The same for each depth among the traced functions, outermost first.
    pub depths: Vec<Vec<TimelineCell>>,
}

/// A slice in which something ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TimelineCell {
    pub slice: usize,
    /// Index in `functions` of the report of the one that ran longest in it.
    pub function: usize,
    /// How long that one ran in the slice, and how long all did.
    pub function_ns: Nanos,
    pub busy_ns: Nanos,
}
