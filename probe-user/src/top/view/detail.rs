//! Details of the chosen function, in a few lines.

use super::{TIED, paragraph};
use crate::{
    top::{
        columns::Column,
        compare::Change,
        figures::{Figures, FromHistograms},
        model::Model,
    },
    ui::{
        names, number,
        units::{Digits, count, percent, time},
    },
};
use ctrace_core::{
    report::{
        FunctionReport, PathReport,
        numbers::{Number, number},
        render::clean::clean,
    },
    units::Nanos,
};
use ratatui::text::Line;
use std::collections::BTreeMap;

pub(super) fn lines(model: &Model, width: usize) -> Vec<Line<'static>> {
    let Some((figures, place)) = model.figures().zip(model.selected_place()) else {
        return Vec::new();
    };
    let function = &figures.report.functions[place];
    let mut texts = vec!["─".repeat(width), heading(function, width)];
    texts.push(calls(figures, function, place));
    texts.push(durations(figures, function));
    texts.push(times(figures, function, place));
    texts.extend(neighbours(figures, place));
    texts.extend(changes(model, figures, place));
    texts.iter().flat_map(|text| paragraph(text, width)).collect()
}

fn heading(function: &FunctionReport, width: usize) -> String {
    let place = match (&function.file, function.line) {
        (Some(file), Some(line)) => format!("{file}:{line} in {}", function.object),
        _ => function.object.to_string(),
    };
    let name = names::shorten(&names::label(function), width.max(8));
    let room = width.saturating_sub(names::width(&name) + 3);
    format!("{name} · {}", names::cut_start(&clean(&place), room.max(8)))
}

fn calls(figures: &Figures, function: &FunctionReport, place: usize) -> String {
    let rate = Column::Rate
        .text(Column::Rate.value(figures, place), Column::Rate.is_about(figures, place));
    // The daemon does not report the threads themselves, so their number is a limit.
    let of_looks = figures.from_histograms == FromHistograms::Extremes;
    let exact = |name, number| part(name, "", number, function);
    joined([
        exact("calls", const { number("calls") }),
        format!("{rate}/s"),
        exact("open", const { number("open") }),
        exact("untimed", const { number("untimed") }),
        exact("headless", const { number("headless") }),
        part("threads", about(of_looks), const { number("threads") }, function),
    ])
}

fn about(is_about: bool) -> &'static str {
    if is_about { "~" } else { "" }
}

/// Formats a number with its name, and `before` ahead of it.
fn part(name: &str, before: &str, number: &Number, function: &FunctionReport) -> String {
    format!("{name} {before}{}", number::text(number, function, Digits::Short))
}

fn durations(figures: &Figures, function: &FunctionReport) -> String {
    let exact = |name, number| part(name, "", number, function);
    let percentile = |name, number| part(name, about(figures.report.approximate), number, function);
    let of_looks = figures.from_histograms == FromHistograms::Extremes;
    let extreme = |name, number| part(name, about(of_looks), number, function);
    joined([
        extreme("min", const { number("min_ns") }),
        percentile("p50", const { number("p50_ns") }),
        percentile("p90", const { number("p90_ns") }),
        percentile("p95", const { number("p95_ns") }),
        percentile("p99", const { number("p99_ns") }),
        percentile("p99.9", const { number("p999_ns") }),
        extreme("max", const { number("max_ns") }),
        exact("mean", const { number("mean_ns") }),
        exact("sd", const { number("sd_ns") }),
        exact("cv", const { number("cv") }),
    ])
}

fn times(figures: &Figures, function: &FunctionReport, place: usize) -> String {
    let exact = |name, number| part(name, "", number, function);
    let cost = figures.spent.get(place).copied().unwrap_or_default();
    let share = figures.percent_of_cpu(cost);
    let share =
        share.map_or_else(String::new, |share| format!(" ({} of the CPU time)", percent(share)));
    joined([
        exact("total", const { number("total_ns") }),
        exact("self", const { number("self_ns") }),
        exact("a", const { number("active_ns") }),
        exact("ae", const { number("active_exclusive_ns") }),
        format!("probes ~{}{share}", time(cost, Digits::Short)),
    ])
}

/// Joins the parts into a row that can only be broken between them.
fn joined<const N: usize>(parts: [String; N]) -> String {
    parts.map(|part| part.replace(' ', TIED)).join(" · ")
}

/// Returns the callers and callees, by calls and by time.
fn neighbours(figures: &Figures, place: usize) -> Vec<String> {
    let paths = &figures.report.paths;
    let name_of = |path: &PathReport| names::label(&figures.report.functions[path.function]);
    let mut callers = BTreeMap::<String, u64>::new();
    let mut callees = BTreeMap::<String, Nanos>::new();
    for path in paths {
        let parent = path.parent.and_then(|parent| paths.get(parent));
        if path.function == place {
            let caller = parent.map_or_else(|| "untraced code".to_owned(), name_of);
            let sum = callers.entry(caller).or_default();
            *sum = u64::saturating_add(*sum, path.calls);
        } else if parent.is_some_and(|parent| parent.function == place) {
            let sum = callees.entry(name_of(path)).or_default();
            *sum = sum.saturating_add(path.total_ns);
        }
    }
    let mut lines = Vec::new();
    let callers = largest(callers)
        .map(|(name, calls)| format!("{name} ×{}", count(calls)).replace(' ', TIED));
    let callers: Vec<String> = callers.collect();
    if !callers.is_empty() {
        lines.push(format!("called by {}", callers.join(", ")));
    }
    let callees = largest(callees)
        .map(|(name, ns)| format!("{name} {}", time(ns, Digits::Short)).replace(' ', TIED));
    let callees: Vec<String> = callees.collect();
    if !callees.is_empty() {
        lines.push(format!("time in {}", callees.join(", ")));
    }
    lines
}

/// Returns the largest entries.
fn largest<T: Ord + Copy>(of: BTreeMap<String, T>) -> impl Iterator<Item = (String, T)> {
    const MOST: usize = 5;
    const NAME: usize = 40;
    let mut all: Vec<(String, T)> = of.into_iter().collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    all.into_iter().take(MOST).map(|(name, value)| (names::shorten(&name, NAME), value))
}

/// Returns each number before and now, while comparing.
fn changes(model: &Model, figures: &Figures, place: usize) -> Option<String> {
    let before = model.before()?;
    let id = figures.ids[place];
    let was = before.place(id);
    let text = |column: Column| {
        let of = |figures: &Figures, place: Option<usize>| match place {
            Some(place) => {
                column.text(column.value(figures, place), column.is_about(figures, place))
            }
            None => column.text(None, false),
        };
        let (old, new) = (of(before, was), of(figures, Some(place)));
        let change = Change::of(column, figures, before, id).text(column);
        format!("{} {old} → {new} ({change})", column.heading())
    };
    let columns = [Column::Rate, Column::Exclusive, Column::P50, Column::P99, Column::Max];
    Some(joined(columns.map(text)))
}
