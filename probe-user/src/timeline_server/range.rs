//! The report of a range as JSON: the tables and sentences of `ctrace report`, which the page only lays out.

use crate::ui::{
    is_damaged, loss_line,
    notes::{notes, nothing_called},
    views::{Sheet, sheet},
    warnings,
};
use ctrace_core::{report::Report, units::saturating_sum};
use serde::Serialize;

/// Rows that are shown, at most.
const MOST_ROWS: usize = 200;

#[derive(Serialize)]
pub(super) struct RangeJson {
    /// The calls, without waits.
    calls: u64,
    /// The reasons to doubt the numbers.
    warnings: Vec<String>,
    #[serde(flatten)]
    sheet: Sheet,
    notes: Vec<String>,
    loss: String,
    is_damaged: bool,
}

impl RangeJson {
    pub(super) fn new(report: &Report) -> Self {
        let is_called = report.functions.iter().any(|row| row.calls > 0 || row.headless > 0);
        let called = report.functions.iter().filter(|row| row.wait.is_none());
        let nothing = if is_called { Vec::new() } else { nothing_called(report) };
        Self {
            calls: saturating_sum(called.map(|row| row.calls)),
            warnings: warnings(report),
            sheet: sheet(report, MOST_ROWS),
            notes: nothing.into_iter().chain(notes(report, false, &[])).collect(),
            loss: loss_line(&report.loss),
            is_damaged: is_damaged(&report.loss),
        }
    }
}
