//! The first pass: sums for each path node, durations in buckets, and counts of threads.

use super::clip::clip;
use super::lens::Lens;
use super::spans::{AtEnd, CallKey, Joined, Spans};
use super::walk::{Span, Walk};
use crate::calls::{FunctionCounts, each_bit};
use crate::recording::{Call, Chunk, ChunkEntry, ChunkLoss, Recording};
use crate::stats::histogram::{Histogram, HistogramCounter};
use crate::stats::tally::Tally;
use crate::units::{FuncId, ThreadId};
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

/// Chunks that a worker takes at a time. What it collects of calls that cross their edges is small.
const AT_ONCE: usize = 32;

/// Counts of one thread's calls.
#[derive(Clone, Debug)]
pub(crate) struct ThreadCount {
    pub(crate) calls: u64,
    /// The number of these calls that are open at the end.
    pub(crate) open: u64,
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// A bit for each of the first [`NEAR`] functions that it called.
    called: Vec<u64>,
    /// The other functions that it called; only very large programs have such. Bits would take too
    /// much memory, as any thread may call any function.
    far: BTreeSet<u32>,
}

/// Functions that have a bit in each thread.
const NEAR: usize = 1 << 12;

impl Default for ThreadCount {
    fn default() -> Self {
        let (called, far) = (Vec::new(), BTreeSet::new());
        Self { calls: 0, open: 0, first: u64::MAX, last: 0, called, far }
    }
}

impl ThreadCount {
    pub(crate) fn has_called(&self, function: FuncId) -> bool {
        if function.index() >= NEAR {
            return self.far.contains(&function.0);
        }
        let word = self.called.get(function.index() / 64);
        word.is_some_and(|word| word >> (function.index() % 64) & 1 == 1)
    }

    fn each_called(&self, mut each: impl FnMut(FuncId)) {
        each_bit(&self.called, |bit| each(FuncId(bit as u32)));
        self.far.iter().for_each(|function| each(FuncId(*function)));
    }

    #[inline]
    fn add(&mut self, function: FuncId, start: u64, end: u64) {
        self.calls = self.calls.saturating_add(1);
        self.saw(start, end);
        if function.index() >= NEAR {
            self.far.insert(function.0);
            return;
        }
        let word = function.index() / 64;
        if word >= self.called.len() {
            self.called.resize(word + 1, 0);
        }
        self.called[word] |= 1 << (function.index() % 64);
    }

    /// Extends the thread's first and last times.
    pub(crate) fn saw(&mut self, first: u64, last: u64) {
        (self.first, self.last) = (self.first.min(first), self.last.max(last));
    }

    fn merge(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.open = self.open.saturating_add(other.open);
        self.saw(other.first, other.last);
        self.called.resize(self.called.len().max(other.called.len()), 0);
        self.far.extend(&other.far);
        self.called.iter_mut().zip(&other.called).for_each(|(mine, other)| *mine |= other);
    }
}

/// Sums over some chunks.
#[derive(Debug)]
pub(crate) struct Counts {
    /// Sums by node of the query.
    pub(crate) tallies: Vec<Tally>,
    pub(crate) histograms: Vec<Histogram>,
    pub(crate) threads: BTreeMap<ThreadId, ThreadCount>,
    pub(crate) filtered: u64,
    pub(crate) loss: ChunkLoss,
    /// Exits without entries, by function.
    pub(crate) headless: Vec<u64>,
    /// Number of calls in chunks that cannot be read.
    pub(crate) unreadable: u64,
}

/// A finished call that crossed the edge of a chunk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CrossingCall {
    pub(crate) duration: u64,
    pub(crate) timed: bool,
    pub(crate) own: u64,
}

/// The results of the first pass over a whole recording.
pub(crate) struct FirstPass {
    pub(crate) counts: Counts,
    /// Finished calls that crossed the edge of a chunk and count.
    pub(crate) crossing: HashMap<CallKey, CrossingCall>,
    /// Calls that count and are open at the end, with the query's nodes.
    pub(crate) open: Vec<(CallKey, u32)>,
    /// The time of counted calls that ended inside each of these, counted at the innermost only.
    pub(crate) inside_open: HashMap<CallKey, u64>,
    pub(crate) left_out: HashSet<CallKey>,
}

/// Calls crossing the edges of chunks that a worker collects before they are joined.
const MOST_SPANS: usize = 1 << 20;

