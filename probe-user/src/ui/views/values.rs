//! The calls of each function by its arguments and its result: for which of them it is slow.

use super::Context;
use crate::ui::output::style::Tone;
use crate::ui::table::grid::{self, Cell, ColumnGroup, GridColumn};
use crate::ui::text;
use crate::ui::text::names;
use crate::ui::text::units::{Digits, count, counted, maybe_time, time};
use ctrace_core::report::render::clean::clean;
use ctrace_core::report::render::rows::{self, ChosenRows, RowChoice};
use ctrace_core::report::{ByValue, NOT_READ, UNREADABLE, ValueCalls};
use ctrace_core::units::{Nanos, saturating_sum};

/// Values shown without `--top`, by all tables together, and by each at least.
pub(super) const TOP: usize = 20;
const LEAST: usize = 5;
/// The number of rows for which no table is cut.
const NEARLY: usize = 3;
const TITLE: &str = "Values: ";
/// Said where a total is not explained by the mean.
const UNSEEN: &str = "Some calls ended unseen. Mean, percentiles and max leave them out; total counts them \
                      until the last event seen before their end.";
/// The least width of a value.
const LEAST_ROOM: usize = 12;

pub(super) fn draw(context: &Context<'_>) -> String {
    let share = TOP.div_ceil(context.report.values.len().max(1)).max(LEAST);
    let tables = context.report.values.iter().map(|table| {
        let is_whole = table.rows.len() <= share + NEARLY;
        let top = context.selection.top.or((!is_whole).then_some(share));
        of(context, table, &RowChoice { top, ..context.selection.clone() })
    });
    let (tables, unseen): (Vec<String>, Vec<bool>) = tables.unzip();
    if tables.is_empty() {
        return text::title("Values") + &no_values(context);
    }
    let has_values = |at: usize| context.report.values.iter().any(|table| table.function == at);
    let called = context.report.functions.iter().enumerate();
    let without =
        called.filter(|(at, row)| row.calls > 0 && row.wait.is_none() && !has_values(*at));
    let without = match without.count() as u64 {
        0 => String::new(),
        n => {
            let functions =
                counted(n, "function that was called has", "functions that were called have");
            let line = format!("{functions} no values: --view summary shows all.");
            "\n".to_owned() + &text::paragraph(&line, Tone::Dim, context.style)
        }
    };
    let unseen = match unseen.contains(&true) {
        true => text::paragraph(UNSEEN, Tone::Dim, context.style),
        false => String::new(),
    };
    tables.join("\n") + &unseen + &without
}

/// Says why no call has values: those that were asked for may not be readable.
fn no_values(context: &Context<'_>) -> String {
    let notes = context.report.notes.iter().filter(|note| is_of_unread(note));
    let notes: Vec<_> = notes.map(|note| clean(note)).collect();
    let why = match notes.is_empty() {
        true => "--arg, --ret and -u choose some.".to_owned(),
        false => format!("{}.", notes.join("; ")),
    };
    text::paragraph(&format!("No call has values: {why}"), Tone::Plain, context.style)
}

/// Returns whether a note says why values are not read. This view tells it where no call has values.
pub(crate) fn is_of_unread(note: &str) -> bool {
    ["is", "are"].iter().any(|verb| note.contains(&format!(" {verb} {NOT_READ}")))
}

