//! Machine formats of a report, and the choice and order of rows that they share with the tables.
//!
//! A report is only read here. Each format is a module; [`columns`] lists the sortable columns,
//! [`rows`] chooses the rows, and [`clean`] keeps strings of the target from driving a terminal.

pub mod clean;
pub mod columns;
pub mod csv;
mod flat;
pub mod human;
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
    /// Functions within frames.
    Frames,
    /// Values of arguments and results.
    Values,
    /// Waits by who ended them.
    Wakers,
    /// Plots of markers.
    Plots,
    /// Locks.
    Locks,
    /// Functions in intervals of time.
    Trend,
    /// The functions in CTRACK's tables.
    Ctrack,
}

impl RowKind {
    /// All tables.
    pub const ALL: [Self; 14] = [
        Self::Functions,
        Self::Paths,
        Self::Counts,
        Self::Threads,
        Self::Histograms,
        Self::Calls,
        Self::Timeline,
        Self::Frames,
        Self::Values,
        Self::Wakers,
        Self::Plots,
        Self::Locks,
        Self::Trend,
        Self::Ctrack,
    ];
}
