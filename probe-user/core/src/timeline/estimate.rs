//! Fills in what of a view was not read: a draft shows nothing empty only because it was not looked at.
//!
//! For the time that was not read, a cell has the average of the nearest chunk that was. Single calls are shown as they
//! are known, and are not made up.

use super::cell::{Cell, RowKey, Span, settle};
use super::part::{Average, Part};
use super::picture::{PictureRow, View};
use crate::calls::paths::Node as Path;
use crate::recording::{ChunkEntry, Recording};
use std::ops::Range;
use std::sync::Arc;

/// The cells of a view of which not all was read.
pub(super) struct Estimate<'a> {
    view: &'a View,
    /// Stretches of them.
    pub(super) unread: Vec<Range<u64>>,
    gaps: Vec<Gap<'a>>,
}

/// A cell of which not all was read.
struct Gap<'a> {
    at: u64,
    /// How many nanoseconds of it were not.
    time: u64,
    /// The nearest chunk that was.
    like: &'a Part,
}

impl<'a> Estimate<'a> {
    /// `parts`: in order of time.
    pub(super) fn new(recording: &Recording, parts: &'a [Arc<Part>], view: &'a View) -> Self {
        let chunks = recording.chunks();
        let is_read = |number: &usize| parts.binary_search_by_key(number, |part| part.number);
        let unread = touching(chunks, view).filter(|number| is_read(number).is_err());
        let unread: Vec<_> =
            unread.map(|number| (told_from(chunks, number), &chunks[number])).collect();
        let mut gaps = Vec::<Gap<'a>>::new();
        let known = parts.iter().map(|part| &**part).filter(|part| part.is_readable);
        let known: Vec<&Part> = known.collect();
        for (_, entry) in &unread {
            let (from, to) = (entry.from.0, entry.to.0);
            for at in view.touched([(from, to)].into_iter()).into_iter().flatten() {
                let (begin, end) = view.times_of(at);
                let time = end.min(to).saturating_sub(begin.max(from));
                match gaps.last_mut() {
                    Some(last) if last.at == at => last.time += time,
                    _ => {
                        let like = nearest(&known, begin + (end - begin) / 2);
                        gaps.extend(like.map(|like| Gap { at, time, like }));
                    }
                }
            }
        }
        let unread = unread.into_iter().map(|(from, entry)| (from, entry.to.0));
        Self { view, unread: view.touched(unread), gaps }
    }

    /// Fills a row, which was finished.
    pub(super) fn fill(&self, row: &mut PictureRow, key: RowKey, nodes: &[Path]) {
        let mut average: Option<(usize, Average)> = None;
        let mut spans = row.spans.iter().peekable();
        let mut covered_to = 0;
        for Gap { at, time, like } in &self.gaps {
            let (begin, end) = self.view.times_of(*at);
            while let Some(span) = spans.next_if(|span| span.start.0 <= begin) {
                covered_to = covered_to.max(span.end().0);
            }
            if covered_to >= end {
                continue;
            }
            if average.as_ref().is_none_or(|(number, _)| *number != like.number) {
                average = Some((like.number, like.average(key, nodes)));
            }
            let Some((_, Average { time: of, sum: Some(sum) })) = &average else { continue };
            let covered = scaled(sum.covered, *time, *of).min(*time);
            row.cells.push(Cell { at: *at, covered, count: scaled(sum.count, *time, *of), ..*sum });
        }
        settle(&mut row.cells);
    }
}

/// Returns the chunks that tell of the time of a view.
pub(super) fn touching(chunks: &[ChunkEntry], view: &View) -> Range<usize> {
    let (from, to) = view.times();
    let first = chunks.partition_point(|entry| entry.to.0 < from);
    let before = chunks.partition_point(|entry| entry.to.0 < to);
    first..(before + 1).min(chunks.len()).max(first)
}

/// Returns the time from which a chunk is the first to tell of calls: that behind the chunk before it. A recording of
/// the last seconds has calls that began before its first chunk.
fn told_from(chunks: &[ChunkEntry], number: usize) -> u64 {
    number.checked_sub(1).map_or(0, |before| chunks[before].to.0)
}

/// Returns the part that is nearest to a time.
fn nearest<'a>(parts: &[&'a Part], time: u64) -> Option<&'a Part> {
    let place = parts.partition_point(|part| part.to < time);
    let before = place.checked_sub(1).map(|before| parts[before]);
    let after = parts.get(place).copied();
    match (before, after) {
        (Some(before), Some(after)) => {
            let is_nearer = time - before.to < after.from.saturating_sub(time);
            Some(if is_nearer { before } else { after })
        }
        (before, after) => before.or(after),
    }
}

/// Returns `value` of `part` nanoseconds for `whole` nanoseconds, rounded.
fn scaled(value: u64, whole: u64, part: u64) -> u64 {
    let scaled = (u128::from(value) * u128::from(whole) + u128::from(part / 2)) / u128::from(part);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// Adds what a part has of a row.
pub(super) fn show(row: &mut PictureRow, part: &Part, key: RowKey, view: &View, nodes: &[Path]) {
    let (from, to) = view.times();
    let (cells, spans) = part.row(key);
    for cell in cells {
        row.cell(Cell { at: cell.at >> (view.level - part.level), ..*cell }, view);
    }
    let touching = |span: &&Span| span.touches(from, to);
    spans.iter().filter(touching).for_each(|span| row.push(span, view, nodes));
}
