//! The slowest calls, each with the calls inside it: the outlier and its reason.

use super::{Context, points};
use crate::ui::output::style::Tone;
use crate::ui::table::forest::{self, Forest, TreeLine};
use crate::ui::table::grid::{self, ColumnGroup, GridColumn};
use crate::ui::text;
use crate::ui::text::names;
use crate::ui::text::path;
use crate::ui::text::units::{Digits, count, counted, time};
use ctrace_core::report::render::clean::clean;
use ctrace_core::report::render::rows;
use ctrace_core::report::{CallReport, InsideReport};
use ctrace_core::units::{Nanos, Tid};

/// Calls shown without `--top`.
pub(super) const TOP: usize = 10;
/// The limit of rows inside a call.
const INSIDE: usize = 16;

pub(super) fn draw(context: &Context<'_>) -> String {
    let report = context.report;
    let calls = report.slowest_calls.as_deref().unwrap_or_default();
    let rows = rows::calls(report, context.selection);
    let mut out = String::new();
    if !calls.is_empty() || report.points.is_empty() {
        out += &text::title("Slowest calls");
    }
    if calls.is_empty() && report.points.is_empty() {
        out += "No call has a known duration.\n";
    }
    let shown: Vec<&CallReport> = rows.indices.iter().map(|&index| &calls[index]).collect();
    for (place, call) in shown.iter().enumerate() {
        out += &of_call(context, place, call, outside(&shown, call));
    }
    if !report.points.is_empty() {
        out += if calls.is_empty() { "" } else { "\n" };
        out += &text::title("First calls with values");
        out += &points::draw(context, &report.points, report.start_ns, true);
    }
    out
}

/// Returns the number of the innermost shown call that encloses this one.
fn outside(shown: &[&CallReport], call: &CallReport) -> Option<usize> {
    let end = |call: &CallReport| call.start_ns.saturating_add(call.duration_ns);
    let encloses = |outer: &CallReport| {
        (outer.tid, outer.pid) == (call.tid, call.pid)
            && outer.start_ns <= call.start_ns
            && end(outer) >= end(call)
            && outer.functions.len() < call.functions.len()
            && call.functions.starts_with(&outer.functions)
    };
    let outer = shown.iter().enumerate().filter(|(_, outer)| encloses(outer));
    outer.max_by_key(|(_, outer)| outer.functions.len()).map(|(place, _)| place + 1)
}

fn of_call(
    context: &Context<'_>,
    place: usize,
    call: &CallReport,
    outside: Option<usize>,
) -> String {
    let style = context.style;
    let lead = format!("{}. {}  ", place + 1, time(call.duration_ns, Digits::Full));
    let room = style.width.map_or(usize::MAX, |width| width.saturating_sub(names::width(&lead)));
    let name = names::shorten(&clean(&context.report.name_of(call.function)), room);
    let mut out =
        format!("\n{}{}\n", Tone::Heading.mark(&lead), Tone::of_function(&name).mark(&name));
    let mut facts =
        vec![format!("+{}", time(call.start_ns.since(context.report.start_ns), Digits::Full))];
    facts.extend(thread(call.tid, call.thread.as_deref()).map(|of| format!("thread {of}")));
    facts.push(format!("self {}", time(call.self_ns, Digits::Full)));
    if !call.values.is_empty() {
        facts.push(call.values.to_string());
    }
    if let Some(outer) = outside {
        facts.push(format!("inside {outer}."));
    }
    if let [callers @ .., _] = context.report.names_of_call(call).as_slice()
        && !callers.is_empty()
    {
        let room = style.width.map_or(usize::MAX, |width| width / 2);
        facts.push(format!("called by {}", path::joined(callers, room)));
    }
    out += &text::paragraph(&format!("   {}", facts.join(" · ")), Tone::Dim, style);
    if !call.inside.is_empty() {
        out += &inside(context, call);
    }
    if !call.points.is_empty() {
        out += &points::draw(context, &call.points, call.start_ns, false);
    }
    out
}

/// Formats a thread's name and id.
pub(super) fn thread(tid: Option<Tid>, name: Option<&str>) -> Option<String> {
    let tid = tid?.0;
    Some(match name {
        None | Some("") => tid.to_string(),
        Some(name) => format!("{} ({tid})", clean(name)),
    })
}

/// Returns the longest rows, in order of time.
fn inside(context: &Context<'_>, call: &CallReport) -> String {
    let rows = &call.inside;
    let weight = |row: usize| Some(rows[row].total_ns.0);
    let mut forest = Forest::choose(rows.iter().map(|row| row.parent), weight, INSIDE);
    forest.sort_children(usize::cmp);
    let lines = forest.lines();
    let at = |line: &TreeLine| &rows[line.row];
    let digits = Digits::Short;
    let since = |start: Nanos| format!("+{}", time(start.since(call.start_ns), digits));
    let several = |row: &InsideReport| match row.calls {
        1 => String::new(),
        _ => time(row.max_ns, digits),
    };
    let mut columns = vec![
        GridColumn::right("at", lines.iter().map(|line| since(at(line).start_ns))),
        GridColumn::right("total", lines.iter().map(|line| time(at(line).total_ns, digits))),
        GridColumn::right("self", lines.iter().map(|line| time(at(line).self_ns, digits))),
    ];
    if lines.iter().any(|line| at(line).calls > 1) {
        columns.push(GridColumn::right("longest", lines.iter().map(|line| several(at(line)))));
    }
    let numbers = ColumnGroup::untitled(columns);
    let room = context.style.width.map_or(usize::MAX, |width| {
        width.saturating_sub(grid::total_width(&[&numbers]) + 2).max("inside".len())
    });
    let name = |line: &TreeLine| {
        let row = at(line);
        let times = if row.calls == 1 { String::new() } else { format!(" ×{}", count(row.calls)) };
        (clean(&context.report.name_of(row.function)).into_owned(), times)
    };
    let tree =
        ColumnGroup::untitled(vec![GridColumn::left("inside", forest::cells(&lines, name, room))]);
    let mut out = grid::draw(&[&numbers, &tree]);
    let shown: u64 = lines.iter().map(|line| at(line).calls).sum();
    if shown < call.inside_calls {
        let more = counted(call.inside_calls - shown, "more call", "more calls");
        out += &text::paragraph(&format!("{more} inside not shown"), Tone::Dim, context.style);
    }
    out
}
