//! Frames: the calls of one function, or the times between marks, and what makes the longest of them
//! longer than the others.

use crate::units::{FuncId, Nanos, Pid, Tid};
use serde::Serialize;
use std::sync::Arc;

/// The function whose calls are frames, or the mark between frames, and the time that each may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FramesAsked {
    pub function: FuncId,
    pub budget: Option<Nanos>,
}

/// The frames of a report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FramesReport {
    /// The frame function: its index in `functions` of the report.
    pub function: usize,
    /// The number of frames with a known duration.
    pub frames: u64,
    /// The time that a frame may take.
    pub budget_ns: Option<Nanos>,
    /// The number of frames that took longer.
    pub over_budget: Option<u64>,
    /// The number of frames that were nearest to the median, to which the worst are compared.
    pub typical_frames: u64,
    /// The longest frames, longest first.
    pub worst: Vec<FrameReport>,
    /// The functions that ran in either, the one first that took most of what the worst took more.
    pub parts: Vec<FramePart>,
    /// The numbers of frames between marks, which the row of the mark does not have. `None`: frames are
    /// calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub marks: Option<MarkedFramesReport>,
}

/// Frames between marks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct MarkedFramesReport {
    pub mean_ns: Option<Nanos>,
    pub p50_ns: Option<Nanos>,
    pub p99_ns: Option<Nanos>,
    pub max_ns: Option<Nanos>,
    /// The number of frames that are not known: a mark may be missing between their ends.
    pub unknown: u64,
    /// The number of calls inside compared frames for which there was no room.
    pub left_out_calls: u64,
}

/// One frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FrameReport {
    pub start_ns: Nanos,
    pub duration_ns: Nanos,
    pub pid: Option<Pid>,
    pub tid: Option<Tid>,
    /// Name of the thread.
    pub thread: Option<Arc<str>>,
    /// The function whose own time was longest beyond that in a typical frame: its index in
    /// `functions` of the report.
    pub function: usize,
    /// The own time of that function, and its typical own time.
    pub self_ns: Nanos,
    pub typical_self_ns: Nanos,
}

/// One function within frames, the frame function included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FramePart {
    /// Index in `functions` of the report.
    pub function: usize,
    /// The number of its calls in all of the typical frames, and its own time in them.
    pub typical_calls: u64,
    pub typical_self_ns: Nanos,
    /// The same of the worst frames.
    pub worst_calls: u64,
    pub worst_self_ns: Nanos,
}

impl FramePart {
    /// Returns what the worst frames took more than the typical ones, of which there are as many.
    pub fn more_ns(&self) -> i128 {
        i128::from(self.worst_self_ns.0) - i128::from(self.typical_self_ns.0)
    }
}

impl FramesReport {
    /// Returns the share of frames that took longer than the budget, in percent.
    pub fn over_percent(&self) -> Option<f64> {
        let over = self.over_budget.filter(|_| self.frames > 0)?;
        Some(over as f64 * 100.0 / self.frames as f64)
    }

    /// Returns a part's own time in a typical and in one of the worst frames, on average.
    pub fn self_in_a_frame(&self, part: &FramePart) -> [Nanos; 2] {
        let each = |sum: Nanos, frames: u64| Nanos(sum.0 / frames.max(1));
        [
            each(part.typical_self_ns, self.typical_frames),
            each(part.worst_self_ns, self.worst.len() as u64),
        ]
    }
}
