//! Fills in what of a view was not read: a draft shows nothing empty only because it was not looked at.
//!
//! Where a part of a cell was read, its calls stand for the rest of the cell. Where nothing was, the row has the
//! average of the nearest chunk that was read. Single calls are shown as they are known, and are not made up.

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
    /// How many nanoseconds of each cell of the view were read.
    read: Vec<u64>,
    /// Cells of which nothing was read, in order, each with the nearest chunk that was.
    gaps: Vec<(u64, &'a Part)>,
}

impl<'a> Estimate<'a> {
    /// `parts`: in order of time.
    pub(super) fn new(recording: &Recording, parts: &'a [Arc<Part>], view: &'a View) -> Self {
        let (from, to) = view.times();
        let chunks = recording.chunks();
        let first = chunks.partition_point(|entry| entry.to.0 < from);
        let touched = chunks[first..].iter().take_while(|entry| entry.from.0 < to);
        let is_read = |number: usize| parts.binary_search_by_key(&number, |part| part.number);
        let unread = touched.enumerate().filter(|(place, _)| is_read(first + place).is_err());
        let time = |(_, entry): (usize, &ChunkEntry)| (entry.from.0, entry.to.0);
        let unread = view.touched(unread.map(time));
        let mut estimate = Self { view, unread, read: Vec::new(), gaps: Vec::new() };
        if !estimate.unread.is_empty() {
            estimate.look(parts);
        }
        estimate
    }

    fn look(&mut self, parts: &'a [Arc<Part>]) {
        let View { level, ref cells, .. } = *self.view;
        let length = 1_u64 << level;
        self.read = vec![0; (cells.end - cells.start) as usize];
        for part in parts {
            let last = (part.to >> level).saturating_add(1).min(cells.end);
            for at in (part.from >> level).max(cells.start)..last {
                let begin = at << level;
                let end = part.to.min(begin.saturating_add(length));
                self.read[(at - cells.start) as usize] += end.saturating_sub(part.from.max(begin));
            }
        }
        let known: Vec<&Part> =
            parts.iter().map(|part| &**part).filter(|part| !part.is_empty()).collect();
        for at in self.unread.iter().cloned().flatten() {
            if self.read[(at - cells.start) as usize] == 0 {
                let middle = (at << level).saturating_add(length / 2);
                self.gaps.extend(nearest(&known, middle).map(|part| (at, part)));
            }
        }
    }

    /// Fills a row, which was finished.
    pub(super) fn fill(&self, row: &mut PictureRow, key: RowKey, nodes: &[Path]) {
        if self.unread.is_empty() {
            return;
        }
        let length = 1_u64 << self.view.level;
        for cell in &mut row.cells {
            let read = self.read[(cell.at - self.view.cells.start) as usize];
            if (1..length).contains(&read) && self.is_unread(cell.at) {
                (cell.covered, cell.count) =
                    (scaled(cell.covered, length, read), scaled(cell.count, length, read));
            }
        }
        let mut average: Option<(usize, Average)> = None;
        let mut spans = row.spans.iter().peekable();
        let mut covered_to = 0;
        for (at, part) in &self.gaps {
            let begin = at << self.view.level;
            while let Some(span) = spans.next_if(|span| span.start.0 <= begin) {
                covered_to = covered_to.max(span.end().0);
            }
            if covered_to >= begin.saturating_add(length) {
                continue;
            }
            if average.as_ref().is_none_or(|(number, _)| *number != part.number) {
                average = Some((part.number, part.average(key, nodes)));
            }
            let Some((_, Average { time, sum: Some(sum) })) = &average else { continue };
            let covered = scaled(sum.covered, length, *time).min(length);
            row.cells.push(Cell {
                at: *at,
                covered,
                count: scaled(sum.count, length, *time),
                ..*sum
            });
        }
        settle(&mut row.cells);
    }

    fn is_unread(&self, at: u64) -> bool {
        let place = self.unread.partition_point(|range| range.end <= at);
        self.unread.get(place).is_some_and(|range| range.start <= at)
    }
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
