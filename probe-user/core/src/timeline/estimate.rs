//! Fills in what of a view was not read: a draft shows nothing empty only because it was not looked at.
//!
//! The index tells how many calls each chunk has. What these are like is told by the nearest chunk that was read: a cell
//! has its average for as many calls. Single calls are shown as they are known, and are not made up.

use super::cell::{Cell, RowKey, Span, settle};
use super::part::{Average, Part, add};
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
    /// The number of calls in that time, as the index has it.
    calls: f64,
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
        let (mut known, idle): (Vec<&Part>, Vec<&Part>) = known.partition(|part| part.calls > 0);
        if known.is_empty() {
            known = idle;
        }
        for (_, entry) in &unread {
            let (from, to) = (entry.from.0, entry.to.0);
            for at in view.touched([(from, to)].into_iter()).into_iter().flatten() {
                let (begin, end) = view.times_of(at);
                let time = end.min(to).saturating_sub(begin.max(from));
                let calls = entry.calls as f64 * time as f64 / (to - from).max(1) as f64;
                match gaps.last_mut() {
                    Some(last) if last.at == at => {
                        last.time += time;
                        last.calls += calls;
                    }
                    _ => {
                        let like = nearest(&known, begin + (end - begin) / 2);
                        gaps.extend(like.map(|like| Gap { at, time, calls, like }));
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
        for gap in &self.gaps {
            let (Gap { at, like, .. }, (begin, end)) = (gap, self.view.times_of(gap.at));
            while let Some(span) = spans.next_if(|span| span.start.0 <= begin) {
                covered_to = covered_to.max(span.end().0);
            }
            if covered_to >= end {
                continue;
            }
            if average.as_ref().is_none_or(|(number, _)| *number != like.number) {
                average = Some((like.number, like.average(key, nodes)));
            }
            let of_gap = average.as_ref().and_then(|(_, average)| gap.filled(average));
            row.cells.extend(of_gap.map(|cell| Cell { at: *at, ..cell }));
        }
        settle(&mut row.cells);
    }
}

impl Gap<'_> {
    /// Returns an average for its time and calls.
    fn filled(&self, average: &Average) -> Option<Cell> {
        let scaled = |cell: Cell, scale: f64| {
            let [covered, count] =
                [cell.covered, cell.count].map(|sum| (sum as f64 * scale).round() as u64);
            Cell { covered, count, ..cell }
        };
        let of_calls = self.calls / average.calls.max(1) as f64;
        let inside = average.inside.map(|cell| scaled(cell, of_calls));
        let mut sum = inside.filter(|cell| cell.covered > 0 || cell.count > 0);
        let of_time = self.time as f64 / average.time as f64;
        average.crossing.iter().for_each(|cell| add(&mut sum, scaled(*cell, of_time)));
        sum.map(|sum| Cell { covered: sum.covered.min(self.time), ..sum })
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
