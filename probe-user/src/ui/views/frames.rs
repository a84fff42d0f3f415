//! The calls of one function as frames: how long they take, and what made the longest of them longer
//! than typical ones.

use super::{Context, calls};
use crate::ui::output::style::Tone;
use crate::ui::table::grid::{self, Cell, ColumnGroup, GridColumn};
use crate::ui::text;
use crate::ui::text::names;
use crate::ui::text::units::{Digits, count, counted, maybe_percent, maybe_time, time};
use ctrace_core::report::render::clean::clean;
use ctrace_core::report::render::rows;
use ctrace_core::report::{FrameReport, FramesReport, FunctionReport, MarkedFramesReport};
use ctrace_core::units::Nanos;
use std::collections::HashMap;

/// Functions shown without `--top`.
const TOP: usize = 10;
const TITLE: &str = "Frames: ";
/// The least width of a name.
const LEAST_ROOM: usize = 12;
/// Why the times of frames between marks do not add up to their durations.
const BETWEEN: &str =
    " Times are of all threads of the process; those of the mark are without traced calls.";

/// Told where there are no frames. Marks and probes without ends need two hits for one.
const NONE: &str = "No frame has a known duration: no call ended in this time, or a mark or probe was hit less than \
                    twice. Choose a longer time, or another function (--frame).";

/// The warning where each thread has frames of its own under one name.
const SEVERAL: &str = "Several threads mark these frames: a frame lasts from a mark of any of them to the next one, \
                       and not within one thread. Give each thread's loop a name of its own.";

/// Returns whether frames between marks begin in more than one thread of a process.
fn is_marked_by_several(frames: &FramesReport) -> bool {
    let mut threads = HashMap::new();
    let is_another =
        |frame: &FrameReport| *threads.entry(frame.pid).or_insert(frame.tid) != frame.tid;
    frames.marks.is_some() && frames.worst.iter().any(is_another)
}

pub(super) fn draw(context: &Context<'_>) -> String {
    let Some(frames) = &context.report.frames else {
        return text::title("Frames") + &text::paragraph(NONE, Tone::Plain, context.style);
    };
    let name = clean(&context.report.name_of(frames.function)).into_owned();
    let room = context.style.width.map_or(usize::MAX, |width| width.saturating_sub(TITLE.len()));
    let mut out = text::title(&format!("{TITLE}{}", names::shorten(&name, room)));
    out += &text::paragraph(&facts(context, frames), Tone::Plain, context.style);
    if let Some(over) = over_budget(frames) {
        out += &text::paragraph(&over, Tone::Plain, context.style);
    }
    if is_marked_by_several(frames) {
        out += &text::paragraph(SEVERAL, Tone::Warm, context.style);
    }
    for sentence in frames.marks.iter().flat_map(about_marks) {
        out += &text::paragraph(&sentence, Tone::Warm, context.style);
    }
    if frames.worst.is_empty() {
        return out;
    }
    out += "\n";
    if frames.typical_frames > 0 {
        out += &parts(context, frames);
        out += "\n";
    }
    out += &worst(context, frames);
    out
}

fn facts(context: &Context<'_>, frames: &FramesReport) -> String {
    let of_calls = |row: &FunctionReport| {
        let durations = &row.durations;
        [durations.mean_ns, durations.p50_ns, durations.p99_ns, durations.max_ns]
    };
    let durations = match &frames.marks {
        Some(marks) => Some([marks.mean_ns, marks.p50_ns, marks.p99_ns, marks.max_ns]),
        None => context.report.functions.get(frames.function).map(of_calls),
    };
    let mut facts = vec![counted(frames.frames, "frame", "frames")];
    let text = |(name, ns)| format!("{name} {}", maybe_time(ns, Digits::Full));
    let names = ["mean", "p50", "p99", "max"].into_iter();
    facts.extend(durations.into_iter().flat_map(|numbers| names.clone().zip(numbers)).map(text));
    facts.join(" · ")
}

/// Returns the sentences that frames between marks need.
fn about_marks(marks: &MarkedFramesReport) -> Vec<String> {
    let unknown = (marks.unknown > 0).then(|| {
        format!(
            "{} not counted: events are missing near them, so a mark may be, too.",
            match marks.unknown {
                1 => "1 more is".to_owned(),
                more => format!("{} more are", count(more)),
            }
        )
    });
    let left_out = (marks.left_out_calls > 0).then(|| {
        let calls = counted(marks.left_out_calls, "call", "calls");
        format!("{calls} inside had no room and are missing below.")
    });
    [unknown, left_out].into_iter().flatten().collect()
}

