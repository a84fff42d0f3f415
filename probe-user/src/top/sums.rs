//! The numbers since the start (or since they were frozen): intervals summed up into a report, so
//! that everything that shows a report shows this one.
//!
//! Sums, unions, extremes, means and spreads come out exactly. Percentiles come from the sum of the
//! histograms, whose buckets are an eighth of an octave wide: they are marked as approximate.

use super::{
    catalogue::RowId,
    figures::{Figures, FromHistograms},
};
use ctrace_core::{
    report::{
        DurationReport, FunctionHistogram, FunctionReport, HistogramsReport, LossReport,
        PathReport, SampledReport, ThreadReport,
        render::rows::{is_never_called, percent},
    },
    stats::Summary,
    units::{Nanos, Pid, Tid},
};
use std::collections::HashMap;

/// Threads that are kept: a target may have millions, one after the other.
const MOST_THREADS: usize = 4_096;

#[derive(Clone, Debug)]
pub(super) struct Sums {
    pub(super) figures: Figures,
    /// Of the report's paths, by parent and function.
    paths: HashMap<(Option<usize>, RowId), usize>,
    threads: HashMap<(Pid, Tid), usize>,
}

impl Sums {
    /// Of a first interval.
    pub(super) fn new(first: &Figures) -> Self {
        let mut report = first.report.clone();
        report.functions.clear();
        report.paths.clear();
        report.threads.clear();
        report.histograms = Some(HistogramsReport::default());
        (report.tracked_ns, report.filtered_calls) = (Nanos::ZERO, 0);
        (report.paths_other_calls, report.loss) = (0, LossReport::default());
        let figures = Figures {
            report,
            ids: Vec::new(),
            spent: Vec::new(),
            cost: Nanos::ZERO,
            cpu: Some(Nanos::ZERO),
            from_histograms: FromHistograms::Percentiles,
        };
        let mut sums = Self { figures, paths: HashMap::new(), threads: HashMap::new() };
        sums.add(first);
        sums
    }

    pub(super) fn add(&mut self, interval: &Figures) {
        let new = &interval.report;
        let report = &mut self.figures.report;
        report.end_ns = new.end_ns;
        report.duration_ns = new.end_ns.since(report.start_ns);
        report.tracked_ns = report.tracked_ns.saturating_add(new.tracked_ns);
        report.tracked_percent = percent(report.tracked_ns, report.duration_ns);
        report.approximate = true;
        report.filtered_calls = report.filtered_calls.saturating_add(new.filtered_calls);
        report.paths_other_calls = report.paths_other_calls.saturating_add(new.paths_other_calls);
        report.loss.add(&new.loss);
        report.loss.calls_open = new.loss.calls_open;
        report.target.clone_from(&new.target);
        report.notes.clone_from(&new.notes);
        // Those of looks at a daemon say so already.
        if interval.from_histograms == FromHistograms::Nothing {
            report.notes.extend(FromHistograms::Percentiles.note());
        }
        self.figures.from_histograms = self.figures.from_histograms.max(interval.from_histograms);
        self.figures.cpu = match (self.figures.cpu, interval.cpu) {
            (Some(sum), Some(cpu)) => Some(sum.saturating_add(cpu)),
            _ => None,
        };
        self.figures.cost = self.figures.cost.saturating_add(interval.cost);
        self.add_functions(interval);
        self.add_histograms(interval);
        self.add_paths(interval);
        self.add_threads(&new.threads);
    }

    fn add_functions(&mut self, interval: &Figures) {
        let Figures { report, ids, spent, .. } = &mut self.figures;
        let duration = report.duration_ns;
        // Ids are places here.
        for (place, id) in interval.ids.iter().enumerate() {
            let new = &interval.report.functions[place];
            while report.functions.len() <= id.0 {
                ids.push(RowId(ids.len()));
                spent.push(Nanos::ZERO);
                report.functions.push(emptied(new));
            }
            // It may stand in for one that had not come yet.
            let sum = &mut report.functions[id.0];
            if is_never_called(sum) {
                *sum = FunctionReport { sampled: sum.sampled, ..emptied(new) };
            }
            sum.sampled = sampled(sum, new, duration, interval.report.duration_ns);
            sum.add(new, duration);
            let cost = interval.spent.get(place).copied().unwrap_or_default();
            spent[id.0] = spent[id.0].saturating_add(cost);
        }
        for function in &mut report.functions {
            function.active_exclusive_percent = percent(function.active_exclusive_ns, duration);
        }
    }

