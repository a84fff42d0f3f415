//! Calls with values beside them, in order of time: part of the view of single calls.

use super::super::grid::{self, Column, Group};
use super::super::style::Tone;
use super::super::units::{Digits, counted, time};
use super::super::{names, text};
use super::Context;
use super::calls::thread;
use ctrace_core::report::render::clean::clean;
use ctrace_core::report::{PointReport, PointsReport};
use ctrace_core::units::Nanos;

/// The values get what is left of the width, and no less than this.
const LEAST: usize = 24;

/// Draws the points with their times since `start`; `with_threads`, where they are of several.
pub(super) fn draw(
    context: &Context<'_>,
    points: &PointsReport,
    start: Nanos,
    with_threads: bool,
) -> String {
    let rows = &points.first;
    let at = |point: &PointReport| format!("+{}", time(point.start_ns.since(start), Digits::Full));
    let name = |point: &PointReport| clean(&context.report.name_of(point.function)).into_owned();
    let mut columns = vec![Column::right("at", rows.iter().map(at))];
    if with_threads {
        let of = rows.iter().map(|row| thread(row.tid, row.thread.as_deref()).unwrap_or_default());
        columns.push(Column::left("thread", of));
    }
    columns.push(Column::left("function", rows.iter().map(name)));
    let facts = Group::untitled(columns);
    let room = context.style.width.map_or(usize::MAX, |width| {
        width.saturating_sub(grid::total_width(&[&facts]) + 2).max(LEAST)
    });
    let values = rows.iter().map(|row| names::shorten(&row.values.to_string(), room));
    let values = Group::untitled(vec![Column::left("values", values)]);
    let mut out = grid::draw(&[&facts, &values]);
    if points.more > 0 {
        let more = counted(points.more, "more call", "more calls");
        out +=
            &text::paragraph(&format!("… {more} with values not shown"), Tone::Dim, context.style);
    }
    out
}
