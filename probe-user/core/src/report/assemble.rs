//! Makes a [`Report`] from the facts of a stretch of tracing, from a session or a recording.

use crate::calls::FunctionCounts;
use crate::calls::by_function::ByFunction;
use crate::calls::paths::{Node, ROOT};
use crate::function::FunctionInfo;
use crate::report::ReportMeta;
use crate::report::ctrack::{CtrackReport, CtrackRow};
use crate::report::percentiles::Percentiles;
use crate::report::{
    Extras, FunctionHistogram, FunctionReport, HistogramsReport, LossReport, PathLatencies,
    PathReport, PointsReport, Report, SCHEMA, SplitReport, ThreadReport,
};
use crate::report::{cold, probes};
use crate::stats::Summary;
use crate::stats::heat::Heat;
use crate::stats::histogram::Histogram;
use crate::stats::rank::Center;
use crate::stats::tally::Tally;
use crate::stats::unions::{FunctionUnions, Unions};
use crate::units::{FuncId, Nanos, saturating_sum};

/// Ends the note on threads that the report does not list.
pub const MORE_THREADS: &str = " more threads are not listed";

/// Ranks of all functions and path nodes.
pub(crate) struct Ranks {
    pub(crate) functions: Vec<(Percentiles, Center)>,
    pub(crate) nodes: Vec<Percentiles>,
}

/// Calls that have not ended.
pub(crate) struct Open {
    /// The number of calls by path node.
    pub(crate) calls: Vec<u64>,
    /// By function: the number of threads that only have open calls of it.
    pub(crate) threads: Vec<u64>,
}

/// All inputs of a report.
pub(crate) struct Facts<'a> {
    pub(crate) functions: &'a [FunctionInfo],
    pub(crate) nodes: &'a [Node],
    pub(crate) by_function: &'a ByFunction,
    /// The sums by path node.
    pub(crate) tallies: &'a [Tally],
    /// The counts by function.
    pub(crate) counts: &'a [FunctionCounts],
    pub(crate) open: Open,
    pub(crate) ranks: Ranks,
    pub(crate) unions: Unions,
    /// The histograms by path node, if requested.
    pub(crate) histograms: Option<&'a [Histogram]>,
    pub(crate) heat: Option<Heat>,
    /// The rows of threads, and the number of rows left out.
    pub(crate) threads: (Vec<ThreadReport>, u64),
    pub(crate) start: Nanos,
    pub(crate) end: Nanos,
    pub(crate) approximate: bool,
    /// True if calls were counted without an event of each.
    pub(crate) counted: bool,
    pub(crate) filtered: u64,
    /// The shortest calls that count.
    pub(crate) min_duration: Nanos,
    /// True if calls of some functions are left out, with the waits in them.
    pub(crate) some_functions: bool,
    /// Lost events and errors; calls are counted here.
    pub(crate) loss: LossReport,
}

/// The number of buckets per octave in histograms of functions, as a power of two.
const SUB_BITS: u32 = 3;

