//! The threads that made calls, with times from the start of tracing.

use super::Context;
use crate::ui::output::style::Tone;
use crate::ui::table::grid::{self, Cell, ColumnGroup, GridColumn};
use crate::ui::text;
use crate::ui::text::names;
use crate::ui::text::units::{Digits, count, time};
use ctrace_core::goroutines::id_beside_name;
use ctrace_core::report::ThreadReport;
use ctrace_core::report::render::clean::clean;
use ctrace_core::report::render::rows;
use ctrace_core::units::Nanos;

/// Thread names have 15 bytes on Linux, but a report may come from elsewhere.
const NAME_ROOM: usize = 32;

pub(super) fn draw(context: &Context<'_>) -> String {
    let report = context.report;
    let rows = rows::threads(report, context.selection);
    let list: Vec<&ThreadReport> = rows.indices.iter().map(|&i| &report.threads[i]).collect();
    let id = |thread: &ThreadReport| {
        id_beside_name(thread.tid, &thread.name).map(|id| id.to_string()).unwrap_or_default()
    };
    let since_start = |at: Nanos| format!("+{}", time(at.since(report.start_ns), Digits::Full));
    let room = if context.style.width.is_some() { NAME_ROOM } else { usize::MAX };
    let names = list
        .iter()
        .map(|thread| Cell::toned(names::cut_middle(&clean(&thread.name), room), Tone::Name));
    let group = ColumnGroup::untitled(vec![
        GridColumn::right("pid", list.iter().map(|t| t.pid.0.to_string())),
        GridColumn::right("tid", list.iter().map(|t| id(t))),
        GridColumn::left("name", names),
        GridColumn::right("calls", list.iter().map(|t| count(t.calls))),
        GridColumn::right("first", list.iter().map(|t| since_start(t.first_ns))),
        GridColumn::right("last", list.iter().map(|t| since_start(t.last_ns))),
    ]);
    text::title("Threads")
        + &grid::draw(&[&group])
        + &context.left_out(rows.left_out, "thread", "threads")
}
