//! The times of which blocks are missing in the file itself. No chunk tells of them, so whoever shows
//! calls over time must be told where there may have been more.

use super::Recording;
use super::block::BlockKind;
use super::index::{ChunkEntry, Index};
use crate::units::Nanos;
use std::ops::Range;

impl Recording {
    /// Returns the times of which the file itself is missing a part, in order.
    pub fn missing(&self) -> &[Range<Nanos>] {
        &self.missing
    }
}

/// Returns the times between the chunks around each of these gaps in the file, and around each chunk that
/// was found and not taken, in order. A recording without an end is missing what came after its last
/// chunk.
pub(super) fn missing(
    index: &Index,
    gaps: &[Range<u64>],
    chunks: &[ChunkEntry],
    (start, end): (Nanos, Option<Nanos>),
) -> Vec<Range<Nanos>> {
    let is_taken = |offset| chunks.binary_search_by_key(&offset, |chunk| chunk.offset).is_ok();
    let found = index.0.iter().filter(|entry| entry.kind == BlockKind::Calls);
    let refused = found.map(|entry| entry.offset).filter(|offset| !is_taken(*offset));
    let times = gaps.iter().map(|gap| gap.start).chain(refused).map(|at| {
        let next = chunks.partition_point(|chunk| chunk.offset < at);
        let from = next.checked_sub(1).map_or(start, |last| chunks[last].to);
        let to = chunks.get(next).map_or(end.unwrap_or(Nanos::MAX), |chunk| chunk.from);
        from..to
    });
    let last = chunks.last().map_or(start, |chunk| chunk.to);
    let after = end.is_none().then_some(last..Nanos::MAX);
    let mut times: Vec<_> = times.chain(after).filter(|time| time.start < time.end).collect();
    times.sort_by_key(|time| (time.start, time.end));
    times.dedup();
    times
}

/// Adds those of the file that goes on at `begin`.
pub(super) fn append(times: &mut Vec<Range<Nanos>>, begin: Nanos, later: Vec<Range<Nanos>>) {
    times.iter_mut().for_each(|time| time.end = time.end.min(begin));
    times.retain(|time| time.start < time.end);
    times.extend(later);
}