/// Returns a table, and whether calls that ended unseen are much of its totals.
fn of(context: &Context<'_>, table: &ByValue, selection: &RowChoice) -> (String, bool) {
    let function = context.report.functions.get(table.function);
    let name = function.map_or_else(String::new, names::label);
    let name = format!("{name} by {}", clean(&table.name));
    let room = context.style.width.map_or(usize::MAX, |width| width.saturating_sub(TITLE.len()));
    let title = text::title(&format!("{TITLE}{}", names::shorten(&name, room)));
    let chosen = rows::values(table, selection);
    let rows = chosen.indices.iter().map(|&row| &table.rows[row]);
    let mut rows: Vec<Row> = rows.map(|row| (row.value.to_string(), Tone::Name, row.of)).collect();
    let others = table.others.map(|of| ("other values".to_owned(), Tone::Dim, of));
    let unread = table.unread.map(|of| (UNREADABLE.to_owned(), Tone::Dim, of));
    rows.extend(others.into_iter().chain(unread));
    let numbers = ColumnGroup::untitled(numbers(&rows));
    let room = context.style.width.map_or(usize::MAX, |width| {
        width.saturating_sub(grid::total_width(&[&numbers]) + 2).max(LEAST_ROOM)
    });
    let value = |(value, tone, _): &Row| Cell::toned(names::cut_end(value, room), *tone);
    let values = ColumnGroup::untitled(vec![GridColumn::left("value", rows.iter().map(value))]);
    let unsure = match table.unsure {
        true => text::paragraph(
            "There are too many different values to compare all: one of the others may have taken more \
             than one of these.",
            Tone::Dim,
            context.style,
        ),
        false => String::new(),
    };
    let text =
        title + &grid::draw(&[&numbers, &values]) + &left_out(context, table, &chosen) + &unsure;
    (text, rows.iter().any(|(_, _, of)| has_unseen(of)))
}

/// Gets a time of calls.
type TimeOf = fn(&ValueCalls) -> Option<Nanos>;

/// A row of a table.
type Row = (String, Tone, ValueCalls);

/// Returns the columns of numbers that some row fills: points have no times.
fn numbers(rows: &[Row]) -> Vec<GridColumn> {
    let digits = Digits::Short;
    let mut columns =
        vec![GridColumn::right("calls", rows.iter().map(|(_, _, of)| count(of.calls)))];
    if rows.iter().any(|(_, _, of)| has_times(of)) {
        columns.push(GridColumn::right(
            "total",
            rows.iter().map(|(_, _, of)| time(of.total_ns, digits)),
        ));
    }
    let times: [(_, TimeOf); 4] = [
        ("mean", |of| of.mean_ns),
        ("p50", |of| of.p50_ns),
        ("p99", |of| of.p99_ns),
        ("max", |of| of.max_ns),
    ];
    let filled = times.into_iter().filter(|(_, get)| rows.iter().any(|row| get(&row.2).is_some()));
    columns.extend(filled.map(|(heading, get)| {
        GridColumn::right(heading, rows.iter().map(|row| maybe_time(get(&row.2), digits)))
    }));
    columns
}

fn has_times(of: &ValueCalls) -> bool {
    of.total_ns > Nanos::ZERO || of.mean_ns.is_some()
}

/// Tells the sums of the values that are not shown: the row of other values does not have them.
fn left_out(context: &Context<'_>, table: &ByValue, chosen: &ChosenRows) -> String {
    let rest = |number: fn(&ValueCalls) -> u64| {
        let all = saturating_sum(table.rows.iter().map(|row| number(&row.of)));
        let shown = chosen.indices.iter().map(|&row| number(&table.rows[row].of));
        all.saturating_sub(saturating_sum(shown))
    };
    let calls = counted(rest(|of| of.calls), "call", "calls");
    let total = match table.rows.iter().any(|row| has_times(&row.of)) {
        true => format!(", {}", time(Nanos(rest(|of| of.total_ns.0)), Digits::Short)),
        false => String::new(),
    };
    let remedy = format!(" (--top): {calls}{total}");
    text::not_shown(chosen.left_out, "value", "values", &remedy, context.style)
}

/// Returns whether calls without a duration are more than a tenth of the total.
fn has_unseen(of: &ValueCalls) -> bool {
    let timed = of.mean_ns.map_or(0, |mean| mean.0.saturating_mul(of.timed));
    of.timed < of.calls && of.total_ns.0.saturating_sub(timed) > of.total_ns.0 / 10
}
