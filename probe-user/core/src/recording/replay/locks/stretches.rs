//! The stretches of time in which calls may be missing.

use crate::recording::ChunkEntry;
use std::iter;
use std::ops::Range;

/// The distance between a loss and the chunk that tells of it, at most. The kernel's count is read when
/// later chunks have begun already, and the first chunk that ends then has all of what was lost since the
/// last look, wherever that belongs.
const MARGIN: u64 = 2_000_000_000;

/// Apart from each other, in order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Stretches(Vec<Range<u64>>);

impl Stretches {
    pub(super) fn everywhere() -> Self {
        Self(iter::once(0..u64::MAX).collect())
    }

    /// Returns those around chunks that tell of losses, and around gaps between chunks.
    pub(super) fn around(chunks: &[ChunkEntry], telling: impl Iterator<Item = Range<u64>>) -> Self {
        let widen = |of: Range<u64>| of.start.saturating_sub(MARGIN)..of.end.saturating_add(MARGIN);
        let gaps = chunks.windows(2).filter_map(|pair| gap(&pair[0], &pair[1]));
        let mut all: Vec<_> = telling.map(widen).chain(gaps).collect();
        all.sort_by_key(|of| (of.start, of.end));
        let mut apart: Vec<Range<u64>> = Vec::new();
        for of in all {
            match apart.last_mut() {
                Some(last) if of.start <= last.end => last.end = last.end.max(of.end),
                _ => apart.push(of),
            }
        }
        Self(apart)
    }

    pub(super) fn meets(&self, chunk: &ChunkEntry) -> bool {
        self.in_window(&(chunk.from.0..chunk.to.0)) > 0
    }

    /// Returns how many have a part within this time.
    pub(super) fn in_window(&self, window: &Range<u64>) -> u64 {
        let begun = self.0.partition_point(|of| of.start < window.end);
        let over = self.0.partition_point(|of| of.end <= window.start);
        begun.saturating_sub(over) as u64
    }
}

/// Returns the time between two chunks, if there is any: a part of the file is missing.
pub(super) fn gap(before: &ChunkEntry, after: &ChunkEntry) -> Option<Range<u64>> {
    (before.to < after.from).then_some(before.to.0..after.from.0)
}
