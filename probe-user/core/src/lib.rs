//! The engine of ctrace: bytes of a ring in, a [`report::Report`] out.
//!
//! Nothing here touches a kernel, a clock, a file or a thread, so all of it is tested without a
//! machine. Data that makes no sense becomes a counted diagnostic, never a panic.
//!
//! The way of an event: `decode` (bytes to records; `event` for those of calls) → `order` (every thread's events from all rings,
//! in order of time) → `tracker` (finds its thread and stack) → `stack` (opens and ends frames) → `ledger`
//! (enters finished calls into `tally` and `spool`) → `snapshot` (ranks and unions to a report).
#![forbid(unsafe_code)]

mod assemble;
mod by_function;
pub mod decode;
pub mod diff;
pub mod engine;
pub mod event;
pub mod export;
pub mod filter;
mod fold;
pub mod formats;
pub mod function;
pub mod glob;
mod grouped;
mod hash;
mod heat;
mod histogram;
mod ledger;
#[cfg(test)]
mod loss_tests;
pub mod marker;
mod merge;
mod order;
mod paths;
mod period;
mod process;
mod rank;
pub mod record;
mod region;
pub mod replay;
pub mod report;
mod selection;
mod slices;
mod snapshot;
mod spool;
mod stack;
mod tally;
mod threads;
mod tracker;
mod unions;
pub mod units;

pub use process::ProcessChange;
