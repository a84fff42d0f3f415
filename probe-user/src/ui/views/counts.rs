//! The number of calls of each path, without durations.

use super::super::text;
use super::Context;
use crate::ui::output::style::Tone;
use crate::ui::table::grid::{self, Cell, ColumnGroup, GridColumn};
use crate::ui::text::path::joined_all;
use crate::ui::text::units::{ABSENT, count};
use ctrace_core::report::PathReport;
use ctrace_core::report::render::rows::{self, RowChoice};

/// Paths shown without `--top`.
const TOP: usize = 20;
/// The least width of a path.
const LEAST_ROOM: usize = 12;

pub(super) fn draw(context: &Context<'_>) -> String {
    let report = context.report;
    let top = context.selection.top.unwrap_or(TOP);
    let selection = RowChoice { top: Some(top), ..context.selection.clone() };
    let rows = rows::counts(report, &selection);
    let list: Vec<&PathReport> = rows.indices.iter().map(|&i| &report.paths[i]).collect();
    let per_caller = |path: &PathReport| {
        let caller = path.parent.and_then(|parent| report.paths.get(parent));
        caller.filter(|caller| caller.calls > 0).map_or_else(
            || ABSENT.to_owned(),
            |caller| format!("{:.2}", path.calls as f64 / caller.calls as f64),
        )
    };
    let numbers = ColumnGroup::untitled(vec![
        GridColumn::right("calls", list.iter().map(|path| count(path.calls))),
        GridColumn::right("per caller", list.iter().map(|path| per_caller(path))),
    ]);
    let room = context.style.width.map_or(usize::MAX, |width| {
        width.saturating_sub(grid::total_width(&[&numbers]) + 2).max(LEAST_ROOM)
    });
    let names: Vec<_> = rows.indices.iter().map(|&path| report.names_on_path(path)).collect();
    let paths = joined_all(&names, room).into_iter().map(|path| Cell::toned(path, Tone::Name));
    let path = ColumnGroup::untitled(vec![GridColumn::left("path", paths)]);
    text::title("Counts")
        + &grid::draw(&[&numbers, &path])
        + &text::left_out(rows.left_out, "path", "paths", context.style)
}