/// Tells how many frames took longer than they may.
pub(crate) fn over_budget(frames: &FramesReport) -> Option<String> {
    let (over, budget) = (frames.over_budget?, frames.budget_ns?);
    Some(format!(
        "{} of {} ({}) took longer than {}",
        count(over),
        counted(frames.frames, "frame", "frames"),
        maybe_percent(frames.over_percent()),
        time(budget, Digits::Full),
    ))
}

/// Draws the functions by what they take more in the worst frames.
fn parts(context: &Context<'_>, frames: &FramesReport) -> String {
    let top = context.selection.top.unwrap_or(TOP);
    let selection = rows::RowChoice { top: Some(top), ..context.selection.clone() };
    let rows = rows::frames(context.report, &selection);
    let list: Vec<_> = rows.indices.iter().map(|&index| &frames.parts[index]).collect();
    let digits = Digits::Short;
    let own = |side: usize| list.iter().map(move |part| frames.self_in_a_frame(part)[side]);
    let more = own(0).zip(own(1)).map(|(typical, worst)| difference(typical, worst));
    let calls = |calls: u64, frames: u64| format!("{:.1}", calls as f64 / frames.max(1) as f64);
    let (typical, worst) = (frames.typical_frames, frames.worst.len() as u64);
    let times = ColumnGroup::titled(
        "self in a frame".to_owned(),
        vec![
            GridColumn::right("typical", own(0).map(|ns| time(ns, digits))),
            GridColumn::right("worst", own(1).map(|ns| time(ns, digits))),
            GridColumn::right("more", more),
        ],
    );
    let numbers = ColumnGroup::titled(
        "calls in a frame".to_owned(),
        vec![
            GridColumn::right(
                "typical",
                list.iter().map(|part| calls(part.typical_calls, typical)),
            ),
            GridColumn::right("worst", list.iter().map(|part| calls(part.worst_calls, worst))),
        ],
    );
    let used =
        grid::total_width(&[&times, &numbers, &ColumnGroup::titled(String::new(), Vec::new())]);
    let name = |function: usize| {
        let name = clean(&context.report.name_of(function)).into_owned();
        let room = context.style.width.map_or(usize::MAX, |width| width.saturating_sub(used));
        let short = names::shorten(&name, room.max(LEAST_ROOM));
        Cell::toned(short, Tone::of(&name, context.report.colour_of(function)))
    };
    let names = GridColumn::left("function", list.iter().map(|part| name(part.function)));
    let names = ColumnGroup::titled(String::new(), vec![names]);
    grid::draw(&[&times, &numbers, &names])
        + &context.left_out(rows.left_out, "function", "functions")
        + &text::paragraph(
            &format!(
                "On average: {} and {} nearest to the median.{}",
                counted(worst, "longest frame", "longest frames"),
                counted(typical, "other frame", "other frames"),
                if frames.marks.is_some() { BETWEEN } else { "" },
            ),
            Tone::Dim,
            context.style,
        )
}

/// Draws the worst frames, each with the function that took the most beyond what is typical.
fn worst(context: &Context<'_>, frames: &FramesReport) -> String {
    let digits = Digits::Full;
    let since = |at: Nanos| format!("+{}", time(at.since(context.report.start_ns), digits));
    let list = &frames.worst;
    let thread =
        |frame: &FrameReport| calls::thread(frame.tid, frame.thread.as_deref()).unwrap_or_default();
    let numbers = ColumnGroup::untitled(vec![
        GridColumn::right("worst frames", list.iter().map(|frame| time(frame.duration_ns, digits))),
        GridColumn::right("at", list.iter().map(|frame| since(frame.start_ns))),
        GridColumn::left("thread", list.iter().map(thread)),
        GridColumn::right("more", list.iter().map(|f| difference(f.typical_self_ns, f.self_ns))),
    ]);
    let room = context.style.width.map_or(usize::MAX, |width| {
        width.saturating_sub(grid::total_width(&[&numbers]) + 2).max(LEAST_ROOM)
    });
    let name = |frame: &FrameReport| {
        let name = clean(&context.report.name_of(frame.function)).into_owned();
        let tone = Tone::of(&name, context.report.colour_of(frame.function));
        Cell::toned(names::shorten(&name, room), tone)
    };
    let mostly = ColumnGroup::untitled(vec![GridColumn::left("mostly in", list.iter().map(name))]);
    grid::draw(&[&numbers, &mostly])
}

fn difference(typical: Nanos, worst: Nanos) -> String {
    match worst < typical {
        true => format!("-{}", time(typical.since(worst), Digits::Short)),
        false => format!("+{}", time(worst.since(typical), Digits::Short)),
    }
}
