//! Computes the stretch between two looks at the daemon's current interval, by subtracting the
//! earlier look from the later one.
//!
//! Calls, times, unions, losses and costs add up over time, so their differences are exact, and so
//! are means and deviations. There is one exception. A call that is open at the first look may turn
//! out to be too short to count, or lose its end. The unions are then too small by that call's
//! share.
//!
//! Percentiles and extremes of the stretch come from the difference of the histograms, with buckets
//! of an eighth of an octave.

use crate::session::keep::live::Snapshot;
use crate::top::{
    data::{catalogue::RowId, figures::FromHistograms},
    model::narrow::keep_paths,
};
use ctrace_core::{
    report::{
        CenterReport, Distribution, DurationReport, FunctionHistogram, FunctionReport,
        HistogramsReport, PathReport, Report, ThreadReport,
    },
    units::{Nanos, Pid, Tid},
};
use std::collections::HashMap;

/// The interval so far, and the ids of its functions.
pub(crate) struct Look {
    pub(crate) snapshot: Snapshot,
    pub(crate) ids: Vec<RowId>,
}

/// Returns the stretch between two looks at the same interval.
pub(crate) fn between(earlier: &Look, later: &Look) -> Snapshot {
    let before = Before::new(earlier, later);
    let (old, new) = (&earlier.snapshot.report, &later.snapshot.report);
    let mut report = Report {
        approximate: true,
        paths: before.paths(),
        threads: threads(old, new),
        histograms: Some(HistogramsReport { slice_edges_ns: None, functions: before.histograms() }),
        ..new.sums_since(old)
    };
    report.functions = before.functions(report.duration_ns);
    report.notes.extend(FromHistograms::Extremes.note());
    let spent = later.snapshot.spent.iter().enumerate().map(|(place, spent)| {
        let old = before.places[place].and_then(|old| earlier.snapshot.spent.get(old));
        spent.since(old.copied().unwrap_or_default())
    });
    Snapshot { report, spent: spent.collect(), cpu: later.snapshot.cpu }
}

/// Returns the stretch for an interval that began after the last look.
pub(crate) fn since_start(look: &Look) -> Snapshot {
    let mut snapshot = look.snapshot.clone();
    // Mark it like all other stretches, so that they look alike.
    snapshot.report.approximate = true;
    snapshot.report.notes.extend(FromHistograms::Extremes.note());
    let paths = &mut snapshot.report.paths;
    paths.iter_mut().for_each(|path| *path = path.sums());
    snapshot
}

/// Both looks, with the places of the later look's items in the earlier one.
struct Before<'a> {
    old: &'a Report,
    new: &'a Report,
    /// The earlier place of each function of the later look.
    places: Vec<Option<usize>>,
    /// The timed calls of each function between the looks.
    timed: Vec<Distribution>,
}

impl<'a> Before<'a> {
    fn new(earlier: &'a Look, later: &'a Look) -> Self {
        let old: HashMap<RowId, usize> =
            earlier.ids.iter().enumerate().map(|(place, id)| (*id, place)).collect();
        let places: Vec<_> = later.ids.iter().map(|id| old.get(id).copied()).collect();
        let (old, new) = (&earlier.snapshot.report, &later.snapshot.report);
        let timed = places.iter().enumerate().map(|(place, before)| {
            let before = before.and_then(|before| old.histogram_of(before));
            match (new.histogram_of(place), before) {
                (Some(now), Some(before)) => now.durations.since(&before.durations),
                (now, _) => now.map(|now| now.durations.clone()).unwrap_or_default(),
            }
        });
        let timed = timed.collect();
        Self { old, new, places, timed }
    }

    fn functions(&self, duration: Nanos) -> Vec<FunctionReport> {
        let functions = self.new.functions.iter().zip(&self.places).enumerate();
        let functions = functions.map(|(place, (new, old))| {
            let mut function = match old.map(|old| &self.old.functions[old]) {
                Some(old) => {
                    let row = less(old, new, &self.timed[place], duration);
                    let earlier = old.sampled_over(self.old.duration_ns);
                    let sampled = new.sampled.map(|sampled| sampled.since(&earlier, &row));
                    FunctionReport { sampled, ..row }
                }
                None => new.clone(),
            };
            function.set_stretch(duration);
            function
        });
        functions.collect()
    }

    fn histograms(&self) -> Vec<FunctionHistogram> {
        let called = self.timed.iter().enumerate().filter(|(_, timed)| !timed.counts.is_empty());
        let histograms = called.map(|(function, timed)| FunctionHistogram {
            function,
            durations: timed.clone(),
            over_time: Vec::new(),
        });
        histograms.collect()
    }

