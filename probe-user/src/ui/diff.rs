//! Shows a comparison: the verdict on each function or path with the change's confidence interval,
//! and the changes of the other numbers.

use super::text;
use crate::ui::notes::head;
use crate::ui::notes::loss::loss_line;
use crate::ui::output::style::{Style, Tone};
use crate::ui::table::grid::{Cell, ColumnGroup, GridColumn};
use crate::ui::table::row_names::RowNames;
use crate::ui::table::stack::{self, Section};
use crate::ui::text::names;
use crate::ui::text::path;
use crate::ui::text::units::{ABSENT, Digits, count, counted, percent, time};
use clap::ValueEnum;
use ctrace_core::diff::{
    Change, Compared, Diff, FunctionDiff, Metric, ONE_RECORDING, PathDiff, Presence, Row,
    RowSelection, SideReport, SideTime, SourceKind, Verdict, choose,
};
use ctrace_core::report::numbers::Unit;
use ctrace_core::report::render::clean::clean;
use ctrace_core::units::Nanos;
use std::borrow::Cow;

/// Rows of paths without `--top`.
const TOP_PATHS: usize = 20;
/// The largest width of a path: its root and its leaf matter.
const PATH_ROOM: usize = 64;
/// The verdict on noise so strong that both a half and a double are possible.
const CANNOT_TELL: &str = "cannot tell";
/// Behind the verdicts on recordings that cannot tell the machine from the program.
const ONE_A_SIDE: &str = " (a side is one recording: the machine alone can cause such a change; record each side \
                          five times, diff a1 a2 … -- b1 b2 …)";
/// The number of functions named in a failed comparison.
const NAMED: usize = 5;

/// The rows to compare.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DiffView {
    /// Each function
    Functions,
    /// Each call path from root to leaf
    Paths,
}

/// The options of the reader.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct DiffOptions {
    pub views: Vec<DiffView>,
    pub selection: RowSelection,
}

pub(crate) fn render(diff: &Diff, options: &DiffOptions, style: &Style) -> String {
    let mut out = diff.part.as_ref().map_or_else(String::new, |part| head::part(part, style));
    for (side, name) in [(&diff.old, "old"), (&diff.new, "new")] {
        if side.loss.events > 0 || side.loss.late > 0 || side.loss.decode_errors > 0 {
            let warning = format!(
                "warning: the {name} side is not whole, so some of its numbers are wrong: see the \
                 last line"
            );
            out += &text::paragraph(&warning, Tone::Warning, style);
        }
    }
    out += &side(&diff.old, "old", style);
    out += &side(&diff.new, "new", style);
    out.push('\n');
    for view in &options.views {
        let selection = &options.selection;
        out += &match view {
            DiffView::Functions => {
                let what = ["Functions", "function", "functions"];
                table(diff, &diff.functions, what, selection, label_functions, style)
            }
            DiffView::Paths => {
                let top = selection.top.or(Some(TOP_PATHS));
                let selection = RowSelection { top, ..selection.clone() };
                let what = ["Paths", "path", "paths"];
                table(diff, &diff.paths, what, &selection, label_paths, style)
            }
        };
    }
    out += &remarks(diff, &options.views, style);
    let losses = format!("old: {}; new: {}", loss_line(&diff.old.loss), loss_line(&diff.new.loss));
    out += &text::paragraph(&losses, Tone::Dim, style);
    out += &text::paragraph(&sentence(diff), Tone::Title, style);
    style.resolve(&out)
}

/// Returns the whole comparison in one sentence.
pub(super) fn sentence(diff: &Diff) -> String {
    let both = diff.functions.iter().filter(|it| it.compared.presence == Presence::Both);
    let words: Vec<&str> = both.map(|it| word(it.compared.changes.of(diff.metric))).collect();
    let of = |word: &str| words.iter().filter(|it| **it == word).count();
    let always = match diff.metric.is_rate() {
        true => [Verdict::More.name(), Verdict::Less.name()],
        false => [Verdict::Slower.name(), Verdict::Faster.name()],
    };
    let others =
        [Verdict::NoChange, Verdict::Noise, Verdict::TooFew, Verdict::Unjudged].map(Verdict::name);
    let one_sided = diff.functions.len() - words.len();
    let rest = others.into_iter().chain([CANNOT_TELL]).map(|word| (of(word), word));
    let rest = rest.chain([(one_sided, "on one side only")]).filter(|(n, _)| *n > 0);
    let parts = always.into_iter().map(|word| (of(word), word)).chain(rest);
    let parts: Vec<String> = parts.map(|(n, word)| format!("{} {word}", count(n as u64))).collect();
    parts.join(", ") + if doubts_changes(diff) { ONE_A_SIDE } else { "" }
}

