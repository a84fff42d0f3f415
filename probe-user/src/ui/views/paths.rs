//! The call paths that take the most time, each on one line from root to leaf.

use super::super::grid::{self, Cell, Column, Group};
use super::super::style::Tone;
use super::super::units::{Digits, count, maybe_time, time};
use super::super::{names, text};
use super::Context;
use ctrace_core::export::clean::clean;
use ctrace_core::export::rows::{self, Selection};
use ctrace_core::report::PathReport;
use std::sync::Arc;

/// Paths shown when `--top` does not say.
const TOP: usize = 20;
/// Frames shown at each end of a path that is longer than twice as many.
const ENDS: usize = 16;

pub(super) fn draw(context: &Context<'_>) -> String {
    let report = context.report;
    let top = context.selection.top.unwrap_or(TOP);
    let selection = Selection { top: Some(top), ..context.selection.clone() };
    let rows = rows::paths(report, &selection);
    let list: Vec<&PathReport> = rows.indices.iter().map(|&i| &report.paths[i]).collect();
    let wide = context.style.width.is_none_or(|width| width >= 132);
    let digits = if wide { Digits::Full } else { Digits::Short };
    let numbers = numbers(&list, digits);
    let room = context.style.width.map_or(usize::MAX, |width| {
        width.saturating_sub(grid::total_width(&[&numbers]) + 2).max(12)
    });
    let paths = list.iter().map(|path| Cell::toned(joined(&path.path, room), Tone::Name));
    let path = Group::untitled(vec![Column::left("path", paths)]);
    text::title("Paths", context.style)
        + &grid::draw(&[&numbers, &path], context.style)
        + &text::left_out(rows.left_out, "path", "paths", context.style)
}

fn numbers(list: &[&PathReport], digits: Digits) -> Group {
    Group::untitled(vec![
        Column::right("calls", list.iter().map(|p| count(p.calls))),
        Column::right("total", list.iter().map(|p| time(p.total_ns, digits))),
        Column::right("self", list.iter().map(|p| time(p.self_ns, digits))),
        Column::right("p50", list.iter().map(|p| maybe_time(p.p50_ns, digits))),
        Column::right("p90", list.iter().map(|p| maybe_time(p.p90_ns, digits))),
        Column::right("p99", list.iter().map(|p| maybe_time(p.p99_ns, digits))),
        Column::right("max", list.iter().map(|p| maybe_time(p.max_ns, digits))),
    ])
}

/// The path in at most `room` columns: recursion counted, then frames in the middle left out,
/// then names shortened.
fn joined(path: &[Arc<str>], room: usize) -> String {
    let frames = folded(path);
    let most = frames.len().min(2 * ENDS);
    for kept in (2..=most).rev() {
        let text = with_ends(&frames, kept);
        if names::width(&text) <= room {
            return text;
        }
    }
    match frames.as_slice() {
        [] => String::new(),
        [only] => names::shorten(only, room),
        [first, .., last] => {
            let dots = if frames.len() > 2 { " → … → " } else { " → " };
            let left = room.saturating_sub(names::width(dots));
            // The leaf is what the row is about: the root gets what it leaves, or a third.
            let root = left.saturating_sub(names::width(last)).max(left / 3);
            let root = names::shorten(first, root);
            let leaf = names::shorten(last, left.saturating_sub(names::width(&root)));
            format!("{root}{dots}{leaf}")
        }
    }
}

/// The frames, with direct recursion as one frame and its depth.
fn folded(path: &[Arc<str>]) -> Vec<String> {
    let runs = path.chunk_by(|a, b| a == b);
    runs.map(|run| match run.len() {
        1 => clean(&run[0]).into_owned(),
        n => format!("{} ×{}", clean(&run[0]), count(n as u64)),
    })
    .collect()
}

/// `kept` frames, half of them from each end.
fn with_ends(frames: &[String], kept: usize) -> String {
    if kept >= frames.len() {
        return frames.join(" → ");
    }
    let head = kept / 2;
    let tail = frames.len() - (kept - head);
    format!("{} → … → {}", frames[..head].join(" → "), frames[tail..].join(" → "))
}
