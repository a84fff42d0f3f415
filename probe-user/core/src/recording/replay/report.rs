//! Runs the passes and makes a report of their results.

use super::Query;
use super::between_marks::between_marks;
use super::by_value::by_value;
use super::by_waker::by_waker;
use super::calls;
use super::centers::unions_of;
use super::count::{FirstPass, count};
use super::frames::frames;
use super::heat::heat;
use super::inside::inside;
use super::lens::Lens;
use super::locks::locks;
use super::needed::needed;
use super::plots::plots;
use super::ranks::ranks;
use super::slowest::slowest;
use super::timeline::timeline;
use super::trend::trend;
use super::values::{self, lost_payloads, values};
use crate::calls::by_function::ByFunction;
use crate::recording::Recording;
use crate::report::assemble::{Facts, Open};
use crate::report::{Extras, LossReport, PointsReport, Report, ReportMeta, ThreadReport};
use crate::stats::slices::Slices;
use crate::stats::unions::{OpenCall, ThreadCalls, Window, unions};
use crate::units::{FuncId, Nanos, ThreadId};
use std::collections::BTreeMap;
use std::ops::Range;

/// Threads listed in a report, at most.
const MAX_ROWS: usize = 65_536;

/// Returns the report of the calls that `query` selects. `center_cut` is a percentage.
pub fn report(recording: &Recording, query: &Query, center_cut: f64) -> Report {
    report_with(recording, query, meta_of(recording, center_cut))
}

/// Returns the description that a recording has of itself.
pub fn meta_of(recording: &Recording, center_cut: f64) -> ReportMeta {
    let target = recording.end().map_or(&recording.start().target, |end| &end.target).clone();
    ReportMeta { target, center_cut, notes: notes(recording), extras: Extras::default() }
}