/// A worker's results for consecutive chunks.
struct Part<'a> {
    counts: Counts,
    spans: Vec<(usize, ThreadId, Vec<Span>)>,
    spanned: usize,
    /// The chunks that are left because there were too many spans.
    left: &'a [ChunkEntry],
    /// The number of the first chunk that is left.
    next: usize,
}

/// Reads these chunks and sums them up.
pub(crate) fn count(recording: &Recording, lens: &Lens<'_>, chunks: &[ChunkEntry]) -> FirstPass {
    let mut counts = Counts::new(lens, recording.functions().len());
    let (mut spans, mut durations) = (Spans::default(), Vec::new());
    let mut crossing = HashMap::new();
    let workers = rayon::current_num_threads().max(1);
    for (batch, entries) in chunks.chunks(AT_ONCE * workers).enumerate() {
        let first = batch * AT_ONCE * workers;
        let parts: Vec<Part<'_>> = entries
            .par_chunks(AT_ONCE)
            .enumerate()
            .map(|(part, entries)| part_of(recording, lens, entries, first + part * AT_ONCE))
            .collect();
        for mut part in parts {
            loop {
                counts.merge(&part.counts);
                for (chunk, thread, part) in std::mem::take(&mut part.spans) {
                    spans.join(lens, chunk, thread, part, |joined| {
                        if joined.counts_at.is_some() {
                            let Joined { duration, timed, own, .. } = joined;
                            crossing.insert(joined.key, CrossingCall { duration, timed, own });
                        }
                        counts.add_joined(lens, joined, &mut durations);
                    });
                }
                if part.left.is_empty() {
                    break;
                }
                part = part_of(recording, lens, part.left, part.next);
            }
        }
    }
    HistogramCounter::default().count(&mut counts.histograms, durations.into_iter());
    let last = chunks.len().saturating_sub(1);
    let AtEnd { open, inside_open, left_out } = spans.end(lens, recording.nodes(), last);
    FirstPass { counts, crossing, open, inside_open, left_out }
}

fn part_of<'a>(
    recording: &Recording,
    lens: &Lens<'_>,
    entries: &'a [ChunkEntry],
    first: usize,
) -> Part<'a> {
    let counts = Counts::new(lens, recording.functions().len());
    let mut part = Part { counts, spans: Vec::new(), spanned: 0, left: &[], next: first };
    let mut counter = HistogramCounter::large();
    let mut walk = Walk::new(lens, recording.nodes());
    for (number, entry) in (first..).zip(entries) {
        match lens.read(recording, entry) {
            Ok(chunk) => {
                let chunk = clip(chunk, &lens.window);
                part.add(recording, lens, &mut walk, &mut counter, number, &chunk);
            }
            Err(_) => {
                let unreadable = &mut part.counts.unreadable;
                *unreadable = unreadable.saturating_add(entry.calls);
            }
        }
        if part.spanned > MOST_SPANS {
            part.next = number + 1;
            part.left = entries.get(part.next - first..).unwrap_or_default();
            break;
        }
    }
    counter.flush(&mut part.counts.histograms);
    part
}

impl Part<'_> {
    fn add(
        &mut self,
        recording: &Recording,
        lens: &Lens<'_>,
        walk: &mut Walk<'_>,
        counter: &mut HistogramCounter,
        number: usize,
        chunk: &Chunk,
    ) {
        if lens.is_in_window(chunk.to.0) {
            self.counts.add_losses(lens, chunk);
        }
        for thread in chunk.threads() {
            if !lens.has_thread(thread.thread) {
                continue;
            }
            if !lens.selects_thread(recording.thread(thread.thread)) {
                let of_window = |call: &&Call| lens.is_in_window(call.end().0);
                let filtered = chunk.calls(thread).iter().filter(of_window).count();
                let sum = &mut self.counts.filtered;
                *sum = sum.saturating_add(filtered as u64);
                continue;
            }
            let Counts { tallies, histograms, threads, filtered, .. } = &mut self.counts;
            let about = threads.entry(thread.thread).or_default();
            let nodes = lens.paths.nodes();
            let calls = chunk.calls(thread);
            let spans = walk.thread(thread.thread, chunk.from.0, calls, &thread.open, |seen| {
                let call = seen.call;
                let end = call.start.saturating_add(call.duration);
                if !lens.is_in_window(end) {
                    return;
                }
                let Some(node) = seen.counts_at else {
                    let is_asked = lens.is_within(thread.thread, call.start);
                    *filtered = filtered.saturating_add(is_asked.into());
                    return;
                };
                tallies[node as usize].waits.add(seen.waits);
                if call.timed {
                    tallies[node as usize].add_timed(call.duration, seen.own);
                    counter.add(histograms, node as usize, call.duration);
                } else {
                    tallies[node as usize].add_untimed(call.duration, seen.own);
                }
                about.add(nodes[node as usize].func, call.start, end);
            });
            if !spans.is_empty() {
                self.spanned += spans.len();
                self.spans.push((number, thread.thread, spans));
            }
        }
    }
}

