//! The sums since the start, or since freezing. Intervals are added up into a report, so that all
//! views can show it.
//!
//! Sums, unions, extremes, means and spreads are exact. Percentiles come from the added histograms,
//! with buckets of an eighth of an octave, and are marked as approximate. These are the histograms of
//! reports ([`ctrace_core::report::Distribution`]), because a daemon sends no others.

use crate::session::budget::note::renew_note;
use crate::top::data::{
    catalogue::RowId,
    figures::{Figures, FromHistograms},
};
use crate::ui::notes::marks::Marks;
use ctrace_core::{
    report::{
        DurationReport, FunctionHistogram, FunctionReport, HistogramsReport, PathReport,
        ProbeTimes, ThreadReport, render::rows::is_never_called,
    },
    stats::Summary,
    units::{Nanos, Pid, Tid},
};
use std::collections::HashMap;

/// The limit of threads: a target may create millions over time.
const MOST_THREADS: usize = 4_096;

#[derive(Clone, Debug)]
pub(crate) struct Sums {
    pub(crate) figures: Figures,
    /// The places of the report's paths, by parent and function.
    paths: HashMap<(Option<usize>, RowId), usize>,
    threads: HashMap<(Pid, Tid), usize>,
}

impl Sums {
    /// Starts with a first interval.
    pub(crate) fn new(first: &Figures) -> Self {
        // Without its sums, which are added below.
        let mut report = first.report.sums_since(&first.report);
        report.start_ns = first.report.start_ns;
        report.histograms = Some(HistogramsReport::default());
        let figures = Figures {
            report,
            ids: Vec::new(),
            spent: Vec::new(),
            cost: Nanos::ZERO,
            cpu: Some(Nanos::ZERO),
            from_histograms: FromHistograms::Percentiles,
            is_net: false,
            marks: Marks::default(),
        };
        let mut sums = Self { figures, paths: HashMap::new(), threads: HashMap::new() };
        sums.add(first);
        sums
    }

    pub(crate) fn add(&mut self, interval: &Figures) {
        let new = &interval.report;
        let report = &mut self.figures.report;
        report.add_sums(new);
        report.approximate = true;
        // Figures from a daemon have such a note already.
        if interval.from_histograms == FromHistograms::Nothing {
            report.notes.extend(FromHistograms::Percentiles.note());
        }
        self.figures.from_histograms = self.figures.from_histograms.max(interval.from_histograms);
        self.figures.is_net |= interval.is_net;
        self.figures.cpu = match (self.figures.cpu, interval.cpu) {
            (Some(sum), Some(cpu)) => Some(sum.saturating_add(cpu)),
            _ => None,
        };
        self.figures.cost = self.figures.cost.saturating_add(interval.cost);
        self.add_functions(interval);
        renew_note(&mut self.figures.report);
        self.add_histograms(interval);
        self.add_paths(interval);
        self.add_threads(&new.threads);
        self.figures.marks = Marks::of(&self.figures.report);
    }

    fn add_functions(&mut self, interval: &Figures) {
        let Figures { report, ids, spent, .. } = &mut self.figures;
        let duration = report.duration_ns;
        // In the sums, ids are places.
        for (place, id) in interval.ids.iter().enumerate() {
            let new = &interval.report.functions[place];
            while report.functions.len() <= id.0 {
                ids.push(RowId(ids.len()));
                spent.push(Nanos::ZERO);
                report.functions.push(emptied(new));
            }
            // The row may be a placeholder for a function that had no calls yet.
            let sum = &mut report.functions[id.0];
            if is_never_called(sum) {
                *sum = FunctionReport { sampled: sum.sampled, ..emptied(new) };
            }
            sum.add(new, duration);
            let cost = interval.spent.get(place).copied().unwrap_or_default();
            spent[id.0] = spent[id.0].saturating_add(cost);
        }
        for function in &mut report.functions {
            function.set_stretch(duration);
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
            let DurationReport { min_ns, max_ns, .. } = *of;
            of.set_percentiles(|permille| {
                let value = durations.percentile(permille)?;
                Some(value.clamp(min_ns?, max_ns?))
            });
        }
    }

    fn add_paths(&mut self, interval: &Figures) {
        let report = &mut self.figures.report;
        // Open calls are those of the last interval.
        report.paths.iter_mut().for_each(PathReport::close);
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
                    histogram: None,
                    // Percentiles of one interval do not hold for the sum.
                    ..new.sums()
                });
                report.paths.len() - 1
            });
            places.push(place);
            report.paths[place].add(new);
        }
    }

    fn add_threads(&mut self, threads: &[ThreadReport]) {
        let rows = &mut self.figures.report.threads;
        // Open calls are those of the last interval.
        rows.iter_mut().for_each(ThreadReport::close);
        for new in threads {
            let place = *self.threads.entry((new.pid, new.tid)).or_insert_with(|| {
                rows.push(ThreadReport { calls: 0, open: 0, ..new.clone() });
                rows.len() - 1
            });
            rows[place].add(new);
        }
        let before = rows.len();
        // A call that was open may turn out to be too short to count.
        rows.retain(|thread| thread.calls > 0);
        if rows.len() > MOST_THREADS {
            rows.sort_by_key(|thread| std::cmp::Reverse(thread.last_ns));
            rows.truncate(MOST_THREADS / 2);
        }
        if rows.len() < before {
            let places = rows.iter().enumerate();
            self.threads = places.map(|(place, row)| ((row.pid, row.tid), place)).collect();
        }
    }
}

/// Returns the function without calls.
fn emptied(function: &FunctionReport) -> FunctionReport {
    let mut row = FunctionReport {
        threads: 0,
        durations: DurationReport::default(),
        fastest: Default::default(),
        center: Default::default(),
        slowest: Default::default(),
        sampled: None,
        callees_left_out: 0,
        restored: Default::default(),
        idle_ns: Nanos::ZERO,
        probes: function.probes.map(|probes| ProbeTimes::of(probes.cost)),
        ..function.clone()
    };
    row.render(Summary::default(), Nanos::ZERO);
    row
}
