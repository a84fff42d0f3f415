//! The second pass over each recording: sums and durations of the compared rows, by stretch.

use super::metric::Metric;
use super::stretches::Stretches;
use super::survey::{Chosen, Read, Survey, Surveyed};
use crate::calls::spool::Call;
use crate::recording::replay::report::open_at_end;
use crate::recording::replay::select::{CallReader, each_part};
use crate::recording::{Chunk, ChunkEntry};
use crate::stats::Summary;
use crate::stats::histogram::{Histogram, HistogramCounter};
use crate::stats::rank::Keep;
use crate::stats::unions::Unions;
use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

/// One stretch. Its vectors are indexed by slot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stretch {
    /// The sums over calls that ended in it, and the time in functions. Paths have no times.
    pub(crate) sums: Vec<Summary>,
    pub(crate) histograms: Vec<Histogram>,
}

impl Stretch {
    pub(crate) fn new(slots: usize) -> Self {
        Self {
            sums: vec![Summary::default(); slots],
            histograms: vec![Histogram::default(); slots],
        }
    }

    fn merge(&mut self, other: &Self) {
        self.sums.iter_mut().zip(&other.sums).for_each(|(mine, other)| mine.add(other));
        let histograms = self.histograms.iter_mut().zip(&other.histograms);
        histograms.for_each(|(mine, other)| mine.merge(other));
    }
}

/// A file's data for all compared rows.
pub(crate) enum Cells {
    Recording {
        /// Duration of a stretch.
        seconds: f64,
        stretches: Vec<Stretch>,
    },
    /// The metrics of each slot.
    Report(Vec<Option<Vec<f64>>>),
}

impl Cells {
    pub(crate) fn gather(survey: &Survey<'_>, chosen: &Chosen, metrics: &[Metric]) -> Self {
        match &survey.content {
            Surveyed::Recording(read) => {
                let stretches = Stretches::new(read.period.clone());
                let slots = Slots::new(survey, chosen);
                let gathered = slots.gather(read, &stretches);
                Self::Recording { seconds: stretches.seconds(), stretches: gathered }
            }
            Surveyed::Report(facts) => {
                let mut values = vec![None; chosen.slots()];
                for (place, function) in facts.functions.iter().enumerate() {
                    if let Some(slot) =
                        chosen.slot_of_function[survey.index.functions[place].index()]
                    {
                        values[slot as usize]
                            .get_or_insert_with(|| facts.values_of(function, metrics));
                    }
                }
                for (place, path) in facts.paths.iter().enumerate() {
                    let path_here = survey.index.paths[place + 1];
                    if let Some(slot) = path_here.and_then(|at| chosen.slot_of_path[at as usize]) {
                        values[slot as usize].get_or_insert_with(|| facts.values_on(path, metrics));
                    }
                }
                Self::Report(values)
            }
        }
    }
}

/// The slots in which a file's calls count.
struct Slots {
    /// For each path node of the file: the slots of its function and of its path.
    of_node: Vec<[Option<u32>; 2]>,
    /// For each function of the file.
    of_function: Vec<Option<u32>>,
    count: usize,
}

impl Slots {
    fn new(survey: &Survey<'_>, chosen: &Chosen) -> Self {
        let of_function: Vec<Option<u32>> =
            survey.index.functions.iter().map(|at| chosen.slot_of_function[at.index()]).collect();
        let nodes = match &survey.content {
            Surveyed::Recording(read) => read.lens.paths.nodes(),
            Surveyed::Report(_) => &[],
        };
        let of_node = nodes.iter().zip(&survey.index.paths).map(|(node, path)| {
            let function = of_function.get(node.func.index()).copied().flatten();
            [function, path.and_then(|path| chosen.slot_of_path[path as usize])]
        });
        Self { of_node: of_node.collect(), of_function, count: chosen.slots() }
    }

    fn gather(&self, read: &Read<'_>, stretches: &Stretches) -> Vec<Stretch> {
        let parts = each_part(read.chunks, |chunks| self.part(read, stretches, chunks));
        let mut all = vec![Stretch::new(self.count); stretches.count()];
        for (at, part) in parts.into_iter().flatten() {
            all[at].merge(&part);
        }
        let last = read.chunks.last().map_or(read.period.end, |chunk| chunk.to.0);
        let rest = last.max(read.period.start)..read.period.end;
        for at in stretches.within(&rest) {
            let window = stretches.window(at);
            let window = window.start.max(rest.start)..window.end.min(rest.end);
            let functions = self.of_function.len();
            let unions = open_at_end(&read.lens, &read.counted, window, functions);
            self.add_unions(&mut all[at].sums, &unions);
        }
        all
    }

