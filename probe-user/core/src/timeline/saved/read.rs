//! Reads a tree from bytes, of which none is believed.

use super::{CHECKSUM, MARK};
use crate::formats::Ended;
use crate::recording::Recording;
use crate::recording::varint::take;
use crate::timeline::cell::{RowKey, Span};
use crate::timeline::pyramid::{
    FAN, Facts, MOST_CROSSING, MOST_ROWS, MOST_THREADS, Node, Pyramid, ThreadFacts,
};
use crate::timeline::tile::Tile;
use crate::units::{Nanos, ThreadId};
use std::ops::Range;
use std::sync::Arc;

/// The most layers of a tree: with more, it would have more chunks than a recording can.
const MOST_LAYERS: u32 = 16;

struct Source<'a> {
    recording: &'a Recording,
    /// The greatest number of rows of a thread, and of its calls.
    depths: u32,
    calls: u64,
    all: &'a Arc<Vec<u8>>,
    /// The bytes that are left.
    rest: Range<usize>,
    /// Calls kept by themselves so far, and nodes.
    kept: usize,
    nodes: usize,
}

pub(super) fn pyramid(recording: &Recording, header: &[u8], bytes: Vec<u8>) -> Option<Pyramid> {
    let inside = bytes.strip_prefix(&MARK)?;
    let (inside, checksum) = inside.split_last_chunk::<CHECKSUM>()?;
    if crc32fast::hash(inside) != u32::from_le_bytes(*checksum) {
        return None;
    }
    let rest = MARK.len()..MARK.len() + inside.len();
    let depths = recording.nodes().iter().map(|node| node.depth).max().unwrap_or(0);
    let calls = recording.ended_calls().saturating_add(MOST_CROSSING as u64);
    let mut source =
        Source { recording, depths, calls, all: &Arc::new(bytes), rest, kept: 0, nodes: 0 };
    let length = source.length(header.len())?;
    if source.bytes(length)? != header {
        return None;
    }
    let facts = source.facts()?;
    let loose = source.calls()?;
    let root = match source.number()? {
        0 => None,
        _ => Some(source.node(0)?),
    };
    let is_whole = source.rest.is_empty() && root.is_some() != recording.chunks().is_empty();
    is_whole.then_some(Pyramid { root, loose, facts })
}

impl<'a> Source<'a> {
    fn number(&mut self) -> Option<u64> {
        let mut rest = &self.all[self.rest.clone()];
        let number = take(&mut rest).ok()?;
        self.rest.start = self.rest.end - rest.len();
        Some(number)
    }

    fn small(&mut self) -> Option<u32> {
        self.number()?.try_into().ok()
    }

    /// Takes the number of things, each of a byte at least.
    fn length(&mut self, most: usize) -> Option<usize> {
        let length = usize::try_from(self.number()?).ok()?;
        (length <= most.min(self.rest.len())).then_some(length)
    }

    fn range(&mut self, length: usize) -> Option<Range<usize>> {
        let end = self.rest.start.checked_add(length).filter(|end| *end <= self.rest.end)?;
        let range = self.rest.start..end;
        self.rest.start = end;
        Some(range)
    }

    fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let range = self.range(length)?;
        Some(&self.all[range])
    }

    fn facts(&mut self) -> Option<Facts> {
        let mut facts = Facts::default();
        for _ in 0..self.length(MOST_THREADS)? {
            let (id, depths) = (ThreadId(self.small()?), self.small()?);
            let (calls, first, last) = (self.number()?, self.number()?, self.number()?);
            let thread = ThreadFacts { depths, calls, first: Nanos(first), last: Nanos(last) };
            let is_known = depths <= self.depths && calls <= self.calls;
            if !is_known || facts.threads.insert(id, thread).is_some() {
                return None;
            }
        }
        let most_lost = self.recording.chunks().len() + self.recording.missing().len();
        for _ in 0..self.length(most_lost)? {
            facts.lost.push((self.number()?, self.number()?));
        }
        facts.unreadable_calls = self.number()?;
        let is_sound = facts.lost.iter().all(|(from, to)| from <= to)
            && facts.lost.is_sorted_by(|one, next| one.1 < next.0);
        is_sound.then_some(facts)
    }

    fn node(&mut self, layer: u32) -> Option<Node> {
        let (from, to) = (self.number()?, self.number()?);
        let chunk = usize::try_from(self.number()?).ok()?;
        let tile = match self.number()? {
            0 => None,
            _ => Some(self.tile()?),
        };
        let own = self.calls()?;
        let count = self.length(FAN)?;
        self.nodes += 1;
        let chunks = self.recording.chunks().len();
        let is_sound =
            chunk < chunks && from <= to && layer < MOST_LAYERS && self.nodes <= 2 * chunks;
        let children = match is_sound {
            true => (0..count).map(|_| self.node(layer + 1)).collect::<Option<_>>()?,
            false => return None,
        };
        Some(Node { from, to, chunk, children, tile, own })
    }

    fn tile(&mut self) -> Option<Tile> {
        let (from, level, levels) = (self.number()?, self.small()?, self.small()?);
        let row = |source: &mut Self| Some((source.key()?, source.small()?));
        let rows = (0..self.length(MOST_ROWS)?).map(|_| row(self)).collect::<Option<_>>()?;
        let length = self.length(usize::MAX)?;
        let bytes = (Arc::clone(self.all), self.range(length)?);
        let tile = Tile { from, level, levels, rows, bytes };
        let (paths, functions) = (self.recording.nodes().len(), self.recording.functions().len());
        tile.is_sound(paths, functions).then_some(tile)
    }

    fn key(&mut self) -> Option<RowKey> {
        Some(RowKey { thread: ThreadId(self.small()?), depth: self.small()? })
    }

    fn calls(&mut self) -> Option<Vec<(RowKey, Span)>> {
        let count = self.length(MOST_CROSSING - self.kept)?;
        self.kept += count;
        let call = |source: &mut Self| {
            let key = source.key()?;
            let (start, duration) = (Nanos(source.number()?), Nanos(source.number()?));
            let paths = 1..source.recording.nodes().len() as u64;
            let path = source.number().filter(|path| paths.contains(path))? as u32;
            let ended = match source.number()? {
                0 => Ended::Timed,
                1 => Ended::Untimed,
                2 => Ended::Open,
                _ => return None,
            };
            Some((key, Span { start, duration, path, ended }))
        };
        let calls = (0..count).map(|_| call(self)).collect::<Option<Vec<_>>>()?;
        calls.is_sorted_by_key(|(key, _)| *key).then_some(calls)
    }
}
