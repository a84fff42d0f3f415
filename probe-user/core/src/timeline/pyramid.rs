//! The tree of tiles over the chunks of a recording, built in one pass.
//!
//! A leaf stands for a chunk, a node above for up to 16 nodes. Each has a tile with the calls that
//! are entirely within its stretch of time. A call that is not within a child of a node is kept at
//! the node by itself: there are few, as each thread has few calls open where a chunk ends. So each
//! call is in exactly one leaf, or kept at exactly one node.

use super::TimelineError;
use super::band::Band;
use super::cell::{RowKey, Span};
use super::draft::Draft;
use super::leaf::is_within;
use super::of_chunk::{OfChunk, has_room};
use super::tile::{LEAST_OF_CELL, Tile};
use crate::recording::{ChunkEntry, Recording};
use crate::units::{Nanos, ThreadId};
use rayon::prelude::*;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// The children of a node.
pub(super) const FAN: usize = 16;
/// Levels between the longest cell of a leaf and its shortest, and the same of other nodes.
const LEAF_LEVELS: u32 = 11;
const LEVELS: u32 = 12;
/// Bytes of tiles for each call: of all nodes, and of them those of each layer above the leaves.
const OF_ALL: f64 = 0.48;
const OF_LAYER: f64 = 0.06;
/// Bytes of all tiles, about.
const MOST_BYTES: f64 = 128.0 * 1024.0 * 1024.0;
/// Rows of a tile, at most: while it is packed, each takes about a kilobyte. Where there are more,
/// pictures read chunks.
pub(super) const MOST_ROWS: usize = 1 << 15;
/// Calls kept by themselves, at most.
pub(super) const MOST_CROSSING: usize = 6 << 20;
/// Threads that have calls, at most.
pub(super) const MOST_THREADS: usize = 1 << 20;

/// A stretch of time.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) from: u64,
    pub(super) to: u64,
    /// The number of its first chunk.
    pub(super) chunk: usize,
    pub(super) children: Vec<Node>,
    pub(super) tile: Option<Tile>,
    /// Calls that are within it and within none of its children, by row.
    pub(super) own: Vec<(RowKey, Span)>,
}

impl Node {
    /// True if its time touches this stretch.
    pub(super) fn touches(&self, from: u64, to: u64) -> bool {
        self.from < to && self.to >= from
    }
}

/// The calls of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadFacts {
    /// The number of its rows: one more than the depth of its deepest call.
    pub depths: u32,
    /// The number of its calls.
    pub calls: u64,
    /// The time at which the first of them began.
    pub first: Nanos,
    /// The time at which the last of them ended.
    pub last: Nanos,
}

/// The facts of a node that its parent needs.
struct Built {
    node: Node,
    /// `None` if there are too many rows.
    band: Option<Band>,
    /// Calls that began before it or end after it.
    loose: Vec<(RowKey, Span)>,
    facts: Facts,
}

/// The facts that are gathered while the pyramid is built.
#[derive(Debug, Default)]
pub(super) struct Facts {
    pub(super) threads: BTreeMap<ThreadId, ThreadFacts>,
    /// Stretches of time from which something is missing, in order.
    pub(super) lost: Vec<(u64, u64)>,
    pub(super) unreadable_calls: u64,
}

impl Facts {
    /// Adds calls of one row.
    pub(super) fn saw(&mut self, key: RowKey, calls: &[Span]) {
        let thread = self.threads.entry(key.thread).or_insert(ThreadFacts {
            depths: 0,
            calls: 0,
            first: Nanos::MAX,
            last: Nanos::ZERO,
        });
        thread.depths = thread.depths.max(key.depth.saturating_add(1));
        thread.calls += calls.len() as u64;
        for span in calls {
            thread.first = thread.first.min(span.start);
            thread.last = thread.last.max(span.end());
        }
    }

    /// True if something is missing from a stretch of time.
    pub(super) fn loses(&self, from: u64, to: u64) -> bool {
        let first = self.lost.partition_point(|(_, end)| *end < from);
        self.lost.get(first).is_some_and(|(start, _)| *start <= to)
    }

    fn add(&mut self, later: Self) {
        for (id, other) in later.threads {
            add_thread(&mut self.threads, id, other);
        }
        unite(&mut self.lost, later.lost);
        self.unreadable_calls = self.unreadable_calls.saturating_add(later.unreadable_calls);
    }
}

