//! Machine formats of a report, and what they share with the tables: which rows, in which order.
//!
//! A report is only read here. Each format is a module; [`columns`] names what can be sorted by,
//! [`rows`] chooses the rows, and [`clean`] keeps strings of the target from driving a terminal.

pub mod clean;
pub mod columns;
pub mod csv;
pub mod json;
pub mod rows;

/// The three lists of a report that have rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Table {
    Functions,
    Paths,
    Threads,
}
