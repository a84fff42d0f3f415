//! The slowest calls, each with the calls inside it: the outlier and its reason.

use super::{Context, Needs, ViewName, points};
use crate::ui::output::style::Tone;
use crate::ui::table::forest::{self, Forest, TreeLine};
use crate::ui::table::grid::{self, ColumnGroup, GridColumn};
use crate::ui::text;
use crate::ui::text::names;
use crate::ui::text::path;
use crate::ui::text::units::{Digits, count, counted, time};
use ctrace_core::goroutines::{common_name, id_beside_name};
use ctrace_core::report::render::clean::clean;
use ctrace_core::report::render::rows::{self, RowChoice};
use ctrace_core::report::{CallReport, InsideReport};
use ctrace_core::units::Tid;

/// Calls shown without `--top`, and those beside tables of values.
pub(super) const TOP: usize = 10;
const BESIDE_VALUES: usize = 3;
/// The limit of rows inside a call.
const INSIDE: usize = 16;
/// The lines above the rows of a table: the headings and a rule.
const HEADINGS: usize = 2;

pub(super) fn draw(context: &Context<'_>) -> String {
    let report = context.report;
    let calls = report.slowest_calls.as_deref().unwrap_or_default();
    let few = is_beside_values(context).then_some(BESIDE_VALUES);
    let top = context.selection.top.or(few);
    let rows = rows::calls(report, &RowChoice { top, ..context.selection.clone() });
    let mut out = String::new();
    if !calls.is_empty() || report.points.is_empty() {
        out += &text::title("Slowest calls");
    }
    if calls.is_empty() && report.points.is_empty() {
        out += "No call has a known duration.\n";
    }
    let shown: Vec<&CallReport> = rows.indices.iter().map(|&index| &calls[index]).collect();
    let mut insides = Insides::draw(context, &shown);
    for (place, call) in shown.iter().enumerate() {
        let outer = outside(&shown, call);
        out += &of_call(context, place, call, outer);
        // Nearly the same is inside the one around it.
        let is_shown = |outer: usize| call.duration_ns.0 >= shown[outer - 1].duration_ns.0 / 10 * 9;
        if !outer.is_some_and(is_shown) {
            out += &insides.of(context, place, call);
        }
        if !call.points.is_empty() {
            out += &points::draw(context, &call.points, call.start_ns, false);
        }
    }
    if few.is_some() {
        out += &context.left_out(rows.left_out, "slow call", "slow calls");
    }
    if !report.points.is_empty() {
        out += if calls.is_empty() { "" } else { "\n" };
        out += &text::title("First calls with values");
        out += &match few {
            Some(most) => {
                let mut first = report.points.clone();
                first.more += first.first.len().saturating_sub(most) as u64;
                first.first.truncate(most);
                points::draw(context, &first, report.start_ns, true)
            }
            None => points::draw(context, &report.points, report.start_ns, true),
        };
    }
    out
}

/// Returns whether tables of values take most of the screen, and the reader has not said how many rows to show.
fn is_beside_values(context: &Context<'_>) -> bool {
    let shows_values = |view: &ViewName| view.view().needs == Needs::Values;
    context.selection.top.is_none() && context.options.views.iter().any(shows_values)
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
    let tone = Tone::of(&name, context.report.colour_of(call.function));
    let out = format!("\n{}{}\n", Tone::Heading.mark(&lead), tone.mark(&name));
    let mut facts =
        vec![format!("+{}", time(call.start_ns.since(context.report.start_ns), Digits::Full))];
    let thread = thread(call.tid, call.thread.as_deref());
    let is_goroutine = call.tid.is_some_and(|tid| common_name(tid).is_some());
    let what = if is_goroutine { "" } else { "thread " };
    facts.extend(thread.map(|of| format!("{what}{of}")));
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
    out + &text::paragraph(&format!("   {}", facts.join(" · ")), Tone::Dim, style)
}

