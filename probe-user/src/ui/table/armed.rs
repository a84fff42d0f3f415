//! The share of the time in which a budget armed functions, as a column of its own. Behind the names it would
//! take the room of what tells functions apart.

use crate::ui::table::grid::GridColumn;
use ctrace_core::report::FunctionReport;

/// Returns the column for these rows, unless all were armed all of the time.
pub(crate) fn column(rows: &[&FunctionReport]) -> Option<GridColumn> {
    let share = |row: &&FunctionReport| match row.sampled {
        Some(sampled) => percent(sampled.armed_percent),
        None => "100 %".to_owned(),
    };
    let is_any_part = rows.iter().any(|row| row.sampled.is_some());
    is_any_part.then(|| GridColumn::right("armed", rows.iter().map(share)))
}

/// Formats the share.
pub(crate) fn percent(armed: f64) -> String {
    format!("{armed:.1} %")
}
