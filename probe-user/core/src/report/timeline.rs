//! The timeline of each thread, at the resolution of a screen.

use crate::units::{Nanos, Pid, Tid};
use serde::Serialize;
use std::sync::Arc;

/// Time in slices, and the functions that ran in each slice by thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TimelineReport {
    /// Edges of the slices: one more than there are slices.
    pub slice_edges_ns: Vec<Nanos>,
    /// The threads, in order of their first event.
    pub lanes: Vec<LaneReport>,
    /// The number of threads with calls that have no lane.
    pub lanes_left_out: u64,
}

/// One thread.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct LaneReport {
    pub pid: Pid,
    pub tid: Tid,
    pub name: Arc<str>,
    /// The number of calls shorter than a slice, and their time.
    pub short_calls: u64,
    pub short_ns: Nanos,
    /// The innermost function, in slices in which something ran.
    pub innermost: Vec<TimelineCell>,
    /// The function at each depth of traced functions, outermost first.
    pub depths: Vec<Vec<TimelineCell>>,
}

/// A slice in which something ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct TimelineCell {
    pub slice: usize,
    /// Index in `functions` of the report of the one that ran longest in it.
    pub function: usize,
    /// The time of that function in the slice, and the time of all functions.
    pub function_ns: Nanos,
    pub busy_ns: Nanos,
}
