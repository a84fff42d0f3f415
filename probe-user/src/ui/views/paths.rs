//! The call paths that take the most time, each on one line from root to leaf.

use super::Context;
use crate::ui::output::style::Tone;
use crate::ui::table::grid::{self, Cell, ColumnGroup, GridColumn};
use crate::ui::table::plot;
use crate::ui::text;
use crate::ui::text::names::width as width_of;
use crate::ui::text::path::{joined, joined_all};
use crate::ui::text::units::{Digits, count, maybe_time, time};
use ctrace_core::report::PathReport;
use ctrace_core::report::render::rows::{self, RowChoice};
use ctrace_core::units::Nanos;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Paths shown without `--top`.
const TOP: usize = 20;
/// The width of a sparkline, and the reduced width.
const SPARKS: usize = 24;
const FEW_SPARKS: usize = 12;
/// Widths of a path below which first decimals go, then columns, and the least width.
const GENEROUS_ROOM: usize = 64;
const PATH_ROOM: usize = 48;
const LEAST_ROOM: usize = 12;

pub(super) fn draw(context: &Context<'_>) -> String {
    let top = context.selection.top.unwrap_or(TOP);
    let selection = RowChoice { top: Some(top), ..context.selection.clone() };
    let rows = rows::paths(context.report, &selection);
    text::title("Paths")
        + &table(context, &rows.indices)
        + &context.left_out(rows.left_out, "path", "paths")
}

/// Draws some of the report's paths.
pub(crate) fn table(context: &Context<'_>, chosen: &[usize]) -> String {
    let report = context.report;
    let list: Vec<&PathReport> = chosen.iter().map(|&i| &report.paths[i]).collect();
    let names: Vec<_> = chosen.iter().map(|&path| report.names_on_path(path)).collect();
    let (numbers, room) = fit(&list, &names, context.style.width);
    let paths = joined_all(&names, room).into_iter().map(|path| Cell::toned(path, Tone::Name));
    let path = ColumnGroup::untitled(vec![GridColumn::left("path", paths)]);
    grid::draw(&[&numbers, &path])
}

/// Returns the numbers that leave enough room for the paths, and that room. First decimals go, then
/// columns.
fn fit(
    list: &[&PathReport],
    names: &[Vec<Cow<'_, str>>],
    width: Option<usize>,
) -> (ColumnGroup, usize) {
    let Some(width) = width else { return (numbers(list, Digits::Full, &[]), usize::MAX) };
    let longest = names.iter().map(|path| width_of(&joined(path, usize::MAX))).max();
    let longest = longest.unwrap_or(0);
    let mut chosen = numbers(list, Digits::Full, &[]);
    let dropped: [&[&str]; 5] =
        [&[], &["p90"], &["p90", "self"], &["p90", "self", "p50"], &["p90", "self", "p50", "p99"]];
    let room = |group: &ColumnGroup| width.saturating_sub(grid::total_width(&[group]) + 2);
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

fn numbers(list: &[&PathReport], digits: Digits, without: &[&str]) -> ColumnGroup {
    let times = |heading: &str, get: fn(&PathReport) -> Option<Nanos>| {
        GridColumn::right(heading, list.iter().map(|path| maybe_time(get(path), digits)))
    };
    let mut columns = vec![
        GridColumn::right("calls", list.iter().map(|path| count(path.calls))),
        times("total", |path| Some(path.total_ns)),
        times("self", |path| Some(path.self_ns)),
        times("p50", |path| path.p50_ns),
        times("p90", |path| path.p90_ns),
        times("p99", |path| path.p99_ns),
        times("max", |path| path.max_ns),
    ];
    columns.extend(sparklines(list, if digits == Digits::Full { SPARKS } else { FEW_SPARKS }));
    columns.retain(|column| !without.contains(&column.heading.as_str()));
    ColumnGroup::untitled(columns)
}

/// Draws each path's durations on a common scale, from short to long.
fn sparklines(list: &[&PathReport], room: usize) -> Option<GridColumn> {
    let of_path = |path: &PathReport| -> BTreeMap<u32, u64> {
        let histogram = path.histogram.iter();
        let buckets = histogram.flat_map(|h| h.edges_ns.iter().zip(&h.counts));
        buckets
            .filter(|(_, calls)| **calls > 0)
            .map(|(from, &calls)| (u64::BITS - from.0.leading_zeros(), calls))
            .collect()
    };
    let octaves: Vec<BTreeMap<u32, u64>> = list.iter().map(|path| of_path(path)).collect();
    let first = octaves.iter().filter_map(|of| of.keys().next()).min()?;
    let last = octaves.iter().filter_map(|of| of.keys().next_back()).max()?;
    let range: Vec<u32> = (*first..=*last).collect();
    let each = plot::slices_per_column(range.len(), room);
    let lines = octaves.iter().map(|of| {
        let sum = |part: &[u32]| {
            part.iter().filter_map(|octave| of.get(octave)).fold(0_u64, |a, b| a.saturating_add(*b))
        };
        Cell::from(plot::sparkline(&range.chunks(each).map(sum).collect::<Vec<_>>()))
    });
    let edge = |octave: u32| Nanos(1_u64.checked_shl(octave).map_or(u64::MAX, |edge| edge / 2));
    let heading =
        format!("{}–{}", time(edge(*first), Digits::Short), time(edge(last + 1), Digits::Short));
    Some(GridColumn::left(&heading, lines))
}