/// Like [`report`], with a given description and [`Extras`].
pub fn report_with(recording: &Recording, query: &Query, mut meta: ReportMeta) -> Report {
    let extras = meta.extras;
    let lens = Lens::new(query, recording.nodes(), recording.functions());
    let all = lens.chunks(recording.chunks());
    // A frame, or the time for which a lock is held, may begin at a point before the window.
    let needs_points = extras.frames.is_some() || extras.locks;
    // A chunk that cannot be read may tell of more than is known.
    let needed = if needs_points { Ok(all) } else { needed(recording, &lens) };
    let chunks = needed.unwrap_or(all);
    let mut counted = count(recording, &lens, chunks);
    let by_function = ByFunction::new(lens.paths.nodes());
    let ranks = ranks(recording, &lens, chunks, &counted, &by_function, meta.center_cut);
    let keep: Vec<_> = ranks.functions.iter().map(|(_, center)| center.keep).collect();
    let mut unions = unions_of(recording, &lens, chunks, &counted, &keep, extras.ctrack);
    let (start, end) = period(recording, &lens);
    let from = chunks.last().map_or(end.0, |chunk| chunk.to.0.max(lens.window.start));
    unions.add(&open_at_end(&lens, &counted, from..end.0, keep.len()));
    let slices = Slices::new(start, end, extras.slices);
    let heat = extras.histograms.then(|| heat(recording, &lens, chunks, &counted, slices));
    let mut payloads_lost = None;
    let slowest_calls = extras.slowest_calls.map(|top| {
        let found = slowest(recording, &lens, chunks, &counted, top);
        let inside = inside(recording, &lens, chunks, &counted, &found);
        let mut calls = calls::reports(recording, &lens, &found, &inside);
        if !recording.has_values() {
            return (calls, PointsReport::default());
        }
        let values = values(recording, &lens, chunks, &counted, &found, top);
        payloads_lost = Some(values.lost);
        let (of_calls, points) = values::reports(recording, values);
        for (call, (values, points)) in calls.iter_mut().zip(of_calls) {
            (call.values, call.points) = (values, points);
        }
        (calls, points)
    });
    let (slowest_calls, points) = slowest_calls.unzip();
    let frames = extras.frames.and_then(|asked| {
        let function = recording.functions().get(asked.function.index())?;
        if function.is_edge_of_frames() {
            let found = between_marks(recording, &lens, chunks, &counted, asked);
            let why = found.as_ref().err().map(|error| format!("there are no frames: {error}"));
            meta.notes.extend(why);
            return found.ok().flatten();
        }
        let (percentiles, _) = ranks.functions.get(asked.function.index())?;
        let nodes = by_function.nodes_of(asked.function).iter();
        let timed = nodes.map(|node| counted.counts.tallies[*node as usize].timed);
        let timed = timed.fold(0, u64::saturating_add);
        let median = percentiles.at(500)?.0;
        frames(recording, &lens, chunks, &counted, asked, (timed, median))
    });
    let values = extras.values.filter(|_| recording.has_values());
    let values = values.map(|most| by_value(recording, &lens, chunks, &counted, most));
    let wakers = extras.wakers.filter(|_| recording.has_values());
    let wakers = wakers.map(|most| by_waker(recording, &lens, chunks, &counted, most));
    let has_plots = extras.plots && recording.has_values();
    let plots = has_plots.then(|| plots(recording, &lens, chunks, &counted, slices));
    let locks = extras.locks.then(|| locks(recording, &lens, chunks, &counted));
    let open = open(&mut counted, &lens, recording.functions().len());
    let timeline = extras
        .timeline_lanes
        .map(|lanes| timeline(recording, &lens, chunks, &counted, slices, lanes));
    let counts = counted.counts.by_function(recording);
    let loss = counted.counts.loss;
    meta.notes.extend(damage(counted.counts.unreadable));
    let Extras { path_histograms, path_latencies, latencies, .. } = extras;
    let histograms = extras.histograms || path_histograms || latencies || path_latencies;
    let mut report = Facts {
        functions: recording.functions(),
        nodes: lens.paths.nodes(),
        by_function: &by_function,
        tallies: &counted.counts.tallies,
        counts: &counts,
        open,
        ranks,
        unions,
        histograms: histograms.then_some(&counted.counts.histograms),
        heat,
        threads: threads(recording, &counted),
        start,
        end,
        approximate: false,
        counted: false,
        filtered: counted.counts.filtered.saturating_add(loss.filtered),
        min_duration: query.filter.min_duration,
        some_functions: query.functions.is_some(),
        loss: LossReport {
            events: loss.lost_events(),
            late: loss.late,
            decode_errors: loss.decode_errors,
            unreadable_calls: counted.counts.unreadable,
            unreadable_bytes: recording.unreadable(),
            payloads: payloads_lost.unwrap_or_else(|| lost_payloads(recording, &lens, chunks)),
            ..LossReport::default()
        },
    }
    .report(meta);
    for function in &lens.folded {
        if let Some(row) = report.functions.get_mut(function.index()) {
            row.folded = true;
        }
    }
    let points = points.unwrap_or_default();
    let (values, plots) = (values.unwrap_or_default(), plots.unwrap_or_default());
    let trend = extras.trend.map(|asked| trend(recording, query, &report, asked));
    Report {
        slowest_calls,
        points,
        timeline,
        frames,
        values,
        wakers,
        plots,
        locks,
        trend,
        ..report
    }
}

/// Returns the start and end of the period that the query looks at.
pub(crate) fn period(recording: &Recording, lens: &Lens<'_>) -> (Nanos, Nanos) {
    let (start, end) = recording.period();
    let window = lens.clip(start, end);
    (Nanos(window.start.min(end.0)), Nanos(window.end.max(start.0)))
}

