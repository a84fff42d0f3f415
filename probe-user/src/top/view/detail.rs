//! All that is known of the chosen function, in a few lines.

use super::{TIED, paragraph};
use crate::{
    top::{
        columns::Column,
        compare::Change,
        figures::{Figures, FromHistograms},
        model::Model,
    },
    ui::{
        names,
        units::{Digits, count, maybe_time, percent, ratio, time},
    },
};
use ctrace_core::{
    report::{FunctionReport, PathReport, render::clean::clean},
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
    // Which ones they are is not told by a daemon.
    let of_looks = figures.from_histograms == FromHistograms::Extremes;
    joined([
        format!("calls {}", count(function.calls)),
        format!("{rate}/s"),
        format!("open {}", count(function.open)),
        format!("untimed {}", count(function.untimed)),
        format!("headless {}", count(function.headless)),
        format!("threads {}{}", about(of_looks), count(function.threads)),
    ])
}

fn about(is_about: bool) -> &'static str {
    if is_about { "~" } else { "" }
}

fn durations(figures: &Figures, function: &FunctionReport) -> String {
    let of = &function.durations;
    let approximate = figures.report.approximate;
    let of_looks = figures.from_histograms == FromHistograms::Extremes;
    let part =
        |name, is_about, ns| format!("{name} {}{}", about(is_about), maybe_time(ns, Digits::Short));
    let near = |name, ns| part(name, approximate, ns);
    joined([
        part("min", of_looks, of.min_ns),
        near("p50", of.p50_ns),
        near("p90", of.p90_ns),
        near("p95", of.p95_ns),
        near("p99", of.p99_ns),
        near("p99.9", of.p999_ns),
        part("max", of_looks, of.max_ns),
        part("mean", false, of.mean_ns),
        part("sd", false, of.sd_ns),
        format!("cv {}", ratio(of.cv)),
    ])
}

fn times(figures: &Figures, function: &FunctionReport, place: usize) -> String {
    let short = |ns| time(ns, Digits::Short);
    let cost = figures.spent.get(place).copied().unwrap_or_default();
    let share = figures.percent_of_cpu(cost);
    let share =
        share.map_or_else(String::new, |share| format!(" ({} of the CPU time)", percent(share)));
    joined([
        format!("total {}", short(function.total_ns)),
        format!("self {}", short(function.self_ns)),
        format!("a {}", short(function.active_ns)),
        format!("ae {}", short(function.active_exclusive_ns)),
        format!("probes ~{}{share}", short(cost)),
    ])
}

/// In a row that is broken between the parts only.
fn joined<const N: usize>(parts: [String; N]) -> String {
    parts.map(|part| part.replace(' ', TIED)).join(" · ")
}

/// Who calls it, and what it calls, by calls and by time.
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

/// The first few.
fn largest<T: Ord + Copy>(of: BTreeMap<String, T>) -> impl Iterator<Item = (String, T)> {
    const MOST: usize = 5;
    const NAME: usize = 40;
    let mut all: Vec<(String, T)> = of.into_iter().collect();
    all.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    all.into_iter().take(MOST).map(|(name, value)| (names::shorten(&name, NAME), value))
}

/// Each number as it was and as it is, while numbers are compared.
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
