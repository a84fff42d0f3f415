//! Shows numbers of functions in tables. A view lists the numbers and their headings; the registry
//! defines their meaning and form.

use crate::ui::output::style::Tone;
use crate::ui::table::grid::{Cell, GridColumn};
use crate::ui::text::units::{ABSENT, Digits, count, maybe_percent, maybe_time, rate, ratio};
use ctrace_core::report::FunctionReport;
use ctrace_core::report::key::Key;
use ctrace_core::report::numbers::{Number, Unit};
use ctrace_core::units::Nanos;

/// A heading, and the number below it.
pub(crate) type Heading<T = FunctionReport> = (&'static str, &'static Number<T>);

/// The ratio from which a spread is highlighted: the mean itself.
const REMARKABLE_RATIO: f64 = 1.0;

/// Formats the number of a row.
pub(crate) fn text<T: 'static>(number: &Number<T>, row: &T, digits: Digits) -> String {
    match (number.unit, (number.of)(row)) {
        (Unit::Time, Key::Count(ns)) => maybe_time(ns.map(Nanos), digits),
        (_, Key::Count(n)) => n.map_or_else(|| ABSENT.to_owned(), count),
        (Unit::Percent, Key::Real(value)) => maybe_percent(value),
        (Unit::Rate, Key::Real(value)) => value.map_or_else(|| ABSENT.to_owned(), rate),
        (_, Key::Real(value)) => ratio(value),
        (_, Key::Text(text)) => text.to_owned(),
    }
}

/// Formats the number of a row in a table.
pub(crate) fn cell<T: 'static>(number: &Number<T>, row: &T, digits: Digits) -> Cell {
    let tone = match (number.unit, (number.of)(row).real()) {
        (Unit::Percent, share) => share.map_or(Tone::Dim, Tone::of_percent),
        (Unit::Ratio, Some(ratio)) if ratio > REMARKABLE_RATIO => Tone::Warm,
        _ => Tone::Plain,
    };
    Cell::toned(text(number, row, digits), tone)
}

/// Makes a column of this number of each row.
pub(crate) fn column<T: 'static>(
    heading: &str,
    number: &Number<T>,
    rows: &[&T],
    digits: Digits,
) -> GridColumn {
    GridColumn::right(heading, rows.iter().map(|row| cell(number, row, digits)))
}

/// Makes a column for each heading.
pub(crate) fn columns<T: 'static>(
    headings: &[Heading<T>],
    rows: &[&T],
    digits: Digits,
) -> Vec<GridColumn> {
    headings.iter().map(|(heading, number)| column(heading, number, rows, digits)).collect()
}

/// Returns whether the number is present and not zero in any row.
pub(crate) fn is_in_any(number: &Number, rows: &[&FunctionReport]) -> bool {
    rows.iter().any(|row| is_something(number, row))
}

/// Returns whether the number of a row is present and not zero.
pub(crate) fn is_something(number: &Number, row: &FunctionReport) -> bool {
    (number.of)(row).real().is_some_and(|value| value != 0.0)
}