/// Returns whether a function has changed, a side is a single recording, and the other side is of another one:
/// then a change of the machine looks like one of the program.
fn doubts_changes(diff: &Diff) -> bool {
    let Diff { old, new, metric, functions, .. } = diff;
    let both = functions.iter().filter(|it| it.compared.presence == Presence::Both);
    let mut changes = both.map(|it| it.compared.changes.of(*metric));
    changes.any(|change| change.verdict.is_significant() && !change.is_open())
        && [old, new].iter().any(|side| side.files.len() == 1)
        && old.files != new.files
}

/// Returns the notes, without the one that the sentence on the whole says as well.
pub(super) fn notes(diff: &Diff) -> impl Iterator<Item = Cow<'_, str>> {
    let is_said = doubts_changes(diff);
    let notes = diff.notes.iter().filter(move |note| !is_said || *note != ONE_RECORDING);
    notes.map(|note| clean(note))
}

/// Returns the verdict on a change in words.
pub(super) fn word(change: &Change) -> &'static str {
    if change.is_open() { CANNOT_TELL } else { change.verdict.name() }
}

/// Names the files of a side.
fn side(side: &SideReport, name: &str, style: &Style) -> String {
    let files: Vec<_> = side.files.iter().map(|file| clean(file)).collect();
    let mut parts = vec![format!("{name}: {}", files.join(", "))];
    let at = |ns| time(ns, Digits::Full);
    parts.extend(
        side.time
            .map(|SideTime { from_ns, to_ns }| format!("time {} to {}", at(from_ns), at(to_ns))),
    );
    parts.push(at(side.duration_ns));
    if side.stretches > 0 {
        parts.push(counted(side.stretches, "stretch", "stretches"));
    }
    text::paragraph(&parts.join(" · "), Tone::Title, style)
}

pub(super) fn label_function(function: &FunctionDiff) -> String {
    names::label_of(function.kind, function.group.as_deref(), &function.name)
}

fn label_functions(list: &[&FunctionDiff]) -> Vec<String> {
    list.iter().map(|function| label_function(function)).collect()
}

fn label_paths(list: &[&PathDiff]) -> Vec<String> {
    let paths: Vec<&[String]> = list.iter().map(|of| &*of.labels).collect();
    path::joined_all(&paths, PATH_ROOM)
}

/// Returns a table of the rows on both sides, and one of those on one side.
fn table<T: Row>(
    diff: &Diff,
    list: &[T],
    [title, one, many]: [&str; 3],
    selection: &RowSelection,
    labels: fn(&[&T]) -> Vec<String>,
    style: &Style,
) -> String {
    let mut out = String::new();
    for both in [true, false] {
        let chosen = choose(list, diff.metric, selection, both);
        let rows: Vec<&T> = chosen.indices.iter().map(|&at| &list[at]).collect();
        let names = RowNames::from(labels(&rows));
        if rows.is_empty() && chosen.left_out == 0 {
            continue;
        }
        let sections = |digits| match both {
            true => compared(diff, &rows, digits),
            false => on_one_side(&rows, digits),
        };
        let pairs = sections(Digits::Full).into_iter().zip(sections(Digits::Short));
        let sections = pairs.map(|(full, short)| Section { full, short }).collect();
        out += &match both {
            true => text::title(&format!("{title}, by {}", diff.metric.help())),
            false => text::title(&format!("{title} called on one side only")),
        };
        out += &stack::draw(&names, sections, style);
        out += &text::left_out(chosen.left_out, one, many, style);
        out.push('\n');
    }
    if out.is_empty() {
        out = format!("No {one} was called on either side.\n\n");
    }
    out
}

