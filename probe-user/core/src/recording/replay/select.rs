//! Shows the calls that count, chunk by chunk. The first pass has decided which calls that cross
//! the edges of chunks do.

use super::clip::clip;
use super::count::FirstPass;
use super::lens::Lens;
use super::spans::CallKey;
use super::walk::Walk;
use crate::calls::spool::Call;
use crate::recording::{Chunk, ChunkEntry, OpenCall, RecordError, Recording, ThreadCalls};
use crate::stats::rank::Keep;
use crate::stats::unions::{self, Unions, Window};
use crate::units::Nanos;
use rayon::prelude::*;
use std::collections::HashSet;
use std::ops::Range;

/// Splits the chunks into as many consecutive parts as there are cores, and works on these in
/// parallel.
pub(crate) fn each_part<E: Sync, T: Send>(
    chunks: &[E],
    work: impl Fn(&[E]) -> T + Send + Sync,
) -> Vec<T> {
    let parts = rayon::current_num_threads().max(1);
    chunks.par_chunks(chunks.len().div_ceil(parts).max(1)).map(work).collect()
}

/// A chunk reduced to the calls that count.
pub(crate) struct Only {
    pub(crate) chunk: Chunk,
    /// For each thread, first the time of ended calls inside each open call, then the own time of
    /// each finished call, valid only if the reader [has own times](CallReader::with_own).
    pub(crate) times: Vec<u64>,
}

/// Reads chunks for one worker and shows the calls that count.
pub(crate) struct CallReader<'a> {
    pub(super) recording: &'a Recording,
    pub(super) lens: &'a Lens<'a>,
    counted: &'a FirstPass,
    /// Needed to select by callees and for own times.
    walk: Option<Walk<'a>>,
    /// The own time of each call that the walk has seen, by place; `None` if it does not count.
    walked: Vec<Option<u64>>,
}

impl<'a> CallReader<'a> {
    pub(crate) fn new(
        recording: &'a Recording,
        lens: &'a Lens<'a>,
        counted: &'a FirstPass,
    ) -> Self {
        let walk = lens.asks_for_callees().then(|| Walk::new(lens, recording.nodes()));
        Self { recording, lens, counted, walk, walked: Vec::new() }
    }

    /// Like [`Self::new`], but with own times for [`Self::calls_with_own`].
    pub(crate) fn with_own(
        recording: &'a Recording,
        lens: &'a Lens<'a>,
        counted: &'a FirstPass,
    ) -> Self {
        let walk = Some(Walk::new(lens, recording.nodes()));
        Self { recording, lens, counted, walk, walked: Vec::new() }
    }

    /// Reads a chunk, cut off at the window's end. `None` if it cannot be read: the first pass has
    /// counted its calls as lost.
    pub(crate) fn read(&self, entry: &ChunkEntry) -> Option<Chunk> {
        Some(clip(self.lens.read(self.recording, entry).ok()?, &self.lens.window))
    }

    /// Returns the part of a stretch of time that is within the query's window.
    pub(crate) fn clip(&self, from: u64, to: u64) -> Range<u64> {
        self.lens.clip(Nanos(from), Nanos(to))
    }

    /// Shows the calls of a thread that count, latest first, with the query's nodes.
    #[inline]
    pub(crate) fn calls(
        &mut self,
        chunk: &Chunk,
        thread: &ThreadCalls,
        mut show: impl FnMut(Call, u32),
    ) {
        self.calls_with_own(chunk, thread, |call, node, _| show(call, node));
    }

    /// Like [`Self::calls`], but also shows own times. Those are valid only if this reader was made
    /// [`with_own`](Self::with_own).
    #[inline]
    pub(crate) fn calls_with_own(
        &mut self,
        chunk: &Chunk,
        thread: &ThreadCalls,
        mut show: impl FnMut(Call, u32, u64),
    ) {
        let lens = self.lens;
        self.each(chunk, thread, |_, call, node, own| {
            if let Some(node) = node.filter(|_| lens.is_in_window(call.end())) {
                show(call, node, own);
            }
        });
    }

    /// Shows all calls of a selected thread with their places, including those before the window.
    /// Calls that do not count have no node.
    #[inline]
    pub(crate) fn all_calls(
        &mut self,
        chunk: &Chunk,
        thread: &ThreadCalls,
        mut show: impl FnMut(usize, Call, Option<u32>),
    ) {
        self.each(chunk, thread, |place, call, node, _| show(place, call, node));
    }

