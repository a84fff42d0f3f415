//! Computes a [`Report`](crate::report::Report) from a recording: the same numbers as a session's,
//! exact for any size and any filter.
//!
//! # Use
//!
//! ```no_run
//! use ctrace_core::filter::Filter;
//! use ctrace_core::recording::Recording;
//! use ctrace_core::recording::replay::{Query, report};
//! use ctrace_core::units::Nanos;
//!
//! let recording = Recording::open(std::fs::File::open("trace.ctrace")?)?;
//! let long = Filter { min_duration: Nanos::from_millis(1), ..Filter::default() };
//! let report = report(&recording, &Query { filter: long, ..Query::default() }, 1.0);
//! for function in report.functions.iter().filter(|function| function.calls > 0) {
//!     println!("{}: {:?}", function.name, function.durations.p99_ns);
//! }
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`report_with`] adds distributions, the slowest calls and a timeline. [`trees`] returns slow
//! calls with the calls inside them. For all calls, read the
//! [`Recording`](crate::recording::Recording) directly.
//!
//! # How it works
//!
//! The calls are never all in memory. Several passes read the chunks, in parallel:
//! 1. `walk` reconstructs callers and own times; `count` sums these up and counts durations in
//!    buckets.
//! 2. The counts tell which buckets contain the wanted ranks; `ranks` collects the exact durations
//!    in these buckets.
//! 3. `centers` adds up unions, now that the calls in each center are known.
//!
//! Each of the [`Extras`](crate::report::Extras) takes another pass: `heat`, `timeline` and
//! `slowest`. After `slowest`, `inside` reads the chunks that the slowest calls span, and `values`
//! those that have payloads. `by_value` reads these twice. `trend` counts and ranks each interval by
//! itself, in its own chunks.
#![warn(missing_docs)]

mod around;
mod between_marks;
mod by_value;
mod by_waker;
mod calls;
mod centers;
mod clip;
pub(crate) mod count;
pub(crate) mod frame_marks;
mod frame_times;
pub(crate) mod frames;
mod heat;
mod inside;
pub(crate) mod lens;
pub(crate) mod locks;
mod needed;
mod plots;
mod ranks;
pub(crate) mod report;
pub(crate) mod select;
mod slowest;
mod spans;
mod threads;
mod timeline;
mod trees;
mod trend;
pub(crate) mod values;
mod walk;
mod within;

pub use frame_times::{FrameColumn, FrameTime, FrameTimes, TooManyFrames, frame_times};
pub use report::{meta_of, report, report_with};
pub use threads::{NoThreads, OwnThreads, start_threads};
pub use trees::{Branch, SlowCallCriteria, Tree, trees};
pub use within::{NoValues, WithValue, WithValues, Within, by_values_of};

use crate::filter::Filter;
use crate::stop::Stop;
use crate::units::{Nanos, ThreadId};
use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

/// A selection of calls of a recording. The default selects all.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// The filter by threads, depth and durations, as for sessions.
    pub filter: Filter,
    /// True for functions that count, by id. The others are as if not selected: their time counts
    /// toward their callers. `None`: all count.
    pub functions: Option<Vec<bool>>,
    /// Only calls that ended within this window, on the clock of the recording.
    pub window: Option<Range<Nanos>>,
    /// True for some functions, by id: only their calls count, and the calls inside these.
    pub callers: Option<Vec<bool>>,
    /// True for some functions, by id: only their calls count, and the calls around these.
    pub callees: Option<Vec<bool>>,
    /// True for functions that paths begin with, by id. Calls outside of them do not count.
    pub roots: Option<Vec<bool>>,
    /// True if a function that is on a path already is not added to it again.
    pub fold_recursion: bool,
    /// Only the calls of these threads. `None`: of all.
    pub threads: Option<HashSet<ThreadId>>,
    /// Only calls that begin within these stretches of time of their threads. `None`: all.
    pub within: Option<Arc<Within>>,
    /// Ends the passes soon. What they return then is worth nothing.
    pub stop: Stop,
}