impl Counts {
    fn new(lens: &Lens<'_>, functions: usize) -> Self {
        let nodes = lens.paths.nodes().len();
        Self {
            tallies: vec![Tally::default(); nodes],
            histograms: vec![Histogram::default(); nodes],
            threads: BTreeMap::new(),
            filtered: 0,
            loss: ChunkLoss::default(),
            headless: vec![0; functions],
            unreadable: 0,
        }
    }

    fn add_losses(&mut self, lens: &Lens<'_>, chunk: &Chunk) {
        self.add_loss(&chunk.loss);
        // Chunks do not tell whose they are.
        let headless = chunk.headless.iter().filter(|_| !lens.asks_for_a_part());
        for (function, count) in headless.filter(|(function, _)| lens.selects_function(*function)) {
            let headless = &mut self.headless[function.index()];
            *headless = headless.saturating_add(*count);
        }
    }

    fn add_loss(&mut self, loss: &ChunkLoss) {
        let ChunkLoss { events, late, decode_errors, filtered } = loss;
        self.loss.events = self.loss.events.wrapping_add(*events);
        self.loss.late = self.loss.late.saturating_add(*late);
        self.loss.decode_errors = self.loss.decode_errors.saturating_add(*decode_errors);
        self.loss.filtered = self.loss.filtered.saturating_add(*filtered);
    }

    fn add_joined(&mut self, lens: &Lens<'_>, joined: Joined, durations: &mut Vec<(usize, u64)>) {
        let (thread, start, _) = joined.key;
        let end = start.saturating_add(joined.duration);
        if !lens.is_in_window(end) {
            return;
        }
        let Some(node) = joined.counts_at else {
            self.filtered = self.filtered.saturating_add(lens.is_within(thread, start).into());
            return;
        };
        let tally = &mut self.tallies[node as usize];
        tally.waits.add(joined.waits);
        if joined.timed {
            tally.add_timed(joined.duration, joined.own);
            durations.push((node as usize, joined.duration));
        } else {
            tally.add_untimed(joined.duration, joined.own);
        }
        let function = lens.paths.nodes()[node as usize].func;
        self.threads.entry(thread).or_default().add(function, start, end);
    }

    fn merge(&mut self, other: &Self) {
        self.tallies.iter_mut().zip(&other.tallies).for_each(|(mine, other)| mine.merge(other));
        let histograms = self.histograms.iter_mut().zip(&other.histograms);
        histograms.for_each(|(mine, other)| mine.merge(other));
        for (id, thread) in &other.threads {
            self.threads.entry(*id).or_default().merge(thread);
        }
        self.filtered = self.filtered.saturating_add(other.filtered);
        self.add_loss(&other.loss);
        let headless = self.headless.iter_mut().zip(&other.headless);
        headless.for_each(|(mine, other)| *mine = mine.saturating_add(*other));
        self.unreadable = self.unreadable.saturating_add(other.unreadable);
    }

    /// Returns, by function, the numbers of exits without entry and of threads with finished calls, and the work
    /// of these threads.
    pub(crate) fn by_function(&self, recording: &Recording) -> Vec<FunctionCounts> {
        let count = |&headless: &u64| FunctionCounts { headless, ..FunctionCounts::default() };
        let mut counts: Vec<_> = self.headless.iter().map(count).collect();
        for (id, thread) in &self.threads {
            let work = recording.thread(*id).and_then(|record| record.work_ns);
            thread.each_called(|function| {
                if let Some(count) = counts.get_mut(function.index()) {
                    count.threads = count.threads.saturating_add(1);
                    work.into_iter().for_each(|most| count.work.add(most));
                }
            });
        }
        counts
    }
}
