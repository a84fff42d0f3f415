//! The engine's state to a [`Report`]. Nothing is changed: asking does not disturb.

use crate::by_function::ByFunction;
use crate::engine::ReportMeta;
use crate::grouped::Grouped;
use crate::histogram::{Histogram, HistogramCounter};
use crate::ledger::Ledger;
use crate::paths::ROOT;
use crate::rank::{Center, Durations, Keep, PERMILLE, Wanted, nearest_rank};
use crate::report::{
    CenterReport, DurationReport, FunctionReport, LossReport, PathReport, Report, SCHEMA,
};
use crate::selection::Selection;
use crate::tally::Tally;
use crate::tracker::Tracker;
use crate::unions::{FunctionUnions, Unions, Window, unions};
use crate::units::{FuncId, Nanos};

type Percentiles = [Option<Nanos>; PERMILLE.len()];

/// Ranks of all functions and path nodes.
struct Ranks {
    functions: Vec<(Percentiles, Center)>,
    nodes: Vec<Percentiles>,
}

/// Calls that have not ended.
struct Open {
    /// By path node.
    calls: Vec<u64>,
    /// By function: threads that only have open calls of it.
    threads: Vec<u64>,
}

impl Tracker {
    pub(crate) fn report(&self, end: Nanos, lost_events: u64, meta: ReportMeta) -> Report {
        let by_function = ByFunction::new(self.ledger.paths.nodes());
        let ranks = if self.period.folded {
            self.approximate_ranks(&by_function)
        } else {
            self.exact_ranks(&by_function, meta.center_cut)
        };
        let keep = ranks.functions.iter().map(|(_, center)| center.keep).collect::<Vec<_>>();
        let unions = self.unions(end, &keep);
        let open = self.open();
        let start = Nanos(self.period.start);
        let duration = end.since(start);
        let functions = (0..self.functions.len())
            .map(|index| {
                let nodes = by_function.nodes_of(FuncId(index as u32));
                let mut report = self.function(index, nodes, &open);
                self.add_ranks(&mut report, ranks.functions[index]);
                self.add_unions(&mut report, unions.functions[index], duration);
                report
            })
            .collect::<Vec<_>>();
        let (paths, paths_other_calls) = self.paths(&ranks.nodes, &open);
        let (threads, more_threads) = self.threads.rows();
        let mut notes = meta.notes;
        if more_threads > 0 {
            notes.push(format!("{more_threads} more threads that ended are not listed"));
        }
        Report {
            schema: SCHEMA,
            target: meta.target,
            start_ns: start,
            end_ns: end,
            duration_ns: duration,
            tracked_ns: Nanos(unions.tracked),
            tracked_percent: percent(unions.tracked, duration),
            approximate: self.period.folded,
            center_cut_percent: meta.center_cut,
            filtered_calls: self.ledger.filtered,
            loss: LossReport {
                events: lost_events.saturating_sub(self.period.lost_before),
                late: self.period.late,
                calls_untimed: functions.iter().map(|f| f.untimed).sum(),
                calls_open: functions.iter().map(|f| f.open).sum(),
                calls_headless: functions.iter().map(|f| f.headless).sum(),
                decode_errors: self.period.decode_errors,
            },
            functions,
            paths,
            paths_other_calls,
            threads,
            notes,
        }
    }