impl Facts<'_> {
    pub(crate) fn report(mut self, meta: ReportMeta) -> Report {
        let histograms = meta.extras.histograms.then(|| self.histograms());
        let duration = self.end.since(self.start);
        let ctrack = (meta.extras.ctrack && !self.approximate).then(|| self.ctrack(duration));
        let waits = self.functions.iter().any(|function| function.wait.is_some());
        let mut functions = (0..self.functions.len())
            .map(|index| {
                let nodes = self.by_function.nodes_of(FuncId(index as u32));
                let unions = self.unions.functions.get(index).copied().unwrap_or_default();
                let summary = self.summary(index, nodes, unions, meta.extras.latencies);
                let mut report = FunctionReport::new(&self.functions[index]);
                report.threads =
                    self.counts[index].threads.saturating_add(self.open.threads[index]);
                if waits
                    && self.functions[index].by_order.is_none()
                    && !self.functions[index].is_async
                {
                    report.split = SplitReport::of(&summary.tally);
                }
                report.counted = self.counted;
                report.callees_left_out = self.counts[index].callees_left_out;
                report.restored = self.counts[index].restored;
                report.render(summary, duration);
                // A wait is none anyway, and a lane is no thread of the program.
                if report.wait.is_none() && !report.is_async {
                    report.idle_ns = self.counts[index].idle(report.self_ns);
                }
                self.add_ranks(&mut report, self.ranks.functions[index]);
                add_center_unions(&mut report, unions, duration);
                report
            })
            .collect::<Vec<_>>();
        let (paths, others) = self.paths(meta.extras);
        let odd_waits = self.odd_waits();
        let (threads, more_threads) = self.threads;
        let doubts = cold::doubts(&functions, &paths, &threads, duration);
        let times = meta.target.processor.unwrap_or_default();
        probes::fill(&mut functions, &paths, &doubts, times);
        let mut notes = meta.notes;
        notes.extend(odd_waits.into_iter().map(str::to_owned));
        if more_threads > 0 {
            notes.push(format!("{more_threads}{MORE_THREADS}"));
        }
        let tracked = (!self.counted).then_some(Nanos(self.unions.tracked));
        Report {
            schema: SCHEMA,
            target: meta.target,
            part: None,
            start_ns: self.start,
            end_ns: self.end,
            duration_ns: duration,
            tracked_ns: tracked,
            tracked_percent: tracked.map(|tracked| tracked.percent_of(duration)),
            approximate: self.approximate,
            counted: self.counted,
            of_fleet: false,
            center_cut_percent: meta.center_cut,
            filtered_calls: self.filtered,
            loss: LossReport {
                // Points of markers have no end that could be seen.
                calls_untimed: saturating_sum(
                    functions.iter().filter(|f| f.point.is_none()).map(|f| f.untimed),
                ),
                points: saturating_sum(
                    functions
                        .iter()
                        .filter(|f| f.point.is_none() && f.is_point())
                        .map(|f| f.untimed),
                ),
                calls_open: saturating_sum(functions.iter().map(|f| f.open)),
                calls_headless: saturating_sum(functions.iter().map(|f| f.headless)),
                ..self.loss
            },
            functions,
            paths,
            paths_other_calls: others.calls,
            paths_other_open: others.open,
            threads,
            notes,
            histograms,
            slowest_calls: None,
            slow_calls: Vec::new(),
            points: PointsReport::default(),
            timeline: None,
            frames: None,
            values: Vec::new(),
            wakers: None,
            plots: Vec::new(),
            locks: None,
            trend: None,
            ctrack,
        }
    }

    /// Says which waits count although the calls around them may be left out.
    fn odd_waits(&self) -> Vec<&'static str> {
        let calls = |at: usize| self.tallies[at].ended().saturating_add(self.open.calls[at]);
        let is_wait = |at: usize| {
            let function = self.functions.get(self.nodes[at].func.index());
            function.is_some_and(|function| function.wait.is_some()) && calls(at) > 0
        };
        let waits = || (0..self.nodes.len()).filter(|&at| is_wait(at));
        let of_short_calls = self.min_duration > Nanos::ZERO && waits().next().is_some();
        let beyond = self.some_functions && waits().any(|at| self.nodes[at].other);
        [
            (
                of_short_calls,
                "--min-duration leaves out calls, but no waits: the rows of waits also have those in \
                 calls that are left out",
            ),
            (
                beyond,
                "waits on paths beyond the bound on paths may be in calls that are left out",
            ),
        ]
        .into_iter()
        .filter_map(|(is_so, note)| is_so.then_some(note))
        .collect()
    }

    fn histograms(&mut self) -> HistogramsReport {
        let heat = self.heat.take();
        let slice_edges_ns = heat.as_ref().map(Heat::edges);
        let mut over_time = heat.map(Heat::into_rows).unwrap_or_default();
        let functions = (0..self.functions.len()).map(|function| FunctionHistogram {
            function,
            durations: self.histogram(function).distribution(SUB_BITS),
            over_time: over_time.remove(&function).unwrap_or_default(),
        });
        let functions = functions.filter(|f| !f.durations.counts.is_empty()).collect();
        HistogramsReport { slice_edges_ns, functions }
    }

    fn ctrack(&self, duration: Nanos) -> CtrackReport {
        let events = self.unions.events.as_ref();
        let rows = (0..self.functions.len()).filter_map(|index| {
            let tally = sum(self.tallies, self.by_function.nodes_of(FuncId(index as u32)));
            let unions = self.unions.functions.get(index).copied().unwrap_or_default();
            let of_events = events.and_then(|all| all.functions.get(index)).copied();
            let unions = (unions, of_events.unwrap_or_default());
            let (threads, ranked) = (self.counts[index].threads, &self.ranks.functions[index].1);
            let row = || CtrackRow::new(index, threads, &tally, ranked, unions, duration);
            (tally.timed > 0).then(row)
        });
        let tracked = events.map_or(0, |all| all.tracked);
        CtrackReport {
            tracked_ns: Nanos(tracked),
            tracked_percent: Nanos(tracked).percent_of(duration),
            functions: rows.collect(),
        }
    }

    fn histogram(&self, function: usize) -> Histogram {
        let of_nodes = self.histograms.unwrap_or_default();
        let mut histogram = Histogram::default();
        let nodes = self.by_function.nodes_of(FuncId(function as u32));
        nodes.iter().for_each(|&node| histogram.merge(&of_nodes[node as usize]));
        histogram
    }

    fn summary(
        &self,
        index: usize,
        nodes: &[u32],
        unions: FunctionUnions,
        with_histogram: bool,
    ) -> Summary {
        let tally = sum(self.tallies, nodes);
        Summary {
            open: saturating_sum(nodes.iter().map(|&node| self.open.calls[node as usize])),
            headless: self.counts[index].headless,
            active_ns: unions.active,
            exclusive_ns: unions.exclusive,
            histogram: (with_histogram && tally.timed > 0).then(|| self.histogram(index)),
            tally,
        }
    }

    fn add_ranks(&self, report: &mut FunctionReport, (percentiles, ranked): (Percentiles, Center)) {
        report.durations.set_percentiles(|permille| percentiles.at(permille));
        report.fastest = ranked.fastest;
        report.center = ranked.center;
        report.slowest = ranked.slowest;
    }

    /// Returns all paths with calls on them or below, and the calls on paths beyond the bound.
    fn paths(&self, extras: Extras) -> (Vec<PathReport>, Others) {
        let (nodes, percentiles) = (self.nodes, &self.ranks.nodes);
        let histograms = self.histograms.filter(|_| extras.path_histograms);
        let latencies = self.histograms.filter(|_| extras.path_latencies);
        let calls = |node: usize| self.tallies[node].ended().saturating_add(self.open.calls[node]);
        let mut wanted = (0..nodes.len()).map(|node| calls(node) > 0).collect::<Vec<_>>();
        for node in (1..nodes.len()).rev().filter(|&node| !nodes[node].other) {
            wanted[nodes[node].parent as usize] |= wanted[node];
        }
        let (mut paths, mut places, mut others) =
            (Vec::<PathReport>::new(), vec![None; nodes.len()], Others::default());
        for node in (ROOT as usize + 1..nodes.len()).filter(|&node| wanted[node]) {
            if nodes[node].other {
                others.calls = others.calls.saturating_add(calls(node));
                others.open = others.open.saturating_add(self.open.calls[node]);
                continue;
            }
            let parent: Option<usize> = places[nodes[node].parent as usize];
            let function = nodes[node].func.index();
            let mut path = parent.map_or_else(Vec::new, |parent| paths[parent].path.clone());
            path.push(self.functions[function].name.clone());
            let (tally, percentiles) = (&self.tallies[node], percentiles[node]);
            places[node] = Some(paths.len());
            paths.push(PathReport {
                path,
                parent,
                function,
                calls: calls(node),
                open: self.open.calls[node],
                total_ns: Nanos(tally.total_ns()),
                self_ns: Nanos(tally.self_ns),
                p50_ns: percentiles.at(500),
                p90_ns: percentiles.at(900),
                p99_ns: percentiles.at(990),
                max_ns: tally.max().map(Nanos),
                histogram: histograms.map(|histograms| histograms[node].distribution(0)),
                latencies: latencies.map(|histograms| PathLatencies {
                    histogram: histograms[node].clone(),
                    min_ns: tally.min().map(Nanos),
                    max_ns: tally.max().map(Nanos),
                    untimed: tally.untimed,
                }),
            });
        }
        (paths, others)
    }
}

/// Calls on paths beyond the bound, and those of them that have not ended.
#[derive(Default)]
struct Others {
    calls: u64,
    open: u64,
}

/// Returns the sum over some nodes.
pub(crate) fn sum(tallies: &[Tally], nodes: &[u32]) -> Tally {
    Tally::sum(nodes.iter().map(|&node| &tallies[node as usize]))
}

fn add_center_unions(report: &mut FunctionReport, unions: FunctionUnions, duration: Nanos) {
    if report.center.max_ns.is_some() {
        report.center.active_ns = Some(Nanos(unions.center_active));
        report.center.active_exclusive_ns = Some(Nanos(unions.center_exclusive));
        report.center.active_exclusive_percent =
            Some(Nanos(unions.center_exclusive).percent_of(duration));
    }
}
