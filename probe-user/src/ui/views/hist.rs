//! The distribution of each function's durations: a histogram on a logarithmic scale beside the
//! percentiles, and a map of octaves over time.

use super::Context;
use crate::ui::notes::marks::Marks;
use crate::ui::output::style::{Style, Tone};
use crate::ui::table::number::Heading;
use crate::ui::table::plot;
use crate::ui::text;
use crate::ui::text::names::{self, label};
use crate::ui::text::units::{ABSENT, Digits, count, counted, maybe_time, time};
use ctrace_core::report::numbers::{Number, number};
use ctrace_core::report::render::rows::{self, RowChoice};
use ctrace_core::report::{Distribution, FunctionHistogram, FunctionReport, HeatRow};
use ctrace_core::units::Nanos;

/// Functions shown without `--top`.
const TOP: usize = 5;
/// Rows of a histogram, unless there are more octaves.
const ROWS: usize = 16;
/// Buckets of an octave, as powers of two, from many to few.
const SUB_BITS: [u32; 4] = [3, 2, 1, 0];
/// The width of a bar.
const BAR: usize = 40;
const LEAST_BAR: usize = 8;
/// The width of an edge such as `1.02 ms`. The line follows it.
const EDGE: usize = 8;
const LINE: &str = " │";

pub(super) fn draw(context: &Context<'_>) -> String {
    let report = context.report;
    let selection = context.selection;
    let all = rows::functions(report, &RowChoice { top: None, ..selection.clone() });
    let (is_asked, top) = (selection.sort.is_some(), selection.top.unwrap_or(TOP));
    let (rows, left_out) = Marks::of(report).cut(all, is_asked, top);
    let mut out = text::title("Histograms");
    for (place, &index) in rows.iter().enumerate() {
        let function = &report.functions[index];
        out += if place > 0 { "\n" } else { "" };
        out += &match report.histogram_of(index) {
            Some(histogram) => of_function(context, function, histogram),
            None => heading(context, function),
        };
    }
    out + &text::left_out(left_out, "function", "functions", context.style)
}

fn heading(context: &Context<'_>, function: &FunctionReport) -> String {
    let calls = format!(" · {}", counted(function.timed, "timed call", "timed calls"));
    let room = context.style.width.map_or(usize::MAX, |w| w.saturating_sub(names::width(&calls)));
    let name = names::shorten(&label(function), room);
    format!("{}{calls}\n", Tone::Name.mark(&name))
}

fn of_function(
    context: &Context<'_>,
    function: &FunctionReport,
    histogram: &FunctionHistogram,
) -> String {
    let mut out = heading(context, function);
    out += &bars(context.style, &histogram.durations, function, ROWS);
    if !histogram.over_time.is_empty() {
        out.push('\n');
        out += &heat(context, &histogram.over_time);
    }
    out
}

/// The percentiles whose rows are marked.
static PERCENTILES: [Heading; 4] = [
    ("p50", number("p50_ns")),
    ("p90", number("p90_ns")),
    ("p99", number("p99_ns")),
    ("p99.9", number("p999_ns")),
];

/// Draws at most `most` rows, unless there are more octaves, below a row of headings.
pub(crate) fn bars(
    style: &Style,
    durations: &Distribution,
    of: &FunctionReport,
    most: usize,
) -> String {
    let fits = |bits: &u32| durations.coarser(*bits).counts.len() <= most;
    let durations = durations.coarser(SUB_BITS.into_iter().find(fits).unwrap_or(0));
    let largest = durations.counts.iter().copied().max().unwrap_or(0);
    let rows: Vec<(Nanos, u64, String)> = durations
        .edges_ns
        .windows(2)
        .zip(&durations.counts)
        .map(|(edges, &calls)| (edges[0], calls, marks(edges[0], edges[1], of)))
        .collect();
    let counts = rows.iter().map(|row| count(row.1).len()).max().unwrap_or(0).max("calls".len());
    let marks = rows.iter().map(|row| names::width(&row.2)).max().unwrap_or(0);
    let bar = style.width.map_or(BAR, |width| {
        let taken = EDGE + LINE.len() + counts + 2 + marks + 2;
        width.saturating_sub(taken).clamp(LEAST_BAR, BAR)
    });
    let mut out = format!("{:>EDGE$}{}{:>counts$}\n", "from", Tone::Dim.mark("  "), "calls");
    let mut empty = 0;
    for (from, calls, marks) in rows {
        empty = if calls == 0 { empty + 1 } else { 0 };
        // The first two empty rows of a gap stand for all.
        match empty {
            0 => {}
            2 => {
                out += &format!("{:>EDGE$}{}\n", "⋮", Tone::Dim.mark(LINE));
                continue;
            }
            3.. => continue,
            _ => {}
        }
        let length = plot::bar(calls, largest, bar);
        let fill = " ".repeat(bar.saturating_sub(names::width(&length)));
        let line = format!(
            "{:>EDGE$}{}{:>counts$}  {length}{fill}  {}",
            time(from, Digits::Short),
            Tone::Dim.mark(LINE),
            count(calls),
            Tone::Heading.mark(&marks),
        );
        out += line.trim_end();
        out.push('\n');
    }
    out
}