    fn exact_ranks(&self, by_function: &ByFunction, center_cut: f64) -> Ranks {
        let Ledger { spool, tallies, .. } = &self.ledger;
        let nodes_of = |func: usize| by_function.nodes_of(FuncId(func as u32));
        let functions = || (0..self.functions.len()).map(nodes_of);
        let mut selection = Selection::new(spool, functions(), tallies);
        for nodes in functions() {
            selection.want(nodes, &Wanted::new(self.sum(nodes).timed, center_cut).ranges());
            for node in path_nodes(nodes) {
                let timed = self.sum(node).timed;
                selection.want(node, &Wanted::percentiles(timed).map(|rank| rank..rank + 1));
            }
        }
        let selected = spool.timed().filter(|call| selection.selects(call));
        let mut grouped = Grouped::new(selected, by_function, &selection.selected());
        let mut by_node = vec![Percentiles::default(); tallies.len()];
        let functions = functions().map(|nodes| {
            for node in path_nodes(nodes) {
                let mut durations = Durations::new(grouped.group(node), selection.gaps(node));
                by_node[node[0] as usize] = durations.percentiles();
            }
            let mut durations = Durations::new(grouped.group(nodes), selection.gaps(nodes));
            let ranks = durations.rank(center_cut, self.sum(nodes).timed_ns);
            if let [only] = *nodes {
                by_node[only as usize] = ranks.0;
            }
            ranks
        });
        let functions = functions.collect();
        Ranks { functions, nodes: by_node }
    }

    fn approximate_ranks(&self, by_function: &ByFunction) -> Ranks {
        let Ledger { spool, tallies, paths, .. } = &self.ledger;
        let mut by_node = self.period.histograms.clone();
        by_node.resize(tallies.len(), Histogram::default());
        let durations = spool.timed().map(|call| (call.node as usize, call.duration));
        HistogramCounter::default().count(&mut by_node, durations);
        let mut histograms = vec![Histogram::default(); self.functions.len()];
        let nodes = paths.nodes().iter().zip(tallies).zip(&by_node);
        let nodes = nodes.map(|((node, tally), histogram)| {
            if let Some(function) = histograms.get_mut(node.func.index()) {
                function.merge(histogram);
            }
            percentiles(histogram, tally)
        });
        let nodes = nodes.collect();
        let functions = histograms.iter().enumerate().map(|(index, histogram)| {
            let of_function = by_function.nodes_of(FuncId(index as u32));
            (percentiles(histogram, &self.sum(of_function)), Center::default())
        });
        Ranks { functions: functions.collect(), nodes }
    }

    /// The period's unions, those of folded windows included.
    fn unions(&self, end: Nanos, keep: &[Keep]) -> Unions {
        let window = Window { start: self.period.folded_to, end: end.0 };
        let mut all = unions(window, self.thread_calls(), self.ledger.paths.nodes(), keep);
        all.add(&self.period.unions);
        all
    }

    fn open(&self) -> Open {
        let mut open = Open {
            calls: vec![0; self.ledger.tallies.len()],
            threads: vec![0; self.functions.len()],
        };
        for thread in self.threads.iter() {
            let mut functions = Vec::new();
            for frame in thread.stacks.open() {
                open.calls[frame.node as usize] += 1;
                functions.push(frame.func);
            }
            functions.sort_unstable();
            functions.dedup();
            for func in functions {
                let counted = thread.stacks.account.has_called(func);
                open.threads[func.index()] += u64::from(!counted);
            }
        }
        open
    }

    fn sum(&self, nodes: &[u32]) -> Tally {
        Tally::sum(nodes.iter().map(|&node| &self.ledger.tallies[node as usize]))
    }

    fn function(&self, index: usize, nodes: &[u32], open: &Open) -> FunctionReport {
        let (info, counts) = (&self.functions[index], self.ledger.functions[index]);
        let tally = self.sum(nodes);
        let open_calls: u64 = nodes.iter().map(|&node| open.calls[node as usize]).sum();
        let spread = tally.spread();
        FunctionReport {
            name: info.name.clone(),
            aliases: info.aliases.clone(),
            object: info.object.clone(),
            file: info.file.clone(),
            line: info.line,
            kind: info.kind,
            group: info.group.clone(),
            calls: tally.timed + tally.untimed + open_calls,
            timed: tally.timed,
            untimed: tally.untimed,
            open: open_calls,
            headless: counts.headless,
            threads: counts.threads + open.threads[index],
            total_ns: Nanos(tally.total_ns()),
            self_ns: Nanos(tally.self_ns),
            active_ns: Nanos::ZERO,
            active_exclusive_ns: Nanos::ZERO,
            active_exclusive_percent: 0.0,
            durations: DurationReport {
                min_ns: tally.min().map(Nanos),
                mean_ns: tally.mean().map(Nanos),
                max_ns: tally.max().map(Nanos),
                sd_ns: spread.map(|(sd, _)| Nanos(sd)),
                cv: spread.and_then(|(_, cv)| cv),
                ..DurationReport::default()
            },
            fastest: Default::default(),
            center: CenterReport::default(),
            slowest: Default::default(),
        }
    }