/// Formats a thread's name and id.
pub(super) fn thread(tid: Option<Tid>, name: Option<&str>) -> Option<String> {
    let (tid, name) = (tid?, name.unwrap_or_default());
    Some(match id_beside_name(tid, name) {
        Some(id) if name.is_empty() => id.to_string(),
        Some(id) => format!("{} ({id})", clean(name)),
        None => clean(name).into_owned(),
    })
}

/// The calls inside some calls as one table: its columns are the same for all, so its headings need to
/// stand above the first rows only.
struct Insides {
    /// The headings and their rule, until they are shown.
    headings: String,
    /// The rows of each call, and the number of calls that they stand for.
    rows: Vec<(String, u64)>,
}

impl Insides {
    /// Draws the longest rows of each call, in order of time.
    fn draw(context: &Context<'_>, calls: &[&CallReport]) -> Self {
        let lines: Vec<Vec<TreeLine>> = calls.iter().map(|call| longest(call)).collect();
        let each = || calls.iter().zip(&lines);
        let all = || each().flat_map(|(call, lines)| lines.iter().map(move |line| (*call, line)));
        let at = row_of;
        let digits = Digits::Short;
        let since = |of: (&CallReport, &TreeLine)| {
            format!("+{}", time(at(of).start_ns.since(of.0.start_ns), digits))
        };
        let several = |row: &InsideReport| match row.calls {
            1 => String::new(),
            _ => time(row.max_ns, digits),
        };
        let mut columns = vec![
            GridColumn::right("at", all().map(since)),
            GridColumn::right("total", all().map(|of| time(at(of).total_ns, digits))),
            GridColumn::right("self", all().map(|of| time(at(of).self_ns, digits))),
        ];
        if all().any(|of| at(of).calls > 1) {
            columns.push(GridColumn::right("longest", all().map(|of| several(at(of)))));
        }
        let numbers = ColumnGroup::untitled(columns);
        let room = context.style.width.map_or(usize::MAX, |width| {
            width.saturating_sub(grid::total_width(&[&numbers]) + 2).max("inside".len())
        });
        let trees = each().flat_map(|(call, lines)| {
            let name = |line: &TreeLine| {
                let row = &call.inside[line.row];
                let times = match row.calls {
                    1 => String::new(),
                    calls => format!(" ×{}", count(calls)),
                };
                let name = clean(&context.report.name_of(row.function)).into_owned();
                (name, context.report.colour_of(row.function), times)
            };
            forest::cells(lines, name, room)
        });
        let tree = ColumnGroup::untitled(vec![GridColumn::left("inside", trees)]);
        let drawn = grid::draw(&[&numbers, &tree]);
        let mut drawn = drawn.split_inclusive('\n');
        let headings = drawn.by_ref().take(HEADINGS).collect();
        let rows = each().map(|(call, lines)| {
            let shown = lines.iter().map(|line| call.inside[line.row].calls).sum();
            (drawn.by_ref().take(lines.len()).collect(), shown)
        });
        let rows = rows.collect();
        Self { headings, rows }
    }

    /// Returns the rows of the call at this place, with the headings if they are the first.
    fn of(&mut self, context: &Context<'_>, place: usize, call: &CallReport) -> String {
        let (rows, shown) = &self.rows[place];
        if rows.is_empty() {
            return String::new();
        }
        let mut out = std::mem::take(&mut self.headings) + rows;
        if *shown < call.inside_calls {
            let more = counted(call.inside_calls - shown, "more call", "more calls");
            out += &text::paragraph(&format!("{more} inside not shown"), Tone::Dim, context.style);
        }
        out
    }
}

fn row_of<'a>((call, line): (&'a CallReport, &TreeLine)) -> &'a InsideReport {
    &call.inside[line.row]
}

/// Returns the longest rows inside a call, in order of time.
fn longest(call: &CallReport) -> Vec<TreeLine> {
    let rows = &call.inside;
    let weight = |row: usize| Some(rows[row].total_ns.0);
    let mut forest = Forest::choose(rows.iter().map(|row| row.parent), weight, INSIDE);
    forest.sort_children(usize::cmp);
    forest.lines()
}
