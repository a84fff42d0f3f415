//! A recording to a [`Report`](crate::report::Report): the same numbers as a session's, exact
//! whatever the size, for any filter.
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
//! [`report_with`] finds out more: distributions, the slowest calls, what ran when. For the calls
//! themselves, read the [`Recording`](crate::recording::Recording) directly. [`trees`] tells slow calls
//! with those inside them.
//!
//! # How it works
//!
//! Calls are never all in memory. Chunks are read several times over, in parallel:
//! 1. `walk` rebuilds who called whom and what each call took itself; `count` sums that up and counts
//!    durations in buckets.
//! 2. The counts tell in which buckets the wanted ranks lie; `ranks` gathers these exactly.
//! 3. `centers` adds up unions, now that it is known which calls belong to a center.
//!
//! What a view asks for besides ([`Extras`](crate::report::Extras)) takes a pass more each: `heat`,
//! `timeline`, and `slowest`, after which `inside` goes over the chunks that those calls span, and
//! `values` over those that have payloads.
#![warn(missing_docs)]

mod calls;
mod centers;
mod clip;
pub(crate) mod count;
mod heat;
mod inside;
pub(crate) mod lens;
mod ranks;
pub(crate) mod report;
pub(crate) mod select;
mod slowest;
mod spans;
mod threads;
mod timeline;
mod trees;
pub(crate) mod values;
mod walk;

pub use report::{meta_of, report, report_with};
pub use threads::{NoThreads, start_threads};
pub use trees::{Branch, Tree, Wanted, trees};

use crate::filter::Filter;
use crate::units::Nanos;
use std::ops::Range;

/// What to look at in a recording. The default is everything.
#[derive(Clone, Debug, Default)]
pub struct Query {
    /// As a session has it: threads, depth and durations.
    pub filter: Filter,
    /// By function id: whether it counts. A function that does not is as if it had not been
    /// selected: its time is its caller's. `None`: all do.
    pub functions: Option<Vec<bool>>,
    /// Calls that ended in this time, on the clock of the recording.
    pub window: Option<Range<Nanos>>,
    /// By function id: only its calls, and what they call.
    pub callers: Option<Vec<bool>>,
    /// By function id: only its calls, and those they are made in.
    pub callees: Option<Vec<bool>>,
    /// By function id: paths begin with it; what is not below one does not count.
    pub roots: Option<Vec<bool>>,
    /// A function that is on the path already is not added to it again.
    pub fold_recursion: bool,
}
