//! The engine of ctrace: bytes of a ring in, a [`report::Report`] out.
//!
//! Nothing here touches a kernel, a clock, a file or a thread, so all of it is tested without a
//! machine. Data that makes no sense becomes a counted diagnostic, never a panic.
#![forbid(unsafe_code)]

pub mod export;
pub mod function;
pub mod report;
pub mod units;
