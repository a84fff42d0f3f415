//! Durations of calls: sums, spread and percentiles, and CTRACK's three groups: the fastest calls,
//! the center, and the slowest.

use super::super::text;
use super::{Context, center_range};
use crate::ui::notes::marks::Marks;
use crate::ui::output::style::Tone;
use crate::ui::table::armed;
use crate::ui::table::grid::{Cell, ColumnGroup, GridColumn};
use crate::ui::table::number::{self, Heading, columns, is_in_any, is_something, text as text_of};
use crate::ui::table::row_names::RowNames;
use crate::ui::table::stack::{self, Section};
use crate::ui::text::names::bare;
use crate::ui::text::units::{ABSENT, Digits};
use ctrace_core::report::FunctionReport;
use ctrace_core::report::numbers::{Unit, number};
use ctrace_core::report::render::rows;

static SUMS: [Heading; 6] = [
    ("total", number("total_ns")),
    ("self", number("self_ns")),
    ("sd", number("sd_ns")),
    ("cv", number("cv")),
    ("calls", number("calls")),
    ("threads", number("threads")),
];

static EXCEPTIONS: [Heading; 3] = [
    ("ended unseen", number("untimed")),
    ("still running", number("open")),
    ("began before", number("headless")),
];

static PERCENTILES: [Heading; 5] = [
    ("p50", number("p50_ns")),
    ("p90", number("p90_ns")),
    ("p95", number("p95_ns")),
    ("p99", number("p99_ns")),
    ("p99.9", number("p999_ns")),
];

static FASTEST: [Heading; 2] =
    [("min", number("fastest_min_ns")), ("mean", number("fastest_mean_ns"))];

static CENTER: [Heading; 6] = [
    ("min", number("center_min_ns")),
    ("mean", number("center_mean_ns")),
    ("med", number("center_median_ns")),
    ("time a", number("center_active_ns")),
    ("innermost", number("center_active_exclusive_ns")),
    ("max", number("center_max_ns")),
];

static SLOWEST: [Heading; 2] =
    [("mean", number("slowest_mean_ns")), ("max", number("slowest_max_ns"))];

pub(super) fn draw(context: &Context<'_>) -> String {
    let report = context.report;
    let rows = rows::functions(report, context.selection);
    let list: Vec<&FunctionReport> = rows.indices.iter().map(|&i| &report.functions[i]).collect();
    let names = RowNames::of(&list, bare);
    let marks = Marks::of(report);
    let sections_of = |digits| {
        let mut sections = sections(context, &list, digits);
        let first = marks.column(&rows.indices).into_iter().chain(armed::column(&list));
        let first: Vec<GridColumn> = first.collect();
        if !first.is_empty() {
            sections[0].insert(0, ColumnGroup::untitled(first));
        }
        sections
    };
    let pairs = sections_of(Digits::Full).into_iter().zip(sections_of(Digits::Short));
    let sections = pairs.map(|(full, short)| Section { full, short }).collect();
    text::title("Details")
        + &stack::draw(&names, sections, context.style)
        + &text::left_out(rows.left_out, "function", "functions", context.style)
        + &marks.legend(&rows.indices, context.style)
        + &armed::legend(&list)
            .map(|line| text::paragraph(line, Tone::Dim, context.style))
            .unwrap_or_default()
}

/// Returns the columns of sums. A function has no times before a call of it has ended.
fn sums(list: &[&FunctionReport], digits: Digits) -> Vec<GridColumn> {
    let column = |(heading, number): &Heading| {
        let cell = |row: &&FunctionReport| match number.unit {
            Unit::Time if row.ended() == 0 => Cell::from(ABSENT.to_owned()),
            _ => number::cell(number, *row, digits),
        };
        GridColumn::right(heading, list.iter().map(cell))
    };
    SUMS.iter().map(column).collect()
}

/// Returns the columns: sums, counts without durations, percentiles, and the three groups of calls.
fn sections(
    context: &Context<'_>,
    list: &[&FunctionReport],
    digits: Digits,
) -> Vec<Vec<ColumnGroup>> {
    let (low, high) = center_range(context.report);
    let columns = |headings: &[Heading]| columns(headings, list, digits);
    let mut sections = vec![vec![ColumnGroup::untitled(sums(list, digits))]];
    if EXCEPTIONS.iter().any(|(_, number)| is_in_any(number, list)) {
        let exceptions = EXCEPTIONS.iter().map(|(heading, number)| {
            let cell = |row: &&FunctionReport| {
                let tone = if is_something(number, row) { Tone::Warm } else { Tone::Dim };
                Cell::toned(text_of(number, row, digits), tone)
            };
            GridColumn::right(heading, list.iter().map(cell))
        });
        let columns = exceptions.collect();
        sections.push(vec![ColumnGroup::titled("without a duration".to_owned(), columns)]);
    }
    sections.push(vec![ColumnGroup::untitled(columns(&PERCENTILES))]);
    sections.push(vec![
        ColumnGroup::titled(format!("fastest[0-{low}]%"), columns(&FASTEST)),
        ColumnGroup::titled(format!("center[{low}-{high}]%"), columns(&CENTER)),
        ColumnGroup::titled(format!("slowest[{high}-100]%"), columns(&SLOWEST)),
    ]);
    sections
}