/// Returns the columns: the verdict with its subject, then the other numbers.
fn compared<T: Row>(diff: &Diff, rows: &[&T], digits: Digits) -> Vec<Vec<ColumnGroup>> {
    let of = |row: &&T| *row.compared().changes.of(diff.metric);
    let verdicts = rows.iter().map(|row| {
        let compared = row.compared();
        let text = if compared.failed { "FAILED" } else { word(&of(row)) };
        Cell::toned(text.to_owned(), tone(compared.verdict))
    });
    let verdict = ColumnGroup::untitled(vec![
        GridColumn::left("verdict", verdicts),
        GridColumn::right(
            "change",
            rows.iter().map(|row| {
                let change = of(row);
                Cell::toned(signed(change.change_percent), tone(change.verdict))
            }),
        ),
        GridColumn::right("between", rows.iter().map(|row| interval(&of(row)))),
    ]);
    let values = ColumnGroup::titled(
        diff.metric.name().to_owned(),
        vec![
            GridColumn::right(
                "old",
                rows.iter().map(|row| value(diff.metric, of(row).old, digits)),
            ),
            GridColumn::right(
                "new",
                rows.iter().map(|row| value(diff.metric, of(row).new, digits)),
            ),
        ],
    );
    let others = diff.metrics.iter().copied().filter(|&metric| metric != diff.metric);
    let others = others.filter_map(|metric| {
        let changes: Vec<Change> =
            rows.iter().map(|row| *row.compared().changes.of(metric)).collect();
        let is_known = changes.iter().any(|change| change.change_percent.is_some());
        let heading = if metric.is_rate() {
            format!("{}/s", metric.name())
        } else {
            metric.name().to_owned()
        };
        is_known.then(|| GridColumn::right(&heading, changes.iter().map(marked)))
    });
    let calls = ColumnGroup::titled(
        "calls".to_owned(),
        vec![
            GridColumn::right("old", rows.iter().map(|row| count(row.compared().old_calls))),
            GridColumn::right("new", rows.iter().map(|row| count(row.compared().new_calls))),
        ],
    );
    let others = ColumnGroup::titled("change of (* significant)".to_owned(), others.collect());
    vec![vec![verdict, values], vec![others], vec![calls]]
}

fn on_one_side<T: Row>(rows: &[&T], digits: Digits) -> Vec<Vec<ColumnGroup>> {
    let side = |row: &&T| match row.compared().presence {
        Presence::Old => "old",
        Presence::New | Presence::Both => "new",
    };
    let of = |row: &&T, metric| {
        let change = row.compared().changes.of(metric);
        value(metric, change.old.or(change.new), digits)
    };
    vec![vec![ColumnGroup::untitled(vec![
        GridColumn::left("only in", rows.iter().map(|row| Cell::from(side(row).to_owned()))),
        GridColumn::right(
            "calls",
            rows.iter().map(|row| count(row.compared().old_calls.max(row.compared().new_calls))),
        ),
        GridColumn::right("p50", rows.iter().map(|row| of(row, Metric::P50))),
        GridColumn::right("total/s", rows.iter().map(|row| of(row, Metric::TOTAL))),
    ])]]
}

fn tone(verdict: Verdict) -> Tone {
    match verdict {
        _ if verdict.is_worse() => Tone::Hot,
        _ if verdict.is_significant() => Tone::Name,
        Verdict::Unjudged => Tone::Plain,
        _ => Tone::Dim,
    }
}

/// Formats a change of one of the other numbers.
fn marked(change: &Change) -> Cell {
    let star = if change.verdict.is_significant() { "*" } else { " " };
    let star = if change.verdict == Verdict::Unjudged { "" } else { star };
    Cell::toned(signed(change.change_percent) + star, tone(change.verdict))
}

pub(super) fn signed(percent: Option<f64>) -> String {
    match percent {
        None => ABSENT.to_owned(),
        Some(percent) if percent.abs() < 0.05 => "0.0%".to_owned(),
        Some(percent) if percent.abs() < 1e3 => format!("{percent:+.1}%"),
        Some(percent) if percent.abs() < 1e6 => format!("{percent:+.0}%"),
        Some(percent) => format!("{percent:+.1e}%"),
    }
}

