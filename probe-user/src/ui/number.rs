//! Numbers of a function in tables. A view lists which of the registry it shows and under which
//! headings; what they are, and how they are written, is the registry's.

use super::grid::{Cell, Column};
use super::style::Tone;
use super::units::{ABSENT, Digits, count, maybe_percent, maybe_time, rate, ratio};
use ctrace_core::report::FunctionReport;
use ctrace_core::report::numbers::{Number, Unit};
use ctrace_core::report::render::columns::Key;
use ctrace_core::units::Nanos;

/// A heading, and the number below it.
pub(super) type Heading = (&'static str, &'static Number);

/// A spread beyond the mean itself deserves a look.
const REMARKABLE_RATIO: f64 = 1.0;

/// The number of a row as text.
pub(crate) fn text(number: &Number, row: &FunctionReport, digits: Digits) -> String {
    match (number.unit, (number.of)(row)) {
        (Unit::Time, Key::Count(ns)) => maybe_time(ns.map(Nanos), digits),
        (_, Key::Count(n)) => n.map_or_else(|| ABSENT.to_owned(), count),
        (Unit::Percent, Key::Real(value)) => maybe_percent(value),
        (Unit::Rate, Key::Real(value)) => value.map_or_else(|| ABSENT.to_owned(), rate),
        (_, Key::Real(value)) => ratio(value),
        (_, Key::Text(text)) => text.to_owned(),
    }
}

fn cell(number: &Number, row: &FunctionReport, digits: Digits) -> Cell {
    let tone = match (number.unit, (number.of)(row).real()) {
        (Unit::Percent, share) => share.map_or(Tone::Dim, Tone::of_percent),
        (Unit::Ratio, Some(ratio)) if ratio > REMARKABLE_RATIO => Tone::Warm,
        _ => Tone::Plain,
    };
    Cell::toned(text(number, row, digits), tone)
}

/// A column of this number of each row.
pub(super) fn column(
    heading: &str,
    number: &Number,
    rows: &[&FunctionReport],
    digits: Digits,
) -> Column {
    Column::right(heading, rows.iter().map(|row| cell(number, row, digits)))
}

/// A column for each heading.
pub(super) fn columns(
    headings: &[Heading],
    rows: &[&FunctionReport],
    digits: Digits,
) -> Vec<Column> {
    headings.iter().map(|(heading, number)| column(heading, number, rows, digits)).collect()
}

/// Whether the number of any row is there and not zero.
pub(super) fn is_in_any(number: &Number, rows: &[&FunctionReport]) -> bool {
    rows.iter().any(|row| is_something(number, row))
}

/// Whether the number of a row is there and not zero.
pub(super) fn is_something(number: &Number, row: &FunctionReport) -> bool {
    (number.of)(row).real().is_some_and(|value| value != 0.0)
}
