//! Functions over time: a row for each interval, function by function, so that a column reads downward in
//! time.

use super::Context;
use super::summary::Numbered::{self, All, Few, Most};
use super::summary::{Numbers, is_net, kind_of_times, numbers};
use crate::ui::notes::{head, marks::Marks};
use crate::ui::output::style::Tone;
use crate::ui::table::grid::{self, Cell, ColumnGroup, GridColumn};
use crate::ui::table::{net, plot};
use crate::ui::text;
use crate::ui::text::names::{self, label};
use crate::ui::text::units::{Digits, count, counted, time};
use ctrace_core::report::render::rows::{self, RowChoice};
use ctrace_core::report::{FunctionReport, TrendInterval, TrendReport};
use ctrace_core::units::Nanos;

/// Functions shown without `--top`.
const TOP: usize = 5;
const BAR_HEADING: &str = "p50 bar";
/// The width of a bar, at most and at least.
const BAR: usize = 24;
const LEAST_BAR: usize = BAR_HEADING.len();

/// Said below a trend.
const WHERE_CALLS_COUNT: &str =
    "A call counts in the interval in which it ended, and in each at whose end it was running.";
/// Said where an interval has losses.
const LOST: &str =
    "lost: events that are missing, late or unreadable in the interval; its numbers may be wrong.";

static NUMBERS: [Numbers; 6] = [
    numbers("calls", "calls", Few),
    numbers("calls/s", "calls_per_second", Most),
    numbers("mean", "mean_ns", All),
    numbers("p50", "p50_ns", Few),
    numbers("p99", "p99_ns", Few),
    numbers("max", "max_ns", Most),
];

/// The rows of a function.
struct Rows<'a> {
    of: Vec<(&'a TrendInterval, &'a FunctionReport)>,
    /// The letters of each.
    marks: Vec<String>,
}

pub(super) fn draw(context: &Context<'_>) -> String {
    let report = context.report;
    let mut out = text::title("Trend");
    let Some(trend) = &report.trend else { return out };
    out += &head::stretch(context);
    let selection = context.selection;
    let all = rows::functions(report, &RowChoice { top: None, ..selection.clone() });
    let (is_asked, top) = (selection.sort.is_some(), selection.top.unwrap_or(TOP));
    let mut marks = Marks::of(report);
    let (shown, left_out) = marks.cut(all, is_asked, top);
    let net = is_net(context);
    let (mut seen, mut undivided) = (Vec::new(), 0);
    for &function in &shown {
        let Some(rows) = trend.rows_of(function) else {
            undivided += usize::from(report.functions[function].calls > 0);
            continue;
        };
        let of: Vec<_> = rows.collect();
        let parts: Vec<&FunctionReport> = of.iter().map(|(_, row)| *row).collect();
        let rows = Rows { marks: marks.add_parts(function, &parts), of };
        out += &heading(context, function, &marks);
        out += &table(context, &rows, net);
        out.push('\n');
        seen.extend(parts);
    }
    let lines = remarks(trend, &seen, net).into_iter();
    let lines = lines.map(|line| text::paragraph(&line, Tone::Dim, context.style));
    out += &lines.collect::<String>();
    if undivided > 0 {
        let undivided = counted(undivided as u64, "function has", "functions have");
        let line = format!("{undivided} no rows here: give a longer --interval, or choose with -f");
        out += &text::paragraph(&line, Tone::Dim, context.style);
    }
    out + &context.left_out(left_out, "function", "functions")
        + &marks.legend(&shown, context.style)
}

fn heading(context: &Context<'_>, function: usize, marks: &Marks) -> String {
    let row = &context.report.functions[function];
    let calls = format!(" · {}", counted(row.calls, "call", "calls"));
    let rest = marks.behind(function) + &calls;
    let room = context.style.width.map_or(usize::MAX, |w| w.saturating_sub(names::width(&rest)));
    let name = names::shorten(&label(row), room);
    format!("{}{}{calls}\n", Tone::Name.mark(&name), Tone::Warm.mark(&marks.behind(function)))
}

