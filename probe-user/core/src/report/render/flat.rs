//! Nested parts of a report as rows, for formats that have only rows.

use super::rows::{self, RowChoice};
use crate::report::{
    CallReport, CtrackRow, FramePart, FunctionHistogram, FunctionReport, LockReport, PathReport,
    PlotReport, Report, TimelineCell, TrendInterval, ValueCalls, WokenWaits,
};
use crate::units::{Nanos, Pid, Tid};
use crate::values::Value;
use std::borrow::Cow;
use std::sync::Arc;

/// A row of a path.
pub(super) struct OnPath<'a, T> {
    /// The names of its functions, root to leaf.
    pub(super) names: Vec<Cow<'a, str>>,
    pub(super) of: &'a T,
}

/// Returns the paths at these indices.
pub(super) fn paths<'a>(report: &'a Report, indices: &[usize]) -> Vec<OnPath<'a, PathReport>> {
    let row = |&at: &usize| OnPath { names: report.names_on_path(at), of: &report.paths[at] };
    indices.iter().map(row).collect()
}

/// Returns the slowest calls that are shown.
pub(super) fn calls<'a>(report: &'a Report, selection: &RowChoice) -> Vec<OnPath<'a, CallReport>> {
    let calls = report.slowest_calls.as_deref().unwrap_or_default();
    let rows = rows::calls(report, selection).indices.into_iter().map(|index| &calls[index]);
    rows.map(|call| OnPath { names: report.names_of_call(call), of: call }).collect()
}

/// A function in CTRACK's tables.
pub(super) struct InCtrack<'a> {
    pub(super) function: &'a FunctionReport,
    pub(super) row: &'a CtrackRow,
}

/// Returns the rows of CTRACK's tables that are shown.
pub(super) fn ctrack<'a>(report: &'a Report, selection: &RowChoice) -> Vec<InCtrack<'a>> {
    let list = report.ctrack.as_ref().map_or(&[][..], |ctrack| &ctrack.functions);
    let rows = rows::ctrack(report, selection).indices.into_iter().map(|index| &list[index]);
    rows.filter_map(|row| Some(InCtrack { function: row.of(&report.functions)?, row })).collect()
}

/// A function in an interval.
pub(super) struct InTrend<'a> {
    pub(super) interval: &'a TrendInterval,
    pub(super) row: &'a FunctionReport,
}

/// Returns the intervals of the functions that are shown, function by function.
pub(super) fn trend<'a>(report: &'a Report, selection: &RowChoice) -> Vec<InTrend<'a>> {
    let Some(trend) = &report.trend else { return Vec::new() };
    let functions = rows::functions(report, selection).indices.into_iter();
    let rows = functions.filter_map(|function| trend.rows_of(function)).flatten();
    rows.map(|(interval, row)| InTrend { interval, row }).collect()
}

/// A plot and its function.
pub(super) struct OfPlot<'a> {
    pub(super) function: &'a FunctionReport,
    pub(super) plot: &'a PlotReport,
}

/// Returns the plots that are shown.
pub(super) fn plots<'a>(report: &'a Report, selection: &RowChoice) -> Vec<OfPlot<'a>> {
    let rows = rows::plots(report, selection).indices.into_iter().map(|at| &report.plots[at]);
    let row = |plot: &'a PlotReport| {
        Some(OfPlot { function: report.functions.get(plot.function)?, plot })
    };
    rows.filter_map(row).collect()
}

/// Returns the locks that are shown.
pub(super) fn locks<'a>(report: &'a Report, selection: &RowChoice) -> Vec<&'a LockReport> {
    let list = report.locks.as_ref().map_or(&[][..], |locks| &locks.locks);
    rows::locks(report, selection).indices.into_iter().map(|index| &list[index]).collect()
}

/// A function within frames.
pub(super) struct InFrames {
    pub(super) name: Arc<str>,
    pub(super) object: Arc<str>,
    pub(super) group: Option<Arc<str>>,
    pub(super) part: FramePart,
}

/// Returns the functions within frames that are shown.
pub(super) fn frames(report: &Report, selection: &RowChoice) -> Vec<InFrames> {
    let list = report.frames.as_ref().map_or(&[][..], |frames| &frames.parts);
    let rows = rows::frames(report, selection).indices.into_iter().map(|index| list[index]);
    let row = |part: FramePart| {
        let function = report.functions.get(part.function)?;
        Some(InFrames {
            name: function.name.clone(),
            object: function.object.clone(),
            group: function.group.clone(),
            part,
        })
    };
    rows.filter_map(row).collect()
}