pub(super) fn interval(change: &Change) -> String {
    match (change.low_percent, change.high_percent) {
        (Some(low), Some(high)) => format!("{} … {}", signed(Some(low)), signed(Some(high))),
        _ => ABSENT.to_owned(),
    }
}

pub(super) fn value(metric: Metric, value: Option<f64>, digits: Digits) -> String {
    let Some(value) = value else { return ABSENT.to_owned() };
    match (metric.unit(), metric.is_rate()) {
        // Nanoseconds per second are a share.
        (Unit::Time, true) => percent(value / 1e7),
        (Unit::Time, false) => time(Nanos(value.round() as u64), digits),
        _ => format!("{}/s", count(value.round() as u64)),
    }
}

/// Joins the names that there is room for.
fn first_named(names: &[String]) -> String {
    let more = if names.len() > NAMED { ", …" } else { "" };
    names[..names.len().min(NAMED)].join(", ") + more
}

/// Names the functions that are slower by another number than the one that decides: a median does not
/// tell of the few calls that take long.
fn worse_by_others(diff: &Diff) -> Option<String> {
    const NUMBERS: [Metric; 4] = [Metric::P50, Metric::P90, Metric::P99, Metric::MEAN];
    if !NUMBERS.contains(&diff.metric) {
        return None;
    }
    let slower = |function: &FunctionDiff| {
        let changes = &function.compared.changes;
        let is_slower = |metric: &Metric| changes.of(*metric).verdict == Verdict::Slower;
        let other =
            NUMBERS.into_iter().rev().find(is_slower).filter(|_| !is_slower(&diff.metric))?;
        let percent = changes.of(other).change_percent?;
        Some(format!("{} ({} +{percent:.1} %)", label_function(function), other.name()))
    };
    let found: Vec<String> = diff.functions.iter().filter_map(slower).collect();
    (!found.is_empty()).then(|| {
        format!(
            "Slower by a number that does not decide here: {}. --metric mean judges by the mean, and so on.",
            first_named(&found)
        )
    })
}

/// Returns remarks to show after the numbers.
fn remarks(diff: &Diff, views: &[DiffView], style: &Style) -> String {
    let mut out = String::new();
    for (left_out, what) in [(diff.functions_left_out, "functions"), (diff.paths_left_out, "paths")]
    {
        if left_out > 0 {
            let note = format!("{} {what} that took less time are not compared.", count(left_out));
            out += &text::paragraph(&note, Tone::Plain, style);
        }
    }
    let is_open = |compared: &Compared| compared.changes.of(diff.metric).is_open();
    let in_any = |view: &DiffView| match view {
        DiffView::Functions => diff.functions.iter().any(|it| is_open(&it.compared)),
        DiffView::Paths => diff.paths.iter().any(|it| is_open(&it.compared)),
    };
    if views.iter().any(in_any) {
        let (vary, remedy) = match diff.old.kind {
            SourceKind::Fleet => ("hosts and intervals", "Compare more hosts, or more time."),
            SourceKind::Recording | SourceKind::Report => {
                ("recordings", "Record longer, and each side five times, taking turns.")
            }
        };
        let line = format!(
            "{CANNOT_TELL}: it may as well have halved or doubled, so much do the {vary} vary. {remedy}"
        );
        out += &text::paragraph(&line, Tone::Plain, style);
    }
    for note in notes(diff).chain(worse_by_others(diff).map(Cow::from)) {
        out += &text::paragraph(&note, Tone::Plain, style);
    }
    if let Some(limit) = diff.fail_over_percent {
        let failed = diff.functions.iter().filter(|function| function.compared.failed);
        let names: Vec<String> = failed.map(label_function).collect();
        let metric = diff.metric.name();
        out += &match names.len() {
            0 => text::paragraph(
                &format!(
                    "passed: no function is significantly worse by more than {limit} % ({metric})"
                ),
                Tone::Plain,
                style,
            ),
            n => {
                let names = first_named(&names);
                let what = counted(n as u64, "function is", "functions are");
                let line =
                    format!("FAILED: {what} worse by more than {limit} % ({metric}): {names}");
                text::paragraph(&line, Tone::Warning, style)
            }
        };
    }
    out
}