fn table(context: &Context<'_>, rows: &Rows<'_>, net: bool) -> String {
    let width = context.style.width;
    let (mut group, mut room) = (ColumnGroup::default(), BAR);
    for share in [All, Most, Few] {
        group = columns(context, rows, share, net);
        room = width.map_or(BAR, |width| {
            // Two spaces separate the bar from the rest.
            width.saturating_sub(grid::total_width(&[&group]) + 2).min(BAR)
        });
        if room >= LEAST_BAR {
            break;
        }
    }
    if room >= LEAST_BAR {
        group.columns.push(bars(rows, room, net));
    }
    grid::draw(&[&group])
}

fn columns(context: &Context<'_>, rows: &Rows<'_>, share: Numbered, net: bool) -> ColumnGroup {
    let start = context.report.start_ns;
    let from = rows
        .of
        .iter()
        .map(|(interval, _)| format!("+{}", time(interval.start_ns.since(start), Digits::Full)));
    let mut columns = vec![GridColumn::right("from", from)];
    let letters = rows.marks.iter().map(|letters| Cell::toned(letters.clone(), Tone::Warm));
    let letters = GridColumn::left("", letters);
    columns.extend((letters.width() > 0).then_some(letters));
    let numbers = NUMBERS.iter().filter(|it| it.least <= share);
    columns.extend(numbers.map(|it| {
        GridColumn::right(&it.heading(), rows.of.iter().map(|(_, row)| it.cell(row, net)))
    }));
    let lost = || rows.of.iter().map(|(interval, _)| interval.loss.missing());
    if lost().any(|lost| lost > 0) {
        let cell = |lost: u64| {
            let tone = if lost > 0 { Tone::Warning } else { Tone::Dim };
            Cell::toned(count(lost), tone)
        };
        columns.push(GridColumn::right("lost", lost().map(cell)));
    }
    ColumnGroup::untitled(columns)
}

/// Draws the median of each interval. The longest bar is the largest.
fn bars(rows: &Rows<'_>, room: usize, net: bool) -> GridColumn {
    let median = |row: &FunctionReport| {
        let seen = row.durations.p50_ns.unwrap_or(Nanos::ZERO);
        let less = row.net_p50().filter(|_| net);
        less.map_or(seen, |less| less.known().unwrap_or(less.most)).0
    };
    let medians: Vec<u64> = rows.of.iter().map(|(_, row)| median(row)).collect();
    let most = medians.iter().copied().max().unwrap_or(0);
    GridColumn::left(BAR_HEADING, medians.iter().map(|&median| plot::bar(median, most, room)))
}

/// Says what an interval is, and what its times include.
fn remarks(trend: &TrendReport, rows: &[&FunctionReport], net: bool) -> Vec<String> {
    let length = |interval: &TrendInterval| interval.end_ns.since(interval.start_ns);
    let last = trend.intervals.last().map(length).filter(|last| *last < trend.interval_ns);
    let last = last.map(|last| format!(", the last {}", time(last, Digits::Full)));
    let mut lines = vec![format!(
        "An interval is {}{}. {WHERE_CALLS_COUNT}",
        time(trend.interval_ns, Digits::Full),
        last.unwrap_or_default(),
    )];
    if trend.intervals.iter().any(|interval| interval.loss.missing() > 0) {
        lines.push(LOST.to_owned());
    }
    let has_times =
        |row: &&&FunctionReport| row.ended() > 0 && row.wait.is_none() && !net::is_unknown(row);
    let timed = rows.iter().filter(has_times).filter(|_| net);
    let less = timed.flat_map(|row| NUMBERS.iter().filter_map(|it| it.less(row)));
    lines.extend(net::legend(less, false).into_iter().map(str::to_owned));
    lines.extend(net::unsubtracted(rows).filter(|_| net).map(str::to_owned));
    lines.push(kind_of_times(rows, net).to_owned());
    lines
}
