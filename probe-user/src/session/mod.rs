//! One tracing session: plans probes, attaches them, moves records into the engine, ends.

mod arm;
pub mod calibrate;
pub mod costs;
pub mod launch;
pub mod plan;
mod reader;
mod setup;
mod signals;
pub mod sink;
mod slowdown;
pub mod trace;
pub mod tracer;

pub use setup::{Setup, describe, planner};
