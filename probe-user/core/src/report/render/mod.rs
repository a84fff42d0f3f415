//! Machine formats of a report, and what they share with the tables: which rows, in which order.
//!
//! A report is only read here. Each format is a module; [`columns`] names what can be sorted by,
//! [`rows`] chooses the rows, and [`clean`] keeps strings of the target from driving a terminal.

pub mod clean;
pub mod columns;
pub mod csv;
mod flat;
pub mod json;
pub mod rows;

/// The lists of a report that have rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RowKind {
    Functions,
    Paths,
    /// Paths without their times.
    Counts,
    Threads,
    /// Buckets of the functions' durations.
    Histograms,
    Calls,
    Timeline,
}

impl RowKind {
    /// Every table there is.
    pub const ALL: [Self; 7] = [
        Self::Functions,
        Self::Paths,
        Self::Counts,
        Self::Threads,
        Self::Histograms,
        Self::Calls,
        Self::Timeline,
    ];
}
