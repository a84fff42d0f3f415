//! One tracing session: plans probes, places them, moves records into the engine, ends.
//!
//! `run` drives the other four: `plan` says where probes go, `collect` brings records, `keep`
//! stores the results, `budget` limits the cost of the probes.

pub(crate) mod budget;
pub(crate) mod collect;
pub(crate) mod keep;
pub(crate) mod plan;
pub(crate) mod run;
pub(crate) mod spec;
