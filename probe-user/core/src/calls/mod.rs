//! Calls and paths. The engine makes them; reports and recordings use them. All of these depend on
//! this folder, and it depends on none of them.

pub(crate) mod by_function;
mod counts;
pub(crate) mod paths;
pub(crate) mod spool;

pub use counts::RestoredTimes;
pub(crate) use counts::{FunctionCounts, each_bit};
