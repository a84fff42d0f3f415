//! The arithmetic of reports: sums, histograms, ranks and unions of intervals.
//!
//! Nothing here knows where a call comes from: the engine and the reader of recordings share it.

mod call_count;
pub(crate) mod events;
pub(crate) mod grouped;
pub(crate) mod heat;
pub(crate) mod histogram;
pub(crate) mod merge;
pub(crate) mod rank;
pub(crate) mod selection;
pub(crate) mod slices;
mod summary;
pub(crate) mod tally;
pub(crate) mod unions;

pub(crate) use call_count::CallCount;
pub use histogram::Histogram;
pub use summary::Summary;
pub use tally::Tally;
