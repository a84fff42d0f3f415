//! The calls of a chunk by rows, and those kept for the next pictures.

use super::cell::{RowKey, Span};
use crate::calls::paths::Node;
use crate::formats::Ended;
use crate::recording::{Chunk, ChunkEntry, ReadAt, Recording};
use crate::units::Nanos;
use std::sync::{Arc, Mutex, PoisonError};

/// Memory for the calls of chunks that were shown lately.
const MOST_KEPT: usize = 64 << 20;

/// The calls that are entirely within a chunk, by rows.
#[derive(Debug, Default)]
pub(super) struct Leaf {
    /// In order of rows. A row's calls are those of the chunk: the latest to end first.
    pub(super) rows: Vec<(RowKey, Vec<Span>)>,
}

impl Leaf {
    /// Takes a chunk apart. Returns also the calls that began before it.
    pub(super) fn of(chunk: &Chunk, nodes: &[Node]) -> (Self, Vec<(RowKey, Span)>) {
        let (mut rows, mut crossing) = (Vec::<(RowKey, Vec<Span>)>::new(), Vec::new());
        // The place of the thread's row in `rows`, by depth, and 1; 0 if there is none.
        let mut places: Vec<u32> = Vec::new();
        let window = (chunk.from.0, chunk.to.0);
        for of_thread in chunk.threads() {
            let first = rows.len();
            for call in chunk.calls(of_thread) {
                let depth = nodes[call.path() as usize].depth.saturating_sub(1);
                let ended = if call.is_timed() { Ended::Timed } else { Ended::Untimed };
                let (start, duration, path) = (call.start(), call.duration(), call.path());
                let span = Span { start, duration, path, ended };
                if !is_within(&span, window) {
                    crossing.push((RowKey { thread: of_thread.thread, depth }, span));
                    continue;
                }
                if places.len() <= depth as usize {
                    places.resize(depth as usize + 1, 0);
                }
                let place = &mut places[depth as usize];
                if *place == 0 {
                    rows.push((RowKey { thread: of_thread.thread, depth }, Vec::new()));
                    *place = rows.len() as u32;
                }
                rows[*place as usize - 1].1.push(span);
            }
            rows[first..].iter().for_each(|(key, _)| places[key.depth as usize] = 0);
        }
        // A hostile chunk may name a thread twice.
        rows.sort_by_key(|(key, _)| *key);
        rows.dedup_by(|(next, calls), (key, all)| {
            let is_same = next == key;
            if is_same {
                all.append(calls);
                all.sort_by_key(|span| std::cmp::Reverse(span.end()));
            }
            is_same
        });
        (Self { rows }, crossing)
    }

    /// Returns the calls of a row that touch a stretch of time.
    pub(super) fn row(&self, key: RowKey, from: u64, to: u64) -> impl Iterator<Item = &Span> {
        let place = self.rows.binary_search_by_key(&key, |(key, _)| *key);
        let calls = place.map_or(&[][..], |place| self.rows[place].1.as_slice());
        // Sorted by their ends, unless a damaged file has impossible times.
        let is_sorted = calls.first().is_none_or(|first| first.end().0 < u64::MAX);
        let last = match is_sorted {
            true => calls.partition_point(|span| span.end().0 >= from),
            false => calls.len(),
        };
        calls[..last].iter().filter(move |span| span.touches(from, to))
    }

    fn bytes(&self) -> usize {
        let of_row = |calls: &Vec<Span>| calls.capacity() * size_of::<Span>() + 64;
        self.rows.iter().map(|(_, calls)| of_row(calls)).sum()
    }
}

/// True if a call is entirely within a stretch of time.
pub(super) fn is_within(span: &Span, (from, to): (u64, u64)) -> bool {
    from <= span.start.0 && span.end().0 <= to
}

/// Returns the calls that are open at the end of a recording, if this is its last chunk.
pub(super) fn open_calls(chunk: &Chunk, end: Nanos, nodes: &[Node]) -> Vec<(RowKey, Span)> {
    let threads = chunk.threads().iter();
    let open = threads.flat_map(|thread| thread.open.iter().map(|call| (thread.thread, call)));
    open.map(|(thread, call)| {
        let depth = nodes[call.path as usize].depth.saturating_sub(1);
        let duration = end.since(call.start);
        let span = Span { start: call.start, duration, path: call.path, ended: Ended::Open };
        (RowKey { thread, depth }, span)
    })
    .collect()
}

/// The calls of some chunks, by the chunk's number, those last used at the end.
#[derive(Debug, Default)]
pub(super) struct Leaves(Mutex<Vec<(usize, Arc<Leaf>)>>);

impl Leaves {
    /// Returns the calls of a chunk. One that cannot be read has none: it is shown as lost.
    pub(super) fn get<R: ReadAt>(
        &self,
        recording: &Recording<R>,
        number: usize,
        entry: &ChunkEntry,
    ) -> Arc<Leaf> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        {
            let mut kept = lock();
            if let Some(place) = kept.iter().position(|(other, _)| *other == number) {
                let found = kept.remove(place);
                kept.push(found.clone());
                return found.1;
            }
        }
        let leaf = recording.chunk(entry).map(|chunk| Leaf::of(&chunk, recording.nodes()).0);
        let leaf = Arc::new(leaf.unwrap_or_default());
        let mut kept = lock();
        kept.push((number, Arc::clone(&leaf)));
        let mut bytes: usize = kept.iter().map(|(_, leaf)| leaf.bytes()).sum();
        while bytes > MOST_KEPT && kept.len() > 1 {
            bytes -= kept.remove(0).1.bytes();
        }
        leaf
    }
}
