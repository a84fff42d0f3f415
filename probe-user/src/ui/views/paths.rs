//! The call paths that take the most time, each on one line from root to leaf.

use super::super::grid::{self, Cell, Column, Group};
use super::super::style::Tone;
use super::super::units::{Digits, count, maybe_time};
use super::super::{names, text};
use super::Context;
use ctrace_core::export::clean::clean;
use ctrace_core::export::rows::{self, Selection};
use ctrace_core::report::PathReport;
use ctrace_core::units::Nanos;
use std::sync::Arc;

/// Paths shown when `--top` does not say.
const TOP: usize = 20;
/// Frames shown at each end of a path that is longer than twice as many.
const ENDS: usize = 16;
/// Room for a path below which decimals give way, then columns, and what it gets at least.
const GENEROUS_ROOM: usize = 64;
const PATH_ROOM: usize = 32;
const LEAST_ROOM: usize = 12;

pub(super) fn draw(context: &Context<'_>) -> String {
    let report = context.report;
    let top = context.selection.top.unwrap_or(TOP);
    let selection = Selection { top: Some(top), ..context.selection.clone() };
    let rows = rows::paths(report, &selection);
    let list: Vec<&PathReport> = rows.indices.iter().map(|&i| &report.paths[i]).collect();
    let (numbers, room) = fit(&list, context.style.width);
    let paths = list.iter().map(|path| Cell::toned(joined(&path.path, room), Tone::Name));
    let path = Group::untitled(vec![Column::left("path", paths)]);
    text::title("Paths")
        + &grid::draw(&[&numbers, &path])
        + &text::left_out(rows.left_out, "path", "paths", context.style)
}

/// The numbers that leave room enough for the paths, and that room. What a path needs least goes
/// first: decimals, then columns.
fn fit(list: &[&PathReport], width: Option<usize>) -> (Group, usize) {
    let Some(width) = width else { return (numbers(list, Digits::Full, &[]), usize::MAX) };
    let longest = list.iter().map(|path| names::width(&joined(&path.path, usize::MAX))).max();
    let longest = longest.unwrap_or(0);
    let mut chosen = numbers(list, Digits::Full, &[]);
    let dropped: [&[&str]; 4] = [&[], &["p90"], &["p90", "self"], &["p90", "self", "p50"]];
    let room = |group: &Group| width.saturating_sub(grid::total_width(&[group]) + 2);
    if room(&chosen) < longest.min(GENEROUS_ROOM) {
        for without in dropped {
            chosen = numbers(list, Digits::Short, without);
            if room(&chosen) >= longest.min(PATH_ROOM) {
                break;
            }
        }
    }
    let room = room(&chosen).max(LEAST_ROOM);
    (chosen, room)
}

fn numbers(list: &[&PathReport], digits: Digits, without: &[&str]) -> Group {
    let times = |heading: &str, get: fn(&PathReport) -> Option<Nanos>| {
        Column::right(heading, list.iter().map(|path| maybe_time(get(path), digits)))
    };
    let mut columns = vec![
        Column::right("calls", list.iter().map(|path| count(path.calls))),
        times("total", |path| Some(path.total_ns)),
        times("self", |path| Some(path.self_ns)),
        times("p50", |path| path.p50_ns),
        times("p90", |path| path.p90_ns),
        times("p99", |path| path.p99_ns),
        times("max", |path| path.max_ns),
    ];
    columns.retain(|column| !without.contains(&column.heading.as_str()));
    Group::untitled(columns)
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
