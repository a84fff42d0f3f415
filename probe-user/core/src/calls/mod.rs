//! Calls and paths as the engine leaves them, and as reports and recordings take them up. All of
//! them depend on this folder, and it on none of them.

pub(crate) mod by_function;
mod counts;
pub(crate) mod paths;
pub(crate) mod spool;

pub(crate) use counts::FunctionCounts;