    #[inline]
    fn each(
        &mut self,
        chunk: &Chunk,
        thread: &ThreadCalls,
        mut show: impl FnMut(usize, Call, Option<u32>, u64),
    ) {
        if !self.lens.selects_thread(self.recording.thread(thread.thread)) {
            return;
        }
        let calls = chunk.calls(thread);
        if let Some(walk) = &mut self.walk {
            self.walked.clear();
            self.walked.resize(calls.len(), None);
            let walked = &mut self.walked;
            walk.thread(thread.thread, chunk.from.0, calls, &thread.open, |seen| {
                walked[seen.place] = seen.counts_at.map(|_| seen.own);
            });
        }
        for (place, call) in calls.iter().enumerate() {
            let call = call.0;
            let mut node = self.lens.node(call.node);
            let is_long = self.lens.is_long_enough(call.node, call.duration, call.timed);
            if !is_long || !self.lens.is_within(thread.thread, call.start) {
                node = None;
            }
            let mut own = 0;
            if self.walk.is_some() && node.is_some() {
                let crosses = call.start < chunk.from.0;
                let walked = match crosses {
                    true => self.own_after_all((thread.thread, call.start, call.node)),
                    false => self.walked[place],
                };
                node = node.filter(|_| walked.is_some());
                own = walked.unwrap_or(0);
            }
            show(place, call, node, own);
        }
    }

    /// Returns the calls that count and are open at the chunk's end, outermost first, with the
    /// query's nodes.
    #[inline]
    pub(super) fn open(&self, thread: &ThreadCalls) -> impl Iterator<Item = (CallKey, u32)> {
        let is_selected = self.lens.selects_thread(self.recording.thread(thread.thread));
        thread.open.iter().filter(move |_| is_selected).filter_map(move |open| {
            let node = self.lens.node(open.path)?;
            let key = (thread.thread, open.start.0, open.path);
            let is_within = self.lens.is_within(thread.thread, open.start.0);
            (is_within && self.counts_after_all(key)).then_some((key, node))
        })
    }

    /// Returns the same for unions. `kept` has the calls that will end and be in a center.
    fn open_in_unions(
        &self,
        chunk: &Chunk,
        thread: &ThreadCalls,
        kept: &HashSet<CallKey>,
    ) -> Vec<unions::OpenCall> {
        let open = self.open(thread).filter_map(|(key, node)| {
            let start = key.1;
            let ends = self.counted.crossing.get(&key);
            let end = ends.map_or(u64::MAX, |call| start.saturating_add(call.duration));
            let (timed, kept) = (ends.is_some_and(|call| call.timed), kept.contains(&key));
            (end > chunk.from.0).then_some(unions::OpenCall { start, node, timed, kept, end })
        });
        open.collect()
    }

    /// Returns the chunk with only the calls that count, at the query's nodes.
    pub(crate) fn only(&mut self, entry: &ChunkEntry) -> Result<Only, RecordError> {
        let lens = self.lens;
        let chunk = clip(lens.read(self.recording, entry)?, &lens.window);
        let mut only = Only { chunk: Chunk::new(chunk.from.0..chunk.to.0), times: Vec::new() };
        let Only { chunk: of, times } = &mut only;
        if lens.is_in_window(chunk.to.0) {
            of.loss = chunk.loss;
            let headless = chunk.headless.iter().copied();
            of.headless = headless.filter(|(f, _)| lens.selects_function(*f)).collect();
        }
        for thread in chunk.threads() {
            let inside = |key| self.counted.inside_open.get(&key).copied().unwrap_or(0);
            let open: Vec<OpenCall> = self
                .open(thread)
                .map(|(key, path)| {
                    times.push(inside(key));
                    OpenCall { start: Nanos(key.1), path }
                })
                .collect();
            let calls = chunk.calls(thread);
            let mut counting = Vec::with_capacity(calls.len());
            self.calls_with_own(&chunk, thread, |call, node, own| {
                counting.push(Call { node, ..call });
                times.push(own);
            });
            let of_window = calls.iter().filter(|call| lens.is_in_window(call.0.end())).count();
            let filtered = of_window.saturating_sub(counting.len()) as u64;
            of.loss.filtered = of.loss.filtered.saturating_add(filtered);
            of.push(thread.thread, counting.into_iter(), open);
        }
        Ok(only)
    }

    /// Returns the unions of the chunk's calls within `window`. `shown` has the calls thread by
    /// thread; `kept` tells which calls are in a center. `events`: also by CTRACK's definitions.
    pub(crate) fn unions(
        &self,
        chunk: &Chunk,
        shown: impl IntoIterator<Item = impl Iterator<Item = Call>>,
        window: Range<u64>,
        (keep, kept): (&[Keep], &HashSet<CallKey>),
        events: bool,
    ) -> Unions {
        let threads = chunk.threads().iter().zip(shown).map(|(thread, calls)| {
            let open = self.open_in_unions(chunk, thread, kept);
            unions::ThreadCalls { finished: calls, open }
        });
        let window = Window { start: window.start, end: window.end };
        unions::unions(window, threads.collect(), self.lens.paths.nodes(), keep, events)
    }

    /// Returns the own time of a call that crossed the edge of a chunk, if it counts.
    fn own_after_all(&self, key: CallKey) -> Option<u64> {
        let own = || self.counted.crossing.get(&key).map_or(0, |call| call.own);
        self.counts_after_all(key).then(own)
    }

    fn counts_after_all(&self, key: CallKey) -> bool {
        !self.lens.looks_ahead() || !self.counted.left_out.contains(&key)
    }
}
