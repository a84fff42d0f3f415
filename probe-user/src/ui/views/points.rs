//! Calls with values, in order of time: part of the view of single calls.

use super::Context;
use super::calls::thread;
use crate::ui::output::style::Tone;
use crate::ui::table::grid::{self, ColumnGroup, GridColumn};
use crate::ui::text;
use crate::ui::text::names;
use crate::ui::text::units::{Digits, counted, time};
use ctrace_core::report::render::clean::clean;
use ctrace_core::report::{PointReport, PointsReport};
use ctrace_core::units::Nanos;

/// The least width of names and values.
const LEAST: usize = 20;

/// Draws the points with their times since `start`, and with threads if there are several.
pub(super) fn draw(
    context: &Context<'_>,
    points: &PointsReport,
    start: Nanos,
    with_threads: bool,
) -> String {
    let rows = &points.first;
    let at = |point: &PointReport| format!("+{}", time(point.start_ns.since(start), Digits::Full));
    let mut columns = vec![GridColumn::right("at", rows.iter().map(at))];
    if with_threads {
        let of = rows.iter().map(|row| thread(row.tid, row.thread.as_deref()).unwrap_or_default());
        columns.push(GridColumn::left("thread", of));
    }
    let facts = ColumnGroup::untitled(columns);
    // Names and values share the rest of the width, with two columns between groups.
    let left = context.style.width.map_or(usize::MAX, |width| {
        width.saturating_sub(grid::total_width(&[&facts]) + 4).max(2 * LEAST)
    });
    let name = |point: &PointReport| {
        names::shorten(&clean(&context.report.name_of(point.function)), left / 2)
    };
    let function = ColumnGroup::untitled(vec![GridColumn::left("function", rows.iter().map(name))]);
    let room = left - left.min(grid::total_width(&[&function]));
    let values = rows.iter().map(|row| names::shorten(&row.values.to_string(), room));
    let values = ColumnGroup::untitled(vec![GridColumn::left("values", values)]);
    let mut out = grid::draw(&[&facts, &function, &values]);
    if points.more > 0 {
        let more = counted(points.more, "more call", "more calls");
        out += &text::paragraph(&format!("{more} with values not shown"), Tone::Dim, context.style);
    }
    if points.unread > 0 {
        let values = counted(points.unread, "value", "values");
        let why = format!("{values} could not be read: there was no such memory, or not yet");
        out += &text::paragraph(&why, Tone::Dim, context.style);
    }
    out
}
