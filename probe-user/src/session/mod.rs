//! One tracing session: plans probes, places them, moves records into the engine, ends.
//!
//! `run` drives the other four: `plan` says where probes go, `collect` brings records, `keep` takes
//! what was found out, `budget` weighs what the probes cost.

pub mod budget;
pub mod collect;
pub mod keep;
pub mod plan;
pub mod run;
pub mod spec;