/// Calls by a value of theirs.
pub(super) struct WithValue {
    pub(super) name: Arc<str>,
    pub(super) object: Arc<str>,
    pub(super) group: Option<Arc<str>>,
    /// The name of the argument or result.
    pub(super) of: Arc<str>,
    /// `value`, `others` or `unread`.
    pub(super) which: &'static str,
    pub(super) value: Option<Value>,
    pub(super) calls: ValueCalls,
}

/// Returns the values that are shown, those of each argument in a row.
pub(super) fn values(report: &Report, selection: &RowChoice) -> Vec<WithValue> {
    let mut out = Vec::new();
    for table in &report.values {
        let Some(function) = report.functions.get(table.function) else { continue };
        let chosen = rows::values(table, selection).indices.into_iter().map(|at| &table.rows[at]);
        let one = chosen.map(|row| ("value", Some(row.value.clone()), row.of));
        let others = table.others.map(|calls| ("others", None, calls));
        let unread = table.unread.map(|calls| ("unread", None, calls));
        out.extend(one.chain(others).chain(unread).map(|(which, value, calls)| WithValue {
            name: function.name.clone(),
            object: function.object.clone(),
            group: function.group.clone(),
            of: table.name.clone(),
            which,
            value,
            calls,
        }));
    }
    out
}

/// Waits by who ended them. Those of all others have no names.
pub(super) struct OneWaker {
    pub(super) name: Option<Arc<str>>,
    pub(super) object: Option<Arc<str>>,
    pub(super) group: Option<Arc<str>>,
    pub(super) wait: Option<Arc<str>>,
    pub(super) waker: Option<Arc<str>>,
    pub(super) of: WokenWaits,
}

/// Returns the wakers that are shown.
pub(super) fn wakers(report: &Report, selection: &RowChoice) -> Vec<OneWaker> {
    let Some(wakers) = &report.wakers else { return Vec::new() };
    let chosen = rows::wakers(report, selection).indices.into_iter().map(|at| &wakers.rows[at]);
    let one = chosen.map(|row| {
        let function = row.function.and_then(|function| report.functions.get(function));
        OneWaker {
            name: function.map(|function| function.name.clone()),
            object: function.map(|function| function.object.clone()),
            group: function.and_then(|function| function.group.clone()),
            wait: report.functions.get(row.wait).map(|wait| wait.name.clone()),
            waker: Some(row.waker.clone()),
            of: row.of,
        }
    });
    let (name, object, group, wait, waker) = Default::default();
    let others = wakers.others.map(|of| OneWaker { name, object, group, wait, waker, of });
    one.chain(others).collect()
}

/// A bucket of a function's durations.
pub(super) struct Bucket {
    pub(super) name: Arc<str>,
    pub(super) object: Arc<str>,
    pub(super) group: Option<Arc<str>>,
    pub(super) from: Nanos,
    pub(super) to: Nanos,
    pub(super) calls: u64,
}

/// Returns the buckets with calls, of the functions that are shown.
pub(super) fn histograms(report: &Report, selection: &RowChoice) -> Vec<Bucket> {
    let mut out = Vec::new();
    for index in rows::functions(report, selection).indices {
        let Some(FunctionHistogram { durations, .. }) = report.histogram_of(index) else {
            continue;
        };
        let function = &report.functions[index];
        let buckets = durations.edges_ns.windows(2).zip(&durations.counts);
        out.extend(buckets.filter(|(_, calls)| **calls > 0).map(|(edges, &calls)| Bucket {
            name: function.name.clone(),
            object: function.object.clone(),
            group: function.group.clone(),
            from: edges[0],
            to: edges[1],
            calls,
        }));
    }
    out
}

/// A slice in which something ran in a thread.
pub(super) struct Slice {
    pub(super) pid: Pid,
    pub(super) tid: Tid,
    pub(super) thread: Arc<str>,
    pub(super) depth: usize,
    pub(super) from: Nanos,
    pub(super) to: Nanos,
    pub(super) name: Arc<str>,
    pub(super) group: Option<Arc<str>>,
    pub(super) cell: TimelineCell,
}

/// Returns slices lane by lane, those of the innermost functions first.
pub(super) fn timeline(report: &Report) -> Vec<Slice> {
    let Some(timeline) = &report.timeline else { return Vec::new() };
    let mut out = Vec::new();
    for lane in &timeline.lanes {
        for (depth, cells) in std::iter::once(&lane.innermost).chain(&lane.depths).enumerate() {
            out.extend(cells.iter().filter_map(|&cell| {
                let edges = timeline.slice_edges_ns.get(cell.slice..=cell.slice + 1)?;
                let function = report.functions.get(cell.function)?;
                Some(Slice {
                    pid: lane.pid,
                    tid: lane.tid,
                    thread: lane.name.clone(),
                    depth,
                    from: edges[0],
                    to: edges[1],
                    name: function.name.clone(),
                    group: function.group.clone(),
                    cell,
                })
            }));
        }
    }
    out
}