/// Adds more calls of a thread.
pub(super) fn add_thread(
    threads: &mut BTreeMap<ThreadId, ThreadFacts>,
    id: ThreadId,
    other: ThreadFacts,
) {
    let thread = threads.entry(id).or_insert(ThreadFacts { calls: 0, ..other });
    thread.depths = thread.depths.max(other.depths);
    thread.calls += other.calls;
    thread.first = thread.first.min(other.first);
    thread.last = thread.last.max(other.last);
}

/// Adds stretches of time that begin later, or joins them where they touch.
fn unite(all: &mut Vec<(u64, u64)>, later: impl IntoIterator<Item = (u64, u64)>) {
    for (from, to) in later {
        match all.last_mut() {
            Some(last) if last.1 >= from => last.1 = last.1.max(to),
            _ => all.push((from, to)),
        }
    }
}

/// The tree of a recording, and what was found on the way.
#[derive(Debug, Default)]
pub(super) struct Pyramid {
    /// `None` without chunks.
    pub(super) root: Option<Node>,
    /// Calls that are not within the root, such as open ones, by row.
    pub(super) loose: Vec<(RowKey, Span)>,
    pub(super) facts: Facts,
}

/// Builds the tree of a recording.
pub(super) struct Builder<'a> {
    recording: &'a Recording,
    /// Shows what was read meanwhile.
    draft: Option<&'a Draft>,
    /// Bytes of tiles for each call, of leaves and of a layer above.
    rates: [f64; 2],
    crossing: AtomicUsize,
    /// Why there will be no tree. Nothing more is read then.
    failed: OnceLock<TimelineError>,
    /// The number of calls read.
    progress: &'a AtomicU64,
}

impl<'a> Builder<'a> {
    /// `scale`: how many times the usual bytes tiles may have.
    pub(super) fn new(
        recording: &'a Recording,
        draft: Option<&'a Draft>,
        progress: &'a AtomicU64,
        scale: f64,
    ) -> Self {
        let calls = recording.ended_calls();
        let fits = MOST_BYTES / (calls.max(1) as f64 * OF_ALL);
        let scale = scale * fits.min(1.0);
        let (mut layers, mut nodes) = (0, recording.chunks().len());
        while nodes > 1 {
            (layers, nodes) = (layers + 1, nodes.div_ceil(FAN));
        }
        let of_leaves = OF_ALL - OF_LAYER * f64::from(layers);
        let rates = [of_leaves, OF_LAYER].map(|rate| rate * scale);
        let (crossing, failed) = (AtomicUsize::new(0), OnceLock::new());
        Self { recording, draft, rates, crossing, failed, progress }
    }

    pub(super) fn build(&self) -> Result<Pyramid, TimelineError> {
        let chunks = self.recording.chunks();
        if chunks.is_empty() {
            return Ok(Pyramid::default());
        }
        let Built { node, mut loose, mut facts, .. } = self.stretch(chunks, 0);
        let missing = self.recording.missing().iter().map(|time| (time.start.0, time.end.0));
        let mut lost: Vec<_> = std::mem::take(&mut facts.lost).into_iter().chain(missing).collect();
        lost.sort_unstable();
        unite(&mut facts.lost, lost);
        if let Some(why) = self.failed.get() {
            return Err(why.clone());
        }
        loose.sort_by_key(|(key, span)| (*key, span.order()));
        Ok(Pyramid { root: Some(node), loose, facts })
    }

    fn stretch(&self, chunks: &[ChunkEntry], first: usize) -> Built {
        if let [entry] = chunks {
            return self.leaf(entry, first);
        }
        let mut step = 1;
        while step * FAN < chunks.len() {
            step *= FAN;
        }
        let parts = chunks.par_chunks(step).enumerate();
        let parts = parts.map(|(part, chunks)| self.stretch(chunks, first + part * step));
        self.join(parts.collect(), chunks, first)
    }

