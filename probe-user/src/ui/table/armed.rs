//! The share of the time in which a budget armed functions, as a column of its own. Behind the names it would
//! take the room of what tells functions apart.

use crate::ui::table::grid::GridColumn;
use ctrace_core::report::FunctionReport;
use ctrace_core::units::Nanos;

/// Returns the column for these rows, unless all were armed all of the time.
pub(crate) fn column(rows: &[&FunctionReport]) -> Option<GridColumn> {
    let share = |row: &&FunctionReport| match row.sampled {
        Some(sampled) => percent(sampled.armed_percent),
        None => "100 %".to_owned(),
    };
    let is_any_part = rows.iter().any(|row| row.sampled.is_some());
    is_any_part.then(|| GridColumn::right("armed", rows.iter().map(share)))
}

/// Explains the order and the bars of a table with the column.
pub(crate) const ORDER: &str = "Bars, and the order of rows if none was asked for, follow times as estimated for all of \
                                the time";

/// Estimates what a time of a function would be if it had been armed throughout.
pub(crate) fn throughout(row: &FunctionReport, time: Nanos) -> Nanos {
    let Some(sampled) = row.sampled else { return time };
    let seen = row.total_ns.0.max(1) as f64;
    // Where there is no estimate, the share of the time on the clock is all that is known.
    let of_time = 100.0 / sampled.armed_percent.max(f64::EPSILON);
    let ratio = sampled.total_ns.map_or(of_time, |all| all.0 as f64 / seen);
    Nanos((time.0 as f64 * ratio) as u64)
}

/// Explains the column, if these rows have it.
pub(crate) fn legend(rows: &[&FunctionReport]) -> Option<&'static str> {
    rows.iter().any(|row| row.sampled.is_some()).then_some(
        "armed: the share of the time in which its probes were on; its numbers are of that time only",
    )
}

/// Formats the share of a function that was not armed all of the time.
fn percent(armed: f64) -> String {
    if armed < 0.1 {
        "<0.1 %".to_owned()
    } else if armed > 99.9 {
        ">99.9 %".to_owned()
    } else {
        format!("{armed:.1} %")
    }
}

#[cfg(test)]
mod tests {
    use super::percent;

    #[test]
    fn a_part_of_the_time_is_neither_none_nor_all() {
        let shown = [0.0, 0.099, 0.1, 19.24, 99.9, 99.96, 100.0].map(percent);
        assert_eq!(shown, ["<0.1 %", "<0.1 %", "0.1 %", "19.2 %", "99.9 %", ">99.9 %", ">99.9 %"]);
    }
}