/// Returns the percentiles that lie between two edges.
fn marks(from: Nanos, to: Nanos, of: &FunctionReport) -> String {
    let within = |value: Nanos| from <= value && (value < to || to == Nanos::MAX);
    let at = |number: &Number| (number.of)(of).whole().map(Nanos);
    let all = PERCENTILES.iter().map(|(name, number)| (*name, at(number)));
    let here: Vec<(&str, Option<Nanos>)> = all.filter(|(_, at)| at.is_some_and(within)).collect();
    let Some((_, first)) = here.first() else { return String::new() };
    let names: Vec<&str> = here.iter().map(|(name, _)| *name).collect();
    let last = here.last().map_or(*first, |(_, last)| *last);
    let times = match *first == last {
        true => maybe_time(*first, Digits::Short),
        false => {
            format!("{}–{}", maybe_time(*first, Digits::Short), maybe_time(last, Digits::Short))
        }
    };
    format!("◂ {} {times}", names.join(" "))
}

/// Draws a map: columns are slices of time, rows are octaves of durations.
fn heat(context: &Context<'_>, rows: &[HeatRow]) -> String {
    let report = context.report;
    let Some(edges) = report.histograms.as_ref().and_then(|all| all.slice_edges_ns.as_deref())
    else {
        return String::new();
    };
    let slices = edges.len().saturating_sub(1);
    let room = context.style.width.map_or(usize::MAX, |width| width.saturating_sub(EDGE + 2));
    let each = plot::slices_per_column(slices, room);
    let rows: Vec<(Nanos, Vec<u64>)> =
        rows.iter().map(|row| (row.from_ns, columns(&row.counts, each))).collect();
    let most = rows.iter().flat_map(|(_, counts)| counts).copied().max().unwrap_or(0);
    let mut out = String::new();
    for (from, counts) in &rows {
        let shades = plot::shades(counts, most, context.style);
        let edge = time(*from, Digits::Short);
        out += &format!("{edge:>EDGE$}{}{}\n", Tone::Dim.mark(LINE), shades.trim_end());
    }
    let at = |index: usize| {
        let edge = edges.get(index).copied().unwrap_or(report.end_ns);
        format!("+{}", time(edge.since(report.start_ns), Digits::Short))
    };
    let scale = plot::scale(&at(0), &at(slices), slices.div_ceil(each));
    out += &Tone::Dim.mark(&format!("{:EDGE$}  {scale}", ""));
    out.push('\n');
    let width = edges.get(each.min(slices)).map(|edge| edge.since(edges[0]));
    let legend = format!(
        "by when they ended: a column is {}, {}█ {}",
        width.map_or_else(|| ABSENT.to_owned(), |width| time(width, Digits::Short)),
        if most > 1 { "· 1 call, " } else { "" },
        counted(most, "call", "calls"),
    );
    out + &text::paragraph(&legend, Tone::Dim, context.style)
}

/// Adds up `each` slices into a column.
fn columns(counts: &[u64], each: usize) -> Vec<u64> {
    let sum = |part: &[u64]| part.iter().fold(0_u64, |sum, &count| sum.saturating_add(count));
    counts.chunks(each).map(sum).collect()
}