/// Returns the unions between the last chunk and the end, when calls were open but none ended.
pub(crate) fn open_at_end(
    lens: &Lens<'_>,
    counted: &FirstPass,
    window: Range<u64>,
    functions: usize,
) -> crate::stats::unions::Unions {
    if window.is_empty() {
        return Default::default();
    }
    let mut open: BTreeMap<ThreadId, Vec<OpenCall>> = BTreeMap::new();
    for ((thread, start, _), node) in &counted.open {
        open.entry(*thread).or_default().push(OpenCall {
            start: *start,
            node: *node,
            timed: false,
            kept: false,
            end: u64::MAX,
        });
    }
    let threads = open.into_values().map(|mut open| {
        open.sort_by_key(|call| (call.start, lens.paths.nodes()[call.node as usize].depth));
        ThreadCalls { finished: std::iter::empty(), open }
    });
    let window = Window { start: window.start, end: window.end };
    let keep = vec![Default::default(); functions];
    unions(window, threads.collect(), lens.paths.nodes(), &keep, false)
}

/// Returns the open calls at the end, and adds them to the counts of their threads.
pub(super) fn open(counted: &mut FirstPass, lens: &Lens<'_>, functions: usize) -> Open {
    let nodes = lens.paths.nodes();
    let mut open = Open { calls: vec![0; nodes.len()], threads: vec![0; functions] };
    let mut only_open: Vec<(ThreadId, FuncId)> = Vec::new();
    for ((thread, start, _), node) in &counted.open {
        open.calls[*node as usize] += 1;
        let function = nodes[*node as usize].func;
        let about = counted.counts.threads.entry(*thread).or_default();
        about.saw(*start, *start);
        if !about.has_called(function) {
            only_open.push((*thread, function));
        }
        about.calls = about.calls.saturating_add(1);
        about.open = about.open.saturating_add(1);
    }
    only_open.sort_unstable();
    only_open.dedup();
    for (_, function) in only_open {
        open.threads[function.index()] += 1;
    }
    open
}

/// Returns rows for the threads that made calls, and the number of threads left out.
fn threads(recording: &Recording, counted: &FirstPass) -> (Vec<ThreadReport>, u64) {
    let called = counted.counts.threads.iter().filter(|(_, thread)| thread.calls > 0);
    let rows = called.filter_map(|(id, thread)| {
        let record = recording.thread(*id)?;
        let row = ThreadReport {
            pid: record.pid,
            tid: record.tid,
            name: record.name.clone(),
            calls: thread.calls,
            open: thread.open,
            first_ns: Nanos(thread.first),
            last_ns: Nanos(thread.last),
        };
        Some((record.beside.unwrap_or(*id), row))
    });
    let mut of_thread: BTreeMap<ThreadId, ThreadReport> = BTreeMap::new();
    for (id, row) in rows {
        let row = match of_thread.remove(&id) {
            Some(other) => other.with_beside(row),
            None => row,
        };
        of_thread.insert(id, row);
    }
    let mut rows: Vec<_> = of_thread.into_values().collect();
    rows.sort_by_key(|row| (row.first_ns, row.pid, row.tid));
    let more = rows.len().saturating_sub(MAX_ROWS);
    rows.truncate(MAX_ROWS);
    (rows, more as u64)
}

/// Returns a note on calls in chunks that cannot be read.
pub(crate) fn damage(calls: u64) -> Option<String> {
    (calls > 0).then(|| {
        format!("the recording is damaged: {calls} calls in it cannot be read and are missing")
    })
}

pub(crate) fn notes(recording: &Recording) -> Vec<String> {
    let mut notes = match recording.end() {
        Some(end) => end.notes.clone(),
        None => vec![
            "the recording was not ended: ctrace was killed or is still at it; what came after its \
             last chunk is missing"
                .to_owned(),
        ],
    };
    if recording.unreadable() > 0 {
        let bytes = recording.unreadable();
        notes.push(format!(
            "{bytes} bytes of the recording cannot be read, and the calls in them are missing: they \
             are damaged, or ctrace was killed while it wrote them"
        ));
    }
    notes
}
