//! The engine of ctrace: bytes of a ring in, a [`report::Report`] out.
//!
//! Nothing here touches a kernel, a clock, a file or a thread, so all of it is tested without a
//! machine. Nonsensical data becomes a counted diagnostic, never a panic.
//!
//! Data flows through the modules in this order:
//! - [`ingest`] decodes records and puts every thread's events in order of time. Marker buffers
//!   come in through [`marker`].
//! - [`engine`] rebuilds the calls of each thread. The times in which it has no processor are calls, too:
//!   [`waits`].
//! - [`stats`] adds them up.
//! - [`report`] is the source of all tables, exports and screens.
//! - [`recording`] keeps calls in a file and makes the same reports from it; [`formats`] writes
//!   single calls for other tools; [`diff`] compares two reports; [`timeline`] makes pictures of calls.
//! - `fleet` keeps the sums of many machines in Parquet files, and adds them up.
#![forbid(unsafe_code)]

mod async_lanes;
pub mod calendar;
mod calls;
pub mod colour;
pub mod diff;
pub mod engine;
pub mod filter;
#[cfg(feature = "parquet")]
pub mod fleet;
pub mod formats;
pub mod function;
pub mod glob;
pub mod goroutines;
mod hash;
pub mod ingest;
pub mod locks;
pub mod marker;
pub mod names;
pub mod points;
pub mod ranges;
pub mod recording;
pub mod report;
pub mod rust_hashes;
pub mod stats;
pub mod stop;
pub mod tables;
pub mod timeline;
pub mod units;
pub mod values;
pub mod waits;
