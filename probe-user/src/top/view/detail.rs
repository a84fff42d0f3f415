//! Details of the chosen function, in a few lines.

use super::{TIED, paragraph};
use crate::{
    top::{
        data::{compare::NumberChange, figures::Figures},
        model::{Model, columns::TopColumn},
    },
    ui::{
        table::number,
        text::{
            distinct::shorten_all,
            names,
            units::{ABSENT, Digits, count, percent, time},
        },
    },
};
use ctrace_core::{
    report::{
        FunctionReport, PathReport,
        numbers::{NumberId, Unit},
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
    texts.extend([Row::Calls, Row::Durations, Row::Times].map(|row| numbers(row, figures, place)));
    // Otherwise there are none.
    if function.measured_probes().is_some() {
        texts.push(numbers(Row::Net, figures, place));
    }
    texts.extend(figures.marks.sentences(&[place]));
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

/// A row of numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Row {
    Calls,
    Durations,
    Times,
    /// Times without the cost of probes.
    Net,
}

/// The first numbers of the rows, from left to right. Others follow in the order of the registry.
const FIRST: [NumberId; 20] = [
    NumberId::of("calls"),
    NumberId::of("calls_per_second"),
    NumberId::of("open"),
    NumberId::of("untimed"),
    NumberId::of("headless"),
    NumberId::of("threads"),
    NumberId::of("min_ns"),
    NumberId::of("p50_ns"),
    NumberId::of("p90_ns"),
    NumberId::of("p95_ns"),
    NumberId::of("p99_ns"),
    NumberId::of("p999_ns"),
    NumberId::of("max_ns"),
    NumberId::of("mean_ns"),
    NumberId::of("sd_ns"),
    NumberId::of("cv"),
    NumberId::of("total_ns"),
    NumberId::of("self_ns"),
    NumberId::of("active_ns"),
    NumberId::of("active_exclusive_ns"),
];

/// Numbers that are not here: they are close to those that are, or in the name.
const LEFT_OUT: [NumberId; 4] = [
    NumberId::of("timed"),
    NumberId::of("active_exclusive_percent"),
    NumberId::of("p75_ns"),
    NumberId::of("armed_percent"),
];

/// Numbers that are here only where waits are told apart.
const SPLIT: [NumberId; 3] =
    [NumberId::of("running_ns"), NumberId::of("runnable_ns"), NumberId::of("blocked_ns")];

/// Returns the numbers in their order. Those of single calls, such as of the center, are known of
/// one interval only and not here.
fn listed() -> impl Iterator<Item = NumberId> {
    let is_other = |id: &NumberId| {
        !FIRST.contains(id) && !LEFT_OUT.contains(id) && id.number().parent.is_none()
    };
    FIRST.into_iter().chain(NumberId::all().filter(is_other))
}

fn row_of(id: NumberId) -> Row {
    let number = id.number();
    match number.unit {
        _ if number.key.starts_with("net_") => Row::Net,
        _ if SPLIT.contains(&id) => Row::Times,
        Unit::Count | Unit::Rate => Row::Calls,
        Unit::Time if number.is_additive() => Row::Times,
        Unit::Time | Unit::Percent | Unit::Ratio => Row::Durations,
    }
}

fn numbers(row: Row, figures: &Figures, place: usize) -> String {
    let is_split = figures.report.functions[place].split.is_known();
    let numbers = listed().filter(|id| row_of(*id) == row && (is_split || !SPLIT.contains(id)));
    let mut parts: Vec<String> = numbers.map(|id| part(id, figures, place)).collect();
    if row == Row::Times {
        parts.push(cost(figures, place));
    }
    joined(parts)
}

/// Formats a number with its name. Only the rate of a sampled function is an estimate here.
fn part(id: NumberId, figures: &Figures, place: usize) -> String {
    let column = TopColumn::Number(id);
    if column == TopColumn::RATE {
        let rate = column.cell(figures, place);
        return format!("{rate}/s");
    }
    let about = if column.is_rough(figures) { "~" } else { "" };
    let value = number::text(id.number(), &figures.report.functions[place], Digits::Short);
    format!("{} {about}{value}", column.heading())
}

fn cost(figures: &Figures, place: usize) -> String {
    let cost = figures.spent.get(place).copied().unwrap_or_default();
    let share = figures.percent_of_cpu(cost);
    let share =
        share.map_or_else(String::new, |share| format!(" ({} of the CPU time)", percent(share)));
    format!("probes ~{}{share}", time(cost, Digits::Short))
}

/// Joins the parts into a row that can only be broken between them.
fn joined(parts: impl IntoIterator<Item = String>) -> String {
    let parts: Vec<String> = parts.into_iter().map(|part| part.replace(' ', TIED)).collect();
    parts.join(" · ")
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
    all.truncate(MOST);
    let (names, values): (Vec<_>, Vec<_>) = all.into_iter().unzip();
    shorten_all(&names, NAME).into_iter().zip(values)
}

/// Returns each number before and now, while comparing.
fn changes(model: &Model, figures: &Figures, place: usize) -> Option<String> {
    let before = model.before()?;
    let id = figures.ids[place];
    let was = before.place(id);
    let text = |column: TopColumn| {
        let of = |figures: &Figures, place: Option<usize>| match place {
            Some(place) => column.cell(figures, place),
            None => ABSENT.to_owned(),
        };
        let (old, new) = (of(before, was), of(figures, Some(place)));
        let change = NumberChange::of(column, figures, before, id).text(column);
        format!("{} {old} → {new} ({change})", column.heading())
    };
    let columns =
        [TopColumn::RATE, TopColumn::EXCLUSIVE, TopColumn::P50, TopColumn::P99, TopColumn::MAX];
    Some(joined(columns.map(text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctrace_core::report::numbers::NUMBERS;

    /// A new number is in the details without an entry here.
    #[test]
    fn every_number_of_all_calls_is_listed_or_left_out_on_purpose() {
        let listed: Vec<_> = listed().collect();
        let nested = NUMBERS.iter().filter(|number| number.parent.is_some()).count();
        assert_eq!(listed.len() + LEFT_OUT.len() + nested, NUMBERS.len());
        assert!(listed.iter().all(|id| !LEFT_OUT.contains(id)));
    }
}
