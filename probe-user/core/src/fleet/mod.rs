//! Tables of many machines: what daemons write as Parquet files, and what `ctrace fleet` reads of them.
//!
//! A daemon makes [`rows`] of each interval, and [`encode`] makes a file of many. The file lies in a
//! folder of its [`partition`]: host, day and unit. [`decode`] reads such files, [`sums`] adds their
//! rows up to reports, [`compare`] judges two sides of them, and [`stacks`] makes flame graphs. Rows
//! are only ever added: counts and sums are exact, and [`buckets`] are the same in every file.
//!
//! docs/fleet/tables.md describes the columns. Files are hostile until checked: [`pages`] bounds what
//! one may unpack to.

pub mod buckets;
mod cells;
mod column;
pub mod compact;
pub mod compare;
pub mod decode;
pub mod encode;
mod interned;
mod names;
mod pages;
pub mod partition;
pub mod rows;
mod schema;
pub mod slow;
pub mod slowest;
pub mod stacks;
pub mod sums;
#[cfg(test)]
mod tests;
mod wanted;

pub use names::FunctionNames;
pub use schema::{SCHEMA, Table};
pub use wanted::Wanted;
