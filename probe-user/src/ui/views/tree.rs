//! Who calls whom: the call paths as an indented tree, children by the column sorted by.
//!
//! The tree is walked with a stack of its own: its depth is the target's, and recursion must not
//! end ctrace. Beyond a depth the lines are drawn no deeper, and the depth is said instead.

use super::super::grid::{self, Cell, Column, Group};
use super::super::style::Tone;
use super::super::units::{Digits, count, percent, time};
use super::super::{names, text};
use super::Context;
use ctrace_core::export::clean::clean;
use ctrace_core::export::columns;
use ctrace_core::export::rows;
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Levels that are drawn when there is room.
const DEEPEST: usize = 24;

pub(super) fn draw(context: &Context<'_>) -> String {
    let paths = &context.report.paths;
    let shown = choose(context);
    let lines = walk(context, &shown);
    let groups: Vec<Group> = [Digits::Full, Digits::Short]
        .map(|digits| {
            let at = |line: &Line| &paths[line.path];
            let duration = context.report.duration_ns;
            Group::untitled(vec![
                Column::right("total", lines.iter().map(|l| time(at(l).total_ns, digits))),
                Column::right("self", lines.iter().map(|l| time(at(l).self_ns, digits))),
                Column::right("calls", lines.iter().map(|l| count(at(l).calls))),
                Column::right(
                    "%",
                    lines.iter().map(|l| {
                        let share = rows::percent(at(l).total_ns, duration);
                        Cell::toned(percent(share), Tone::of_percent(share))
                    }),
                ),
            ])
        })
        .into();
    let wide = context.style.width.is_none_or(|width| width >= 100);
    let numbers = &groups[usize::from(!wide)];
    let room = context
        .style
        .width
        .map_or(usize::MAX, |width| width.saturating_sub(grid::total_width(&[numbers]) + 2));
    let room = room.max("function".len());
    let levels = DEEPEST.min(room / 6);
    let functions = lines.iter().map(|line| function_cell(context, line, levels, room));
    let tree = Group::untitled(vec![Column::left("function", functions)]);
    text::title("Call tree")
        + &grid::draw(&[numbers, &tree])
        + &text::left_out(paths.len() - lines.len(), "path", "paths", context.style)
}

/// The parent of a path. Parents come first; what claims otherwise is a root.
fn parent(context: &Context<'_>, path: usize) -> Option<usize> {
    context.report.paths[path].parent.filter(|&parent| parent < path)
}

/// A path whose turn depends on its total, so that `--top` keeps the heaviest connected part.
#[derive(PartialEq, Eq)]
struct Candidate {
    total: u64,
    path: usize,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Self) -> Ordering {
        self.total.cmp(&other.total).then(other.path.cmp(&self.path))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// For the roots (last) and each path, the children to show, in order.
fn choose(context: &Context<'_>) -> Vec<Vec<usize>> {
    let paths = &context.report.paths;
    let mut children = vec![Vec::new(); paths.len() + 1];
    for path in 0..paths.len() {
        children[parent(context, path).unwrap_or(paths.len())].push(path);
    }
    let large =
        |path: &usize| rows::path_is_large_enough(context.report, context.selection, &paths[*path]);
    let mut shown = vec![Vec::new(); paths.len() + 1];
    let mut heap = BinaryHeap::new();
    let candidates = |of: &[usize]| -> Vec<Candidate> {
        let large = of.iter().copied().filter(large);
        large.map(|path| Candidate { total: paths[path].total_ns.0, path }).collect()
    };
    heap.extend(candidates(&children[paths.len()]));
    let mut left = context.selection.top.unwrap_or(usize::MAX);
    while left > 0
        && let Some(Candidate { path, .. }) = heap.pop()
    {
        left -= 1;
        shown[parent(context, path).unwrap_or(paths.len())].push(path);
        heap.extend(candidates(&children[path]));
    }
    let column = rows::sort_column(columns::PATHS, context.selection);
    for list in &mut shown {
        list.sort_by(|&a, &b| {
            (column.key)(&paths[a]).in_table(&(column.key)(&paths[b])).then(a.cmp(&b))
        });
    }
    shown
}

struct Line {
    path: usize,
    depth: usize,
    /// For the levels that are drawn, whether more siblings follow there.
    more: Vec<bool>,
}

fn walk(context: &Context<'_>, shown: &[Vec<usize>]) -> Vec<Line> {
    let root = shown.len() - 1;
    let mut lines = Vec::new();
    let mut more: Vec<bool> = Vec::new();
    // Each entry: a node's children, and how many of them are done.
    let mut stack = vec![(root, 0)];
    while let Some((node, next)) = stack.last_mut() {
        let siblings = &shown[*node];
        let Some(&path) = siblings.get(*next) else {
            stack.pop();
            more.pop();
            continue;
        };
        *next += 1;
        more.push(*next < siblings.len());
        let drawn = more.len().min(DEEPEST + 1);
        lines.push(Line { path, depth: more.len() - 1, more: more[..drawn].to_vec() });
        stack.push((path, 0));
    }
    debug_assert!(lines.len() <= context.report.paths.len());
    lines
}

fn function_cell(context: &Context<'_>, line: &Line, levels: usize, room: usize) -> Cell {
    let mut lead = String::new();
    let drawn = line.depth.min(levels);
    for level in 1..=drawn {
        let more = line.more.get(level).copied().unwrap_or(false);
        lead += match (level == line.depth, more) {
            (true, true) => "├─ ",
            (true, false) => "└─ ",
            (false, true) => "│  ",
            (false, false) => "   ",
        };
    }
    if line.depth > levels {
        lead += &format!("[{}] ", line.depth);
    }
    let path = &context.report.paths[line.path];
    let name = path.path.last().map_or_else(String::new, |name| clean(name).into_owned());
    let name = names::shorten(&name, room.saturating_sub(names::width(&lead)).max(8));
    let marked = Tone::Dim.mark(&lead) + &Tone::Name.mark(&name);
    Cell { text: lead + &name, tone: Tone::Plain, marked: Some(marked) }
}