    /// Returns the paths with calls, and their ancestors.
    fn paths(&self) -> Vec<PathReport> {
        let old: HashMap<(Option<usize>, usize), usize> = self
            .old
            .paths
            .iter()
            .enumerate()
            .map(|(place, path)| ((path.parent, path.function), place))
            .collect();
        let mut before: Vec<Option<usize>> = Vec::with_capacity(self.new.paths.len());
        let mut paths: Vec<PathReport> = Vec::with_capacity(self.new.paths.len());
        for new in &self.new.paths {
            let parent = match new.parent {
                None => Some(None),
                Some(parent) => before.get(parent).copied().flatten().map(Some),
            };
            let key = parent.zip(self.places.get(new.function).copied().flatten());
            let found = key.and_then(|key| old.get(&key).copied());
            before.push(found);
            paths.push(match found.map(|found| &self.old.paths[found]) {
                Some(old) => new.since(old),
                None => new.sums(),
            });
        }
        let called = paths.iter().map(|path| path.calls > 0).collect();
        keep_paths(&mut paths, called);
        paths
    }
}

/// Subtracts a function. `timed` has the durations of the calls in a stretch of length `duration`.
fn less(
    old: &FunctionReport,
    new: &FunctionReport,
    timed: &Distribution,
    duration: Nanos,
) -> FunctionReport {
    let mut row = FunctionReport {
        fastest: Default::default(),
        center: CenterReport::default(),
        slowest: Default::default(),
        callees_left_out: new.callees_left_out.saturating_sub(old.callees_left_out),
        restored: new.restored.since(old.restored),
        // All of what was before may have been idle.
        idle_ns: new.idle_ns.since(old.self_ns),
        ..new.clone()
    };
    row.probes = new.probes.map(|probes| probes.since(old.probes));
    row.render(new.summary().since(&old.summary()), duration);
    if row.calls == 0 {
        // Otherwise the interval's number is the upper limit: the threads themselves are unknown.
        row.threads = 0;
    }
    if old.timed > 0 {
        row.durations = durations(&row, old, new, timed);
        if old.summary.is_none() || new.summary.is_none() {
            // An earlier version of the daemon sends only rounded numbers, whose difference may be
            // far off. If all calls are timed, their mean comes from exact totals.
            (row.durations.sd_ns, row.durations.cv) = (None, None);
            if new.untimed > 0 {
                row.durations.mean_ns = None;
            }
        }
    }
    row
}

/// Returns extremes and percentiles from the histogram, and the rest from `row`.
fn durations(
    row: &FunctionReport,
    old: &FunctionReport,
    new: &FunctionReport,
    timed: &Distribution,
) -> DurationReport {
    let (before, so_far) = (&old.durations, &new.durations);
    let within = |value: Nanos| {
        let (least, most) = (so_far.min_ns.unwrap_or_default(), so_far.max_ns);
        value.clamp(least, most.unwrap_or(Nanos::MAX).max(least))
    };
    let shortest = timed.middles().next().map(|(_, middle)| within(middle));
    let longest = timed.middles().next_back().map(|(_, middle)| within(middle));
    if row.timed == 0 || shortest.is_none() {
        return DurationReport::default();
    }
    // A new extreme of the interval is known exactly.
    let min_ns = if so_far.min_ns < before.min_ns { so_far.min_ns } else { shortest };
    let max_ns = if so_far.max_ns > before.max_ns { so_far.max_ns } else { longest };
    let mut durations = DurationReport { min_ns, max_ns, ..row.durations };
    durations.set_percentiles(|permille| {
        let value = timed.percentile(permille)?;
        Some(value.max(min_ns?).min(max_ns?))
    });
    durations
}

/// Returns the threads with calls in the stretch.
pub(crate) fn threads(old: &Report, new: &Report) -> Vec<ThreadReport> {
    // An id may be reused by another thread.
    let key = |thread: &ThreadReport| (thread.pid, thread.tid, thread.first_ns);
    let before: HashMap<_, _> = old.threads.iter().map(|thread| (key(thread), thread)).collect();
    // If a thread has only a call that was open when the interval began, its first event is that of
    // this call. Its later first event must not make it another thread.
    let in_a_call = old.threads.iter().filter(|thread| thread.first_ns < old.start_ns);
    let in_a_call: HashMap<(Pid, Tid), _> =
        in_a_call.map(|thread| ((thread.pid, thread.tid), thread)).collect();
    let threads = new.threads.iter().filter_map(|new| {
        let old = before.get(&key(new)).or_else(|| in_a_call.get(&(new.pid, new.tid)));
        let Some(old) = old else { return Some(new.clone()) };
        new.since(old)
    });
    threads.collect()
}
