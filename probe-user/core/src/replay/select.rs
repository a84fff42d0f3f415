//! The calls that count, chunk by chunk, once the first pass has said which of those that cross the
//! edges of chunks do.

use super::clip::clip;
use super::count::Counted;
use super::lens::Lens;
use super::spans::CallKey;
use super::walk::Walk;
use crate::record::{Chunk, ChunkEntry, ReadAt, Recording, ThreadCalls};
use crate::spool::Call;
use crate::unions::OpenCall;
use crate::units::ThreadId;
use rayon::prelude::*;
use std::collections::HashSet;

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
    /// For callees that are asked for.
    walk: Option<Walk<'a>>,
    counts: Vec<bool>,
}

impl<'a, R: ReadAt> Selected<'a, R> {
    pub(crate) fn new(
        recording: &'a Recording<R>,
        lens: &'a Lens<'a>,
        counted: &'a Counted,
    ) -> Self {
        let walk = lens.asks_for_callees().then(|| Walk::new(lens, recording.nodes()));
        Self { recording, lens, counted, walk, counts: Vec::new() }
    }

    /// The chunk as the query sees it; nothing if it cannot be read, which is counted elsewhere.
    pub(crate) fn read(&self, entry: &ChunkEntry) -> Option<Chunk> {
        Some(clip(self.recording.chunk(entry).ok()?, &self.lens.window))
    }

    /// Shows the calls of a thread that count, latest first, with the query's nodes.
    #[inline]
    pub(crate) fn calls(
        &mut self,
        chunk: &Chunk,
        thread: &ThreadCalls,
        mut show: impl FnMut(Call, u32),
    ) {
        let lens = self.lens;
        self.all_calls(chunk, thread, |_, call, node| {
            if let Some(node) = node.filter(|_| lens.is_in_window(call.end())) {
                show(call, node);
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
        if !self.lens.selects_thread(self.recording.thread(thread.thread)) {
            return;
        }
        let calls = chunk.calls(thread);
        if let Some(walk) = &mut self.walk {
            self.counts.clear();
            self.counts.resize(calls.len(), false);
            let counts = &mut self.counts;
            walk.thread(chunk.from.0, calls, &thread.open, |seen| {
                counts[seen.place] = seen.counts_at.is_some();
            });
        }
        for (place, call) in calls.iter().enumerate() {
            let call = call.0;
            let mut node = self.lens.node(call.node);
            if !self.lens.is_long_enough(call.duration, call.timed) {
                node = None;
            }
            if self.walk.is_some() && node.is_some() {
                let crosses = call.start < chunk.from.0;
                let counts = match crosses {
                    true => self.counts_after_all(thread.thread, call.start, call.node),
                    false => self.counts[place],
                };
                node = node.filter(|_| counts);
            }
            show(place, call, node);
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
            let end = ends.map_or(u64::MAX, |(duration, _)| start.saturating_add(*duration));
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

    fn counts_after_all(&self, thread: ThreadId, start: u64, recorded: u32) -> bool {
        !self.lens.looks_ahead() || !self.counted.left_out.contains(&(thread, start, recorded))
    }
}