    fn add_histograms(&mut self, interval: &Figures) {
        let report = &mut self.figures.report;
        let new = interval.report.histograms.iter().flat_map(|all| &all.functions);
        let all = &mut report.histograms.get_or_insert_default().functions;
        for histogram in new {
            let Some(RowId(function)) = interval.ids.get(histogram.function).copied() else {
                continue;
            };
            let place = match all.binary_search_by_key(&function, |h| h.function) {
                Ok(place) => place,
                Err(place) => {
                    let durations = Default::default();
                    let empty = FunctionHistogram { function, durations, over_time: Vec::new() };
                    all.insert(place, empty);
                    place
                }
            };
            let durations = &mut all[place].durations;
            durations.add(&histogram.durations);
            let of = &mut report.functions[function].durations;
            let at = |permille| {
                let value = durations.percentile(permille)?;
                Some(value.clamp(of.min_ns?, of.max_ns?))
            };
            (of.p50_ns, of.p90_ns, of.p95_ns) = (at(500), at(900), at(950));
            (of.p99_ns, of.p999_ns) = (at(990), at(999));
        }
    }

    fn add_paths(&mut self, interval: &Figures) {
        let report = &mut self.figures.report;
        // Open calls are those of the last interval.
        for path in &mut report.paths {
            path.calls = path.calls.saturating_sub(path.open);
            path.open = 0;
        }
        let mut places = Vec::with_capacity(interval.report.paths.len());
        for new in &interval.report.paths {
            let parent = new.parent.and_then(|parent| places.get(parent).copied());
            let id = interval.ids[new.function];
            let place = *self.paths.entry((parent, id)).or_insert_with(|| {
                report.paths.push(PathReport {
                    parent,
                    function: id.0,
                    calls: 0,
                    open: 0,
                    total_ns: Nanos::ZERO,
                    self_ns: Nanos::ZERO,
                    max_ns: None,
                    histogram: None,
                    // Of one interval they say nothing about the whole.
                    p50_ns: None,
                    p90_ns: None,
                    p99_ns: None,
                    ..new.clone()
                });
                report.paths.len() - 1
            });
            places.push(place);
            let sum = &mut report.paths[place];
            sum.calls = sum.calls.saturating_add(new.calls);
            sum.open = new.open;
            sum.total_ns = sum.total_ns.saturating_add(new.total_ns);
            sum.self_ns = sum.self_ns.saturating_add(new.self_ns);
            sum.max_ns = sum.max_ns.max(new.max_ns);
        }
    }

    fn add_threads(&mut self, threads: &[ThreadReport]) {
        let rows = &mut self.figures.report.threads;
        for new in threads {
            let place = *self.threads.entry((new.pid, new.tid)).or_insert_with(|| {
                rows.push(ThreadReport { calls: 0, ..new.clone() });
                rows.len() - 1
            });
            let sum = &mut rows[place];
            sum.calls = sum.calls.saturating_add(new.calls);
            sum.last_ns = sum.last_ns.max(new.last_ns);
            sum.name = new.name.clone();
        }
        if rows.len() > MOST_THREADS {
            rows.sort_by_key(|thread| std::cmp::Reverse(thread.last_ns));
            rows.truncate(MOST_THREADS / 2);
            let places = rows.iter().enumerate();
            self.threads = places.map(|(place, row)| ((row.pid, row.tid), place)).collect();
        }
    }
}

/// The function with no calls.
fn emptied(function: &FunctionReport) -> FunctionReport {
    let mut row = FunctionReport {
        threads: 0,
        durations: DurationReport::default(),
        fastest: Default::default(),
        center: Default::default(),
        slowest: Default::default(),
        sampled: None,
        ..function.clone()
    };
    row.render(Summary::default(), Nanos::ZERO);
    row
}

/// Where it was armed for a part of the time in either: the estimates add up, their errors as those
/// of independent ones do. `whole` is the time of both, `last` that of the new interval.
fn sampled(
    sum: &FunctionReport,
    new: &FunctionReport,
    whole: Nanos,
    last: Nanos,
) -> Option<SampledReport> {
    if sum.sampled.is_none() && new.sampled.is_none() {
        return None;
    }
    let before = whole.since(last);
    let all = |of: &FunctionReport, time: Nanos| {
        of.sampled.unwrap_or(SampledReport {
            armed_ns: time,
            armed_percent: 100.0,
            windows: 0,
            calls: Some(of.calls),
            calls_error: Some(0),
            total_ns: Some(of.total_ns),
            active_ns: Some(of.active_ns),
        })
    };
    let (a, b) = (all(sum, before), all(new, last));
    let both = |a: Option<Nanos>, b: Option<Nanos>| Some(a?.saturating_add(b?));
    let armed_ns = a.armed_ns.saturating_add(b.armed_ns);
    Some(SampledReport {
        armed_ns,
        armed_percent: percent(armed_ns, whole),
        windows: a.windows.saturating_add(b.windows),
        calls: a.calls.zip(b.calls).map(|(a, b)| a.saturating_add(b)),
        calls_error: a
            .calls_error
            .zip(b.calls_error)
            .map(|(a, b)| (a as f64).hypot(b as f64) as u64),
        total_ns: both(a.total_ns, b.total_ns),
        active_ns: both(a.active_ns, b.active_ns),
    })
}