    fn leaf(&self, entry: &ChunkEntry, number: usize) -> Built {
        let nodes = self.recording.nodes();
        let (from, to) = (entry.from.0, entry.to.0);
        let top = top(from, to);
        let most = (entry.calls as f64 * self.rates[0]) as usize;
        // Of shorter cells, no tile would have room.
        let level = (top.saturating_sub(LEAF_LEVELS), most / LEAST_OF_CELL);
        let draft = self.draft.filter(|draft| draft.wants(number));
        let mut of = match self.failed.get() {
            Some(_) => OfChunk::default(),
            None => OfChunk::read(self.recording, number, level, draft.map(Draft::level)),
        };
        if let Some((draft, band)) = draft.zip(of.coarse.take()) {
            draft.keep(self.recording, number, band, &of);
        }
        let OfChunk { mut band, crossing: mut loose, open, mut facts, .. } = of;
        if number + 1 == self.recording.chunks().len() {
            open.iter().for_each(|(key, span)| facts.saw(*key, &[*span]));
            loose.extend(open);
        }
        self.progress.fetch_add(entry.calls, Ordering::Relaxed);
        self.take_crossing(&mut loose);
        let tile = band
            .as_mut()
            .filter(|band| has_room(band.rows.len(), most / LEAST_OF_CELL))
            .and_then(|band| Tile::pack(band, from, top, most, nodes));
        let node = Node { from, to, chunk: number, children: Vec::new(), tile, own: Vec::new() };
        Built { node, band, loose, facts }
    }

    /// Makes the node above.
    fn join(&self, parts: Vec<Built>, chunks: &[ChunkEntry], chunk: usize) -> Built {
        let nodes = self.recording.nodes();
        let from = parts.first().map_or(0, |part| part.node.from);
        let to = parts.last().map_or(from, |part| part.node.to);
        let top = top(from, to);
        let levels = parts.iter().map(|part| part.band.as_ref().map(|band| band.level));
        let lowest = levels.collect::<Option<Vec<_>>>().and_then(|all| all.into_iter().max());
        let mut band =
            lowest.map(|lowest| Band::new(lowest.max(top.saturating_sub(LEVELS)).min(top)));
        let (mut children, mut calls) = (Vec::new(), Vec::new());
        let mut facts = Facts::default();
        for part in parts {
            if let Some((band, mut of_part)) = band.as_mut().zip(part.band) {
                of_part.coarsen_to(band.level, nodes);
                band.append(of_part);
                band.limit(top, nodes);
            }
            band = band.filter(|band| band.rows.len() <= MOST_ROWS);
            facts.add(part.facts);
            if facts.threads.len() > MOST_THREADS {
                self.failed.get_or_init(|| TimelineError::TooManyThreads);
                facts.threads.clear();
            }
            calls.extend(part.loose);
            children.push(part.node);
        }
        let (mut own, loose): (Vec<_>, Vec<_>) =
            calls.into_iter().partition(|(_, span)| is_within(span, (from, to)));
        own.sort_by_key(|(key, span)| (*key, span.order()));
        own.shrink_to_fit();
        if let Some(band) = &mut band {
            band.finish(&own, nodes);
            band.limit(top, nodes);
        }
        let of_calls: u64 = chunks.iter().map(|entry| entry.calls).sum();
        let most = (of_calls as f64 * self.rates[1]) as usize;
        let tile = band.as_mut().and_then(|band| Tile::pack(band, from, top, most, nodes));
        Built { node: Node { from, to, chunk, children, tile, own }, band, loose, facts }
    }

    /// Counts calls that are kept by themselves. Those beyond the limit are not kept.
    fn take_crossing(&self, calls: &mut Vec<(RowKey, Span)>) {
        let before = self.crossing.fetch_add(calls.len(), Ordering::Relaxed);
        if before + calls.len() > MOST_CROSSING {
            self.failed.get_or_init(|| TimelineError::TooManyCrossing);
        }
        calls.truncate(MOST_CROSSING.saturating_sub(before));
    }
}

/// Returns the level whose cells are longer than a stretch of time, or the highest.
pub(super) fn top(from: u64, to: u64) -> u32 {
    (u64::BITS - to.saturating_sub(from).leading_zeros()).min(63)
}

impl Node {
    /// Adds up the bytes of tiles and of single calls, below and here.
    pub(super) fn memory(&self) -> (usize, usize) {
        let tile = self.tile.as_ref().map_or(0, Tile::memory) + size_of::<Self>();
        let own = self.own.capacity() * size_of::<(RowKey, Span)>();
        let below = self.children.iter().map(Self::memory);
        below.fold((tile, own), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }
}

/// Returns the calls of some rows of a thread that touch a stretch of time, among those that are kept by
/// row.
pub(super) fn of_rows(
    kept: &[(RowKey, Span)],
    thread: ThreadId,
    depths: Range<u32>,
    (from, to): (u64, u64),
) -> impl Iterator<Item = (RowKey, &Span)> {
    let place = |depth| kept.partition_point(|(key, _)| *key < RowKey { thread, depth });
    let of_rows = kept[place(depths.start)..place(depths.end)].iter();
    of_rows.filter(move |(_, span)| span.touches(from, to)).map(|(key, span)| (*key, span))
}
