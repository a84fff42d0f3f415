//! Makes a [`Report`] from the engine's state, without changing the state.

use crate::calls::by_function::ByFunction;
use crate::engine::ReportMeta;
use crate::engine::ledger::Ledger;
use crate::engine::tracker::Tracker;
use crate::report::assemble::{Facts, Open, Ranks, sum};
use crate::report::percentiles::Percentiles;
use crate::report::{Extras, LossReport, Report};
use crate::stats::grouped::Grouped;
use crate::stats::heat::Heat;
use crate::stats::histogram::{Histogram, HistogramCounter};
use crate::stats::rank::{Center, Durations, Keep, WantedRanks};
use crate::stats::selection::RankSelection;
use crate::stats::slices::Slices;
use crate::stats::unions::{Unions, Window, unions};
use crate::units::{FuncId, Nanos};

impl Tracker {
    pub(crate) fn report(&self, end: Nanos, lost_events: u64, meta: ReportMeta) -> Report {
        let by_function = ByFunction::new(self.ledger.paths.nodes());
        let approximate = self.period.folded || self.counted.is_some();
        let ranks = if approximate {
            self.approximate_ranks(&by_function)
        } else {
            self.exact_ranks(&by_function, meta.center_cut)
        };
        let keep = ranks.functions.iter().map(|(_, center)| center.keep).collect::<Vec<_>>();
        let Extras {
            histograms, path_histograms, latencies, path_latencies, ctrack, slices, ..
        } = meta.extras;
        let unions = self.unions(end, &keep, ctrack && !approximate);
        let open = self.open();
        let of_nodes = (histograms || path_histograms || latencies || path_latencies)
            .then(|| self.node_histograms());
        let heat = (histograms && !approximate)
            .then(|| self.heat(Slices::new(Nanos(self.period.start), end, slices)));
        Facts {
            functions: &self.functions,
            nodes: self.ledger.paths.nodes(),
            by_function: &by_function,
            tallies: &self.ledger.tallies,
            counts: &self.ledger.functions,
            open,
            ranks,
            unions,
            histograms: of_nodes.as_deref(),
            heat,
            threads: self.threads.rows(),
            start: Nanos(self.period.start),
            end,
            approximate,
            counted: self.counted.is_some(),
            filtered: self.ledger.filtered,
            min_duration: self.ledger.filter.min_duration,
            some_functions: false,
            loss: LossReport {
                events: lost_events.saturating_sub(self.period.lost_before),
                late: self.period.late,
                decode_errors: self.period.decode_errors,
                payloads: self.lost_payloads(),
                ..LossReport::default()
            },
        }
        .report(meta)
    }

    /// Those of the period. Where nothing is recorded, none are kept, so none can be missed.
    fn lost_payloads(&self) -> u64 {
        let lost = self.payloads.lost().saturating_sub(self.period.payloads_before);
        if self.recorder.is_some() { lost } else { 0 }
    }

    fn exact_ranks(&self, by_function: &ByFunction, center_cut: f64) -> Ranks {
        let Ledger { spool, tallies, .. } = &self.ledger;
        let nodes_of = |func: usize| by_function.nodes_of(FuncId(func as u32));
        let functions = || (0..self.functions.len()).map(nodes_of);
        let mut selection = RankSelection::new(spool, functions(), tallies);
        for nodes in functions() {
            selection
                .want(nodes, &WantedRanks::new(sum(tallies, nodes).timed, center_cut).ranges());
            for node in path_nodes(nodes) {
                let timed = sum(tallies, node).timed;
                selection.want(node, &WantedRanks::percentiles(timed).map(|rank| rank..rank + 1));
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
            let ranks = durations.rank(center_cut, sum(tallies, nodes).timed_ns);
            if let [only] = *nodes {
                by_node[only as usize] = ranks.0;
            }
            ranks
        });
        let functions = functions.collect();
        Ranks { functions, nodes: by_node }
    }

    fn approximate_ranks(&self, by_function: &ByFunction) -> Ranks {
        let Ledger { tallies, paths, .. } = &self.ledger;
        let by_node = self.node_histograms();
        let mut histograms = vec![Histogram::default(); self.functions.len()];
        let nodes = paths.nodes().iter().zip(tallies).zip(&by_node);
        let nodes = nodes.map(|((node, tally), histogram)| {
            if let Some(function) = histograms.get_mut(node.func.index()) {
                function.merge(histogram);
            }
            Percentiles::of(histogram, tally)
        });
        let nodes = nodes.collect();
        let functions = histograms.iter().enumerate().map(|(index, histogram)| {
            let of_function = by_function.nodes_of(FuncId(index as u32));
            (Percentiles::of(histogram, &sum(tallies, of_function)), Center::default())
        });
        Ranks { functions: functions.collect(), nodes }
    }

    /// Returns histograms by path node, including folded calls.
    fn node_histograms(&self) -> Vec<Histogram> {
        let Ledger { spool, tallies, .. } = &self.ledger;
        let mut by_node = self.period.histograms.clone();
        by_node.resize(tallies.len(), Histogram::default());
        let durations = spool.timed().map(|call| (call.node as usize, call.duration));
        HistogramCounter::default().count(&mut by_node, durations);
        by_node
    }

    fn heat(&self, slices: Slices) -> Heat {
        let Ledger { spool, paths, .. } = &self.ledger;
        let mut heat = Heat::new(slices);
        for call in spool.timed() {
            heat.add(paths.nodes()[call.node as usize].func, call.end(), call.duration);
        }
        heat
    }

    /// Returns the period's unions, including those of folded windows.
    fn unions(&self, end: Nanos, keep: &[Keep], events: bool) -> Unions {
        let window = Window { start: self.period.folded_to, end: end.0 };
        let nodes = self.ledger.paths.nodes();
        let mut all = unions(window, self.thread_calls(), nodes, keep, events);
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
        let counted = self.counted.iter().flat_map(|counted| &counted.open);
        open.calls.iter_mut().zip(counted).for_each(|(calls, more)| *calls += more);
        open
    }
}

/// Returns each node of a function that has several. A single node's ranks are the function's.
fn path_nodes(nodes: &[u32]) -> impl Iterator<Item = &[u32]> {
    nodes.chunks(1).filter(|node| node.len() < nodes.len())
}
