//! Optional parts of a report. They cost time, memory and text, so a view has to request them.

use super::{FramesAsked, SlowAsked, TrendAsked};

/// The requested parts; the default is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extras {
    /// Distribution of each function's durations, and how it changes over time.
    pub histograms: bool,
    /// Distribution of each path's durations.
    pub path_histograms: bool,
    /// Each function's durations as precisely as they are known, without their change over time:
    /// cheaper.
    pub latencies: bool,
    /// The same of each path.
    pub path_latencies: bool,
    /// The numbers of CTRACK's tables. An engine that has folded its spool does not have them.
    pub ctrack: bool,
    /// The number of slowest calls, each with the calls inside it. Not from an engine, which does
    /// not keep all calls.
    pub slowest_calls: Option<usize>,
    /// The number of threads in the timeline. Not from an engine either.
    pub timeline_lanes: Option<usize>,
    /// The function whose calls are frames, or the mark between frames. Not from an engine either.
    pub frames: Option<FramesAsked>,
    /// The number of values of each argument whose calls are counted. Not from an engine either.
    pub values: Option<usize>,
    /// The number of rows of waits by who ended them. Not from an engine either.
    pub wakers: Option<usize>,
    /// The numbers of plots. Not from an engine either.
    pub plots: bool,
    /// The locks, by the calls of functions that take and release them. Not from an engine either.
    pub locks: bool,
    /// The functions in intervals of the report's time. Not from an engine either.
    pub trend: Option<TrendAsked>,
    /// The slowest calls of each function to keep in the interval that begins with the report. From an
    /// engine only.
    pub slow_calls: SlowAsked,
    /// The number of slices of time.
    pub slices: usize,
}

impl Extras {
    /// The number of slices, unless the reader's screen needs another.
    pub const SLICES: usize = 60;
}

impl Default for Extras {
    fn default() -> Self {
        Self {
            histograms: false,
            path_histograms: false,
            latencies: false,
            path_latencies: false,
            ctrack: false,
            slowest_calls: None,
            timeline_lanes: None,
            frames: None,
            values: None,
            wakers: None,
            plots: false,
            locks: false,
            trend: None,
            slow_calls: SlowAsked::NONE,
            slices: Self::SLICES,
        }
    }
}
