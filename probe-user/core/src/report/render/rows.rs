//! The choice and order of a report's rows: `--sort`, `--top` and `--min-percent` as functions of a
//! report, the same for tables and CSV.

use super::columns::{self, Column};
use crate::report::{ByValue, CallReport, CtrackRow, FunctionReport, PathReport, Report};
use crate::units::Nanos;

/// The reader's choice of rows.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowChoice {
    /// A column's name; a table without that column keeps its default order.
    pub sort: Option<String>,
    pub top: Option<usize>,
    /// Leaves out functions below this share of innermost time, and paths below this share
    /// of the duration.
    pub min_percent: Option<f64>,
    /// Also shows functions that were never called.
    pub show_zero: bool,
}

/// The chosen rows in order, as indices into the report's list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChosenRows {
    pub indices: Vec<usize>,
    /// The number of rows that `--top` or `--min-percent` left out.
    pub left_out: usize,
    /// The number of functions without a call that are left out because they were not requested.
    pub never_called: usize,
}

/// Returns true if no event of the function was seen. An end of a call that began before tracing is
/// one.
pub fn is_never_called(function: &FunctionReport) -> bool {
    function.calls == 0 && function.headless == 0
}

/// Returns the percentage of the time in which the function was innermost. Where calls are counted only,
/// it is that of its own time in all threads.
fn share(function: &FunctionReport, duration: Nanos) -> f64 {
    match function.counted {
        true => function.self_ns.percent_of(duration),
        false => function.active_exclusive_percent,
    }
}

pub fn functions(report: &Report, selection: &RowChoice) -> ChosenRows {
    let own;
    let selection = match &selection.sort {
        // The usual column is not known there.
        None if report.counted => {
            own = RowChoice { sort: Some("self".to_owned()), ..selection.clone() };
            &own
        }
        _ => selection,
    };
    let list = &report.functions;
    let never_called = list.iter().filter(|f| is_never_called(f)).count();
    let hide_zero = !selection.show_zero;
    let listed = list.iter().filter(|f| !(hide_zero && is_never_called(f))).count();
    let keep = |f: &FunctionReport| {
        !(hide_zero && is_never_called(f))
            && selection.min_percent.is_none_or(|min| share(f, report.duration_ns) >= min)
    };
    let indices = choose(list, columns::functions(), selection, keep, |f| &f.name);
    ChosenRows {
        left_out: listed - indices.len(),
        indices,
        never_called: if hide_zero { never_called } else { 0 },
    }
}

/// Returns true if the path's share of the duration is large enough to be shown.
pub fn path_is_large_enough(report: &Report, selection: &RowChoice, path: &PathReport) -> bool {
    selection.min_percent.is_none_or(|min| path.total_ns.percent_of(report.duration_ns) >= min)
}

pub fn paths(report: &Report, selection: &RowChoice) -> ChosenRows {
    let indices = choose(
        &report.paths,
        columns::PATHS,
        selection,
        |path| path_is_large_enough(report, selection, path),
        |path| path.path.last().map_or("", |name| name),
    );
    ChosenRows { left_out: report.paths.len() - indices.len(), indices, never_called: 0 }
}

/// Returns the paths by their counts, unless another column is requested.
pub fn counts(report: &Report, selection: &RowChoice) -> ChosenRows {
    let sort = selection.sort.clone().or_else(|| Some("calls".to_owned()));
    paths(report, &RowChoice { sort, ..selection.clone() })
}

/// Returns the chosen ones of the slowest calls in the report.
pub fn calls(report: &Report, selection: &RowChoice) -> ChosenRows {
    let list = report.slowest_calls.as_deref().unwrap_or_default();
    let indices = choose(list, columns::CALLS, selection, |_| true, CallReport::name);
    ChosenRows { left_out: list.len() - indices.len(), indices, never_called: 0 }
}

/// Returns the chosen rows of CTRACK's tables.
pub fn ctrack(report: &Report, selection: &RowChoice) -> ChosenRows {
    let list = report.ctrack.as_ref().map_or(&[][..], |ctrack| &ctrack.functions);
    let keep = |row: &CtrackRow| {
        selection.min_percent.is_none_or(|min| row.active_exclusive_percent >= min)
    };
    let indices = choose(list, columns::ctrack(), selection, keep, |row| {
        row.of(&report.functions).map_or("", |function| &function.name)
    });
    ChosenRows { left_out: list.len() - indices.len(), indices, never_called: 0 }
}

/// Returns the chosen functions within frames, those first that take more in the worst ones.
pub fn frames(report: &Report, selection: &RowChoice) -> ChosenRows {
    let list = report.frames.as_ref().map_or(&[][..], |frames| &frames.parts);
    let indices = choose(
        list,
        columns::FRAMES,
        selection,
        |_| true,
        |part| report.functions.get(part.function).map_or("", |function| &function.name),
    );
    ChosenRows { left_out: list.len() - indices.len(), indices, never_called: 0 }
}

/// Returns the chosen values of an argument or result.
pub fn values(table: &ByValue, selection: &RowChoice) -> ChosenRows {
    let indices = choose(&table.rows, columns::VALUES, selection, |_| true, |_| "");
    ChosenRows { left_out: table.rows.len() - indices.len(), indices, never_called: 0 }
}

/// Returns the chosen wakers.
pub fn wakers(report: &Report, selection: &RowChoice) -> ChosenRows {
    let list = report.wakers.as_ref().map_or(&[][..], |wakers| &wakers.rows);
    let indices = choose(list, columns::WAKERS, selection, |_| true, |_| "");
    ChosenRows { left_out: list.len() - indices.len(), indices, never_called: 0 }
}

/// Returns the chosen plots.
pub fn plots(report: &Report, selection: &RowChoice) -> ChosenRows {
    let indices = choose(&report.plots, columns::PLOTS, selection, |_| true, |plot| &plot.name);
    ChosenRows { left_out: report.plots.len() - indices.len(), indices, never_called: 0 }
}

/// Returns the chosen locks.
pub fn locks(report: &Report, selection: &RowChoice) -> ChosenRows {
    let list = report.locks.as_ref().map_or(&[][..], |locks| &locks.locks);
    let indices = choose(list, columns::LOCKS, selection, |_| true, |lock| &lock.name);
    ChosenRows { left_out: list.len() - indices.len(), indices, never_called: 0 }
}

pub fn threads(report: &Report, selection: &RowChoice) -> ChosenRows {
    let indices =
        choose(&report.threads, columns::THREADS, selection, |_| true, |thread| &thread.name);
    ChosenRows { left_out: report.threads.len() - indices.len(), indices, never_called: 0 }
}

fn choose<'a, T>(
    list: &'a [T],
    columns: &'static [Column<T>],
    selection: &RowChoice,
    keep: impl Fn(&T) -> bool,
    name: impl Fn(&'a T) -> &'a str,
) -> Vec<usize> {
    let mut indices: Vec<usize> = (0..list.len()).filter(|&i| keep(&list[i])).collect();
    let column = sort_column(columns, selection);
    indices.sort_by(|&a, &b| {
        (column.key)(&list[a])
            .in_table(&(column.key)(&list[b]))
            .then_with(|| name(&list[a]).cmp(name(&list[b])))
            .then(a.cmp(&b))
    });
    indices.truncate(selection.top.unwrap_or(usize::MAX));
    indices
}

/// Returns the requested column, or the table's default.
pub fn sort_column<T>(columns: &'static [Column<T>], selection: &RowChoice) -> &'static Column<T> {
    selection.sort.as_deref().and_then(|name| columns::find(columns, name)).unwrap_or(&columns[0])
}