    /// Reads one worker's part: consecutive chunks.
    fn part(
        &self,
        read: &Read<'_>,
        stretches: &Stretches,
        chunks: &[ChunkEntry],
    ) -> BTreeMap<usize, Stretch> {
        let mut selected = CallReader::with_own(read.recording, &read.lens, &read.counted);
        let mut worker = Worker {
            slots: self,
            keep: vec![Keep::default(); self.of_function.len()],
            counter: HistogramCounter::default(),
            now: None,
            done: BTreeMap::new(),
        };
        for entry in chunks {
            let Some(chunk) = selected.read(entry) else { continue };
            worker.chunk(&mut selected, &chunk, stretches);
        }
        worker.finish()
    }

    /// Adds calls that ended within the window. With a start of 0, all earlier calls count.
    fn add_calls<'a>(
        &self,
        stretch: &mut Stretch,
        counter: &mut HistogramCounter,
        calls: impl Iterator<Item = &'a (Call, u64)>,
        window: &Range<u64>,
    ) {
        for (call, own) in calls {
            let end = call.end();
            if (end <= window.start && window.start > 0) || end > window.end {
                continue;
            }
            for slot in self.of_node[call.node as usize].into_iter().flatten() {
                let tally = &mut stretch.sums[slot as usize].tally;
                if call.timed {
                    tally.add_timed(call.duration, *own);
                    counter.add(&mut stretch.histograms, slot as usize, call.duration);
                } else {
                    tally.add_untimed(call.duration, *own);
                }
            }
        }
    }

    fn add_unions(&self, sums: &mut [Summary], unions: &Unions) {
        for (slot, union) in self.of_function.iter().zip(&unions.functions) {
            if let Some(slot) = slot {
                let sums = &mut sums[*slot as usize];
                sums.active_ns = sums.active_ns.saturating_add(union.active);
                sums.exclusive_ns = sums.exclusive_ns.saturating_add(union.exclusive);
            }
        }
    }
}

struct Worker<'a> {
    slots: &'a Slots,
    keep: Vec<Keep>,
    counter: HistogramCounter,
    now: Option<(usize, Stretch)>,
    done: BTreeMap<usize, Stretch>,
}

impl Worker<'_> {
    fn turn_to(&mut self, at: usize) {
        if self.now.as_ref().is_some_and(|(now, _)| *now == at) {
            return;
        }
        self.put_away();
        let stretch = self.done.remove(&at).unwrap_or_else(|| Stretch::new(self.slots.count));
        self.now = Some((at, stretch));
    }

    fn put_away(&mut self) {
        if let Some((at, mut stretch)) = self.now.take() {
            self.counter.flush(&mut stretch.histograms);
            self.done.insert(at, stretch);
        }
    }

    fn finish(mut self) -> BTreeMap<usize, Stretch> {
        self.put_away();
        self.done
    }

    fn chunk(&mut self, selected: &mut CallReader<'_>, chunk: &Chunk, stretches: &Stretches) {
        let shown = chunk.threads().iter().map(|thread| {
            let mut calls = Vec::with_capacity(chunk.calls(thread).len());
            selected.calls_with_own(chunk, thread, |call, node, own| {
                calls.push((Call { node, ..call }, own));
            });
            calls
        });
        let shown: Vec<Vec<(Call, u64)>> = shown.collect();
        let whole = selected.clip(chunk.from.0, chunk.to.0);
        let within = stretches.within(&whole);
        for at in within.clone() {
            let mut window = stretches.window(at);
            // Time outside of all stretches counts toward those at the chunk's ends.
            if at == *within.start() {
                window.start = 0;
            }
            if at == *within.end() {
                window.end = u64::MAX;
            }
            self.turn_to(at);
            let Some((_, stretch)) = &mut self.now else { return };
            self.slots.add_calls(stretch, &mut self.counter, shown.iter().flatten(), &window);
            let window = window.start.max(whole.start)..window.end.min(whole.end);
            if !window.is_empty() {
                let inside = |call: &Call| call.start < window.end && call.end() > window.start;
                let calls = shown
                    .iter()
                    .map(|calls| calls.iter().map(|(call, _)| *call).filter(|call| inside(call)));
                let center = (&*self.keep, &HashSet::new());
                let unions = selected.unions(chunk, calls, window.clone(), center, false);
                self.slots.add_unions(&mut stretch.sums, &unions);
            }
        }
    }
}
