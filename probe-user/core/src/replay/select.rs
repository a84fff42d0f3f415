//! The calls that count, chunk by chunk, once the first pass has said which of those that cross the
//! edges of chunks do.

use super::clip::clip;
use super::count::Counted;
use super::lens::Lens;
use super::spans::CallKey;
use super::walk::Walk;
use crate::rank::Keep;
use crate::record::{Chunk, ChunkEntry, ReadAt, Recording, ThreadCalls};
use crate::spool::Call;
use crate::unions::{self, OpenCall, Unions, Window};
use crate::units::{Nanos, ThreadId};
use rayon::prelude::*;
use std::collections::HashSet;
use std::ops::Range;

/// Does the work for parts of the chunks that follow each other, a part at a time for each core.
pub(crate) fn each_part<E: Sync, T: Send>(
    chunks: &[E],
    work: impl Fn(&[E]) -> T + Send + Sync,
) -> Vec<T> {
    let parts = rayon::current_num_threads().max(1);
    chunks.par_chunks(chunks.len().div_ceil(parts).max(1)).map(work).collect()
}

/// One worker's eyes.
pub(crate) struct Selected<'a, R> {
    recording: &'a Recording<R>,
    lens: &'a Lens<'a>,
    counted: &'a Counted,
    /// For callees that are asked for, and for the time that calls took themselves.
    walk: Option<Walk<'a>>,
    /// By place among the calls that the walk has seen: the call's own time, if it counts.
    walked: Vec<Option<u64>>,
}

impl<'a, R: ReadAt> Selected<'a, R> {
    pub(crate) fn new(
        recording: &'a Recording<R>,
        lens: &'a Lens<'a>,
        counted: &'a Counted,
    ) -> Self {
        let walk = lens.asks_for_callees().then(|| Walk::new(lens, recording.nodes()));
        Self { recording, lens, counted, walk, walked: Vec::new() }
    }

    /// The same, for [`Self::calls_with_own`].
    pub(crate) fn with_own(
        recording: &'a Recording<R>,
        lens: &'a Lens<'a>,
        counted: &'a Counted,
    ) -> Self {
        let walk = Some(Walk::new(lens, recording.nodes()));
        Self { recording, lens, counted, walk, walked: Vec::new() }
    }

    /// The chunk as the query sees it; nothing if it cannot be read, which is counted elsewhere.
    pub(crate) fn read(&self, entry: &ChunkEntry) -> Option<Chunk> {
        Some(clip(self.recording.chunk(entry).ok()?, &self.lens.window))
    }

    /// The part of a stretch of time that is of the query's window.
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

    /// The same, with the time that each call took itself, if this is made to tell it.
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

    /// Shows all calls of a thread that is looked at, with their places: those from before the
    /// window, too, and those that do not count without a node.
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
            walk.thread(chunk.from.0, calls, &thread.open, |seen| {
                walked[seen.place] = seen.counts_at.map(|_| seen.own);
            });
        }
        for (place, call) in calls.iter().enumerate() {
            let call = call.0;
            let mut node = self.lens.node(call.node);
            if !self.lens.is_long_enough(call.duration, call.timed) {
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

    /// The calls that are open at the chunk's end and count, outermost first.
    /// `kept`: those that will end and be in a center.
    pub(crate) fn open(
        &self,
        chunk: &Chunk,
        thread: &ThreadCalls,
        kept: &HashSet<CallKey>,
    ) -> Vec<OpenCall> {
        if !self.lens.selects_thread(self.recording.thread(thread.thread)) {
            return Vec::new();
        }
        let open = thread.open.iter().filter_map(|open| {
            let node = self.lens.node(open.path)?;
            let start = open.start.0;
            let key = (thread.thread, start, open.path);
            let ends = self.counted.crossing.get(&key);
            let end = ends.map_or(u64::MAX, |call| start.saturating_add(call.duration));
            let counts = self.counts_after_all(thread.thread, start, open.path);
            (counts && end > chunk.from.0).then(|| OpenCall {
                start,
                node,
                kept: kept.contains(&key),
                end,
            })
        });
        open.collect()
    }

    /// The unions within a stretch of time of the chunk's calls, which were shown thread by thread.
    pub(crate) fn unions(
        &self,
        chunk: &Chunk,
        shown: impl IntoIterator<Item = impl Iterator<Item = Call>>,
        window: Range<u64>,
        keep: &[Keep],
        kept: &HashSet<CallKey>,
    ) -> Unions {
        let threads = chunk.threads().iter().zip(shown).map(|(thread, calls)| {
            unions::ThreadCalls { finished: calls, open: self.open(chunk, thread, kept) }
        });
        let window = Window { start: window.start, end: window.end };
        unions::unions(window, threads.collect(), self.lens.paths.nodes(), keep)
    }

    /// What a call that crossed the edge of a chunk took itself, if it counts.
    fn own_after_all(&self, key: CallKey) -> Option<u64> {
        let (thread, start, recorded) = key;
        let own = || self.counted.crossing.get(&key).map_or(0, |call| call.own);
        self.counts_after_all(thread, start, recorded).then(own)
    }

    fn counts_after_all(&self, thread: ThreadId, start: u64, recorded: u32) -> bool {
        !self.lens.looks_ahead() || !self.counted.left_out.contains(&(thread, start, recorded))
    }
}
