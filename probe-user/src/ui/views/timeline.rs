//! A lane for each thread over time: the innermost function first, then each depth. A column shows
//! the function that ran longest in it.

use super::Context;
use crate::ui::output::style::Tone;
use crate::ui::table::plot;
use crate::ui::text;
use crate::ui::text::names;
use crate::ui::text::units::{Digits, counted, time};
use ctrace_core::goroutines::id_beside_name;
use ctrace_core::report::render::clean::clean;
use ctrace_core::report::{LaneReport, TimelineCell, TimelineReport};
use ctrace_core::units::Nanos;

/// Lanes shown without `--top`.
pub(super) const TOP: usize = 8;
/// Depths drawn, outermost first.
const DEPTHS: usize = 8;
/// The width of the labels before the time axis: `innermost `.
const LABEL: usize = 10;
/// The width of a thread's name.
const NAME: usize = 32;
/// The least run of columns that gets a name.
const LEAST_RUN: usize = 5;

pub(super) fn draw(context: &Context<'_>) -> String {
    let mut out = text::title("Timeline");
    let Some(timeline) = &context.report.timeline else { return out };
    let slices = timeline.slice_edges_ns.len().saturating_sub(1);
    let room = context.style.width.map_or(usize::MAX, |width| width.saturating_sub(LABEL));
    let each = plot::slices_per_column(slices, room);
    for lane in &timeline.lanes {
        out += &of_lane(context, timeline, lane, each);
    }
    let at = |index: usize| {
        let edge = timeline.slice_edges_ns.get(index).copied().unwrap_or(context.report.end_ns);
        format!("+{}", time(edge.since(context.report.start_ns), Digits::Short))
    };
    let scale = plot::scale(&at(0), &at(slices), slices.div_ceil(each));
    out += &Tone::Dim.mark(&format!("{:LABEL$}{scale}", ""));
    out.push('\n');
    let legend = format!(
        "a column is {}, and shows what ran longest in it: by name, or by · ░ ▒ ▓ █ for how much of \
         it was busy",
        time(width_of_column(timeline, each), Digits::Short),
    );
    out += &text::paragraph(&legend, Tone::Dim, context.style);
    out + &text::left_out(
        usize::try_from(timeline.lanes_left_out).unwrap_or(usize::MAX),
        "thread",
        "threads",
        context.style,
    )
}

fn width_of_column(timeline: &TimelineReport, each: usize) -> Nanos {
    let edges = &timeline.slice_edges_ns;
    let last = each.min(edges.len().saturating_sub(1));
    match (edges.first(), edges.get(last)) {
        (Some(first), Some(last)) => last.since(*first),
        _ => Nanos::ZERO,
    }
}

fn of_lane(
    context: &Context<'_>,
    timeline: &TimelineReport,
    lane: &LaneReport,
    each: usize,
) -> String {
    let name = match &*lane.name {
        "" => "thread".to_owned(),
        name => names::cut_middle(&clean(name), NAME),
    };
    let id = id_beside_name(lane.tid, &lane.name).map(|id| format!(" {id}")).unwrap_or_default();
    let mut out = format!("{}{id}\n", Tone::Heading.mark(&name));
    let mut row = |label: &str, cells: &[TimelineCell]| {
        let runs = runs(context, timeline, cells, each);
        out +=
            &format!("{:<LABEL$}{}", Tone::Dim.mark(&format!("{label:<LABEL$}")), runs.trim_end());
        out.push('\n');
    };
    row("innermost", &lane.innermost);
    for (depth, cells) in lane.depths.iter().take(DEPTHS).enumerate() {
        row(&(depth + 1).to_string(), cells);
    }
    let mut facts = Vec::new();
    if lane.short_calls > 0 {
        let slice = width_of_column(timeline, 1);
        facts.push(format!(
            "{} shorter than {}, together {}",
            counted(lane.short_calls, "call is", "calls are"),
            time(slice, Digits::Short),
            time(lane.short_ns, Digits::Short),
        ));
    }
    let deeper = lane.depths.len().saturating_sub(DEPTHS);
    if deeper > 0 {
        facts
            .push(format!("{} not drawn", counted(deeper as u64, "deeper level", "deeper levels")));
    }
    if !facts.is_empty() {
        out += &text::paragraph(&format!("… {}", facts.join(" · ")), Tone::Dim, context.style);
    }
    out.push('\n');
    out
}

/// A column: the function that ran longest, and the busy part of its time.
#[derive(Clone, Copy)]
struct Busy {
    function: usize,
    of_function: u64,
    busy: u64,
}

/// Draws adjacent columns of one function, as its name or as shades.
fn runs(
    context: &Context<'_>,
    timeline: &TimelineReport,
    cells: &[TimelineCell],
    each: usize,
) -> String {
    let slices = timeline.slice_edges_ns.len().saturating_sub(1);
    let mut columns: Vec<Option<Busy>> = vec![None; slices.div_ceil(each)];
    for cell in cells {
        let Some(column) = columns.get_mut(cell.slice / each) else { continue };
        let (of_function, busy) = (cell.function_ns.0, cell.busy_ns.0);
        *column = Some(match *column {
            None => Busy { function: cell.function, of_function, busy },
            Some(other) => {
                let longest = match other.of_function >= of_function {
                    true => (other.function, other.of_function),
                    false => (cell.function, of_function),
                };
                Busy {
                    function: longest.0,
                    of_function: longest.1,
                    busy: other.busy.saturating_add(busy),
                }
            }
        });
    }
    let length = width_of_column(timeline, each).0.max(1);
    let mut out = String::new();
    for run in columns.chunk_by(|a, b| a.map(|a| a.function) == b.map(|b| b.function)) {
        let Some(first) = run[0] else {
            out += &" ".repeat(run.len());
            continue;
        };
        let shades = run.iter().flatten();
        let shades: String =
            shades.map(|c| plot::shade_of_share(c.busy as f64 / length as f64)).collect();
        let name = context.report.name_of(first.function);
        let fits = run.len() >= LEAST_RUN;
        let name = clean(&name);
        let label = if fits { names::shorten(&name, run.len() - 1) } else { String::new() };
        let named = if fits { format!("▏{label}") } else { String::new() };
        let rest: String = shades.chars().skip(names::width(&named)).collect();
        let tone = Tone::of(&name, context.report.colour_of(first.function));
        out += &(tone.mark(&named) + &if fits { Tone::Dim } else { tone }.mark(&rest));
    }
    out
}