    fn add_ranks(&self, report: &mut FunctionReport, (percentiles, ranked): (Percentiles, Center)) {
        let [p50_ns, p90_ns, p95_ns, p99_ns, p999_ns] = percentiles;
        report.durations =
            DurationReport { p50_ns, p90_ns, p95_ns, p99_ns, p999_ns, ..report.durations };
        report.fastest = ranked.fastest;
        report.center = ranked.center;
        report.slowest = ranked.slowest;
    }

    fn add_unions(&self, report: &mut FunctionReport, unions: FunctionUnions, duration: Nanos) {
        report.active_ns = Nanos(unions.active);
        report.active_exclusive_ns = Nanos(unions.exclusive);
        report.active_exclusive_percent = percent(unions.exclusive, duration);
        if report.center.max_ns.is_some() {
            report.center.active_ns = Some(Nanos(unions.center_active));
            report.center.active_exclusive_ns = Some(Nanos(unions.center_exclusive));
            report.center.active_exclusive_percent =
                Some(percent(unions.center_exclusive, duration));
        }
    }

    /// All paths with calls on them or below, and the calls on paths beyond the bound.
    fn paths(&self, percentiles: &[Percentiles], open: &Open) -> (Vec<PathReport>, u64) {
        let nodes = self.ledger.paths.nodes();
        let calls = |node: usize| {
            let tally = &self.ledger.tallies[node];
            tally.timed + tally.untimed + open.calls[node]
        };
        let mut wanted = (0..nodes.len()).map(|node| calls(node) > 0).collect::<Vec<_>>();
        for node in (1..nodes.len()).rev().filter(|&node| !nodes[node].other) {
            wanted[nodes[node].parent as usize] |= wanted[node];
        }
        let (mut paths, mut places, mut other_calls) =
            (Vec::<PathReport>::new(), vec![None; nodes.len()], 0);
        for node in (ROOT as usize + 1..nodes.len()).filter(|&node| wanted[node]) {
            if nodes[node].other {
                other_calls += calls(node);
                continue;
            }
            let parent: Option<usize> = places[nodes[node].parent as usize];
            let function = nodes[node].func.index();
            let mut path = parent.map_or_else(Vec::new, |parent| paths[parent].path.clone());
            path.push(self.functions[function].name.clone());
            let (tally, [p50_ns, p90_ns, _, p99_ns, _]) =
                (&self.ledger.tallies[node], percentiles[node]);
            places[node] = Some(paths.len());
            paths.push(PathReport {
                path,
                parent,
                function,
                calls: calls(node),
                total_ns: Nanos(tally.total_ns()),
                self_ns: Nanos(tally.self_ns),
                p50_ns,
                p90_ns,
                p99_ns,
                max_ns: tally.max().map(Nanos),
            });
        }
        (paths, other_calls)
    }
}

/// Each of a function's nodes that is not the function's only one, whose ranks are the function's.
fn path_nodes(nodes: &[u32]) -> impl Iterator<Item = &[u32]> {
    nodes.chunks(1).filter(|node| node.len() < nodes.len())
}

/// From a histogram, kept within what is known exactly.
fn percentiles(histogram: &Histogram, tally: &Tally) -> Percentiles {
    PERMILLE.map(|permille| {
        let value = histogram.at(nearest_rank(tally.timed, permille))?;
        Some(Nanos(value.clamp(tally.min()?, tally.max()?)))
    })
}

fn percent(part: u64, duration: Nanos) -> f64 {
    if duration == Nanos::ZERO { 0.0 } else { part as f64 * 100.0 / duration.0 as f64 }
}
