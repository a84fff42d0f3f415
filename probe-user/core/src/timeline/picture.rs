//! Makes pictures: what is visible in some rows, from one time to another, in so many pixels.

use super::Timeline;
use super::cell::{Cell, RowKey, Span, append, settle};
use super::pyramid::Node;
use crate::calls::paths::Node as Path;
use crate::recording::{ReadAt, Recording};
use crate::units::Nanos;
use rayon::prelude::*;
use std::ops::Range;

/// Pixels of a picture, at most.
pub const MOST_PIXELS: u32 = 8_192;
/// Calls of a row of a picture, at most. Calls that do not overlap are far fewer: each is as long as
/// a cell.
pub const MOST_SPANS: usize = 32_768;
/// Chunks that are read before their calls are put into rows.
const AT_ONCE: usize = 16;

/// A part of the timeline: some rows, and cells of one level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// The rows.
    pub rows: Vec<RowKey>,
    /// A cell has 2^level nanoseconds.
    pub level: u32,
    /// The first cell, in cells since time 0, and the one behind the last.
    pub cells: Range<u64>,
}

impl View {
    /// Chooses the cells for a stretch of time: the longest that are no longer than a pixel.
    pub fn new(rows: Vec<RowKey>, time: Range<Nanos>, pixels: u32) -> Self {
        let length = time.end.since(time.start).0.max(1);
        let pixels = u64::from(pixels.clamp(1, MOST_PIXELS));
        let level = (length / pixels).checked_ilog2().unwrap_or(0);
        let first = time.start.0 >> level;
        let last = (time.start.0.saturating_add(length) - 1) >> level;
        Self { rows, level, cells: first..last.max(first).saturating_add(1) }
    }

    /// Returns its beginning, and its end if that is before the end of time.
    fn times(&self) -> (u64, u64) {
        let end = u128::from(self.cells.end) << self.level;
        (self.cells.start << self.level, u64::try_from(end).unwrap_or(u64::MAX))
    }
}

/// A row of a picture.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PictureRow {
    /// The cells that calls shorter than a cell touch, in order of time.
    pub cells: Vec<Cell>,
    /// The other calls, in order of time.
    pub spans: Vec<Span>,
    /// The number of calls that `spans` has no room for. It has the longest.
    pub left_out: u64,
}

/// What is visible of a [`View`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// As many as the view has.
    pub rows: Vec<PictureRow>,
    /// The cells from which something may be missing, for all rows.
    pub lost: Vec<Range<u64>>,
}

impl PictureRow {
    #[inline]
    fn cell(&mut self, cell: Cell, view: &View) {
        if view.cells.contains(&cell.at) {
            append(&mut self.cells, cell);
        }
    }

    /// Adds a call of the row that touches the view.
    #[inline]
    fn push(&mut self, span: &Span, view: &View, paths: &[Path]) {
        if !span.is_small(view.level) {
            self.spans.push(*span);
            return;
        }
        Cell::each(span, view.level, paths, |cell| self.cell(cell, view));
    }

    fn finish(mut self) -> Self {
        settle(&mut self.cells);
        if self.spans.len() > MOST_SPANS {
            self.spans.sort_by_key(|span| (std::cmp::Reverse(span.duration), span.order()));
            self.left_out = (self.spans.len() - MOST_SPANS) as u64;
            self.spans.truncate(MOST_SPANS);
        }
        self.spans.sort_by_key(Span::order);
        self
    }
}

impl Timeline {
    /// Returns what is visible of a view. The time that it takes depends on the pixels and rows, not
    /// on the calls, except for the calls of chunks that must be read.
    pub fn picture<R: ReadAt>(&self, recording: &Recording<R>, view: &View) -> Picture {
        let (from, to) = view.times();
        let paths = recording.nodes();
        let mut rows: Vec<PictureRow> = vec![PictureRow::default(); view.rows.len()];
        let (mut whole, mut split, mut leaves) = (Vec::new(), Vec::new(), Vec::new());
        if let Some(root) = &self.pyramid.root {
            sort_out(root, view.level, (from, to), &mut whole, &mut split, &mut leaves);
        }
        rows.par_iter_mut().zip(&view.rows).for_each(|(row, key)| {
            for node in &whole {
                let Some(tile) = &node.tile else { continue };
                let mut spans = Vec::new();
                let mut keep = |span: Span| spans.extend(span.touches(from, to).then_some(span));
                tile.read(*key, view.level, |cell| row.cell(cell, view), &mut keep);
                spans.iter().for_each(|span| row.push(span, view, paths));
            }
            let kept = split.iter().map(|node| &node.own).chain([&self.pyramid.loose]);
            kept.flat_map(|kept| of_row(kept, *key, from, to))
                .for_each(|span| row.push(span, view, paths));
        });
        for numbers in leaves.chunks(AT_ONCE) {
            let get =
                |number: &usize| self.leaves.get(recording, *number, &recording.chunks()[*number]);
            let read: Vec<_> = numbers.par_iter().map(get).collect();
            rows.par_iter_mut().zip(&view.rows).for_each(|(row, key)| {
                // The calls of a row come latest first.
                let first = row.cells.len();
                for leaf in read.iter().rev() {
                    leaf.row(*key, from, to).for_each(|span| row.push(span, view, paths));
                }
                row.cells[first..].reverse();
            });
        }
        let rows = rows.into_par_iter().map(PictureRow::finish).collect();
        Picture { rows, lost: self.lost(view) }
    }

    /// Returns the cells of stretches of time from which something may be missing.
    fn lost(&self, view: &View) -> Vec<Range<u64>> {
        let (from, to) = view.times();
        let first = self.pyramid.facts.lost.partition_point(|(_, end)| *end < from);
        let mut lost: Vec<Range<u64>> = Vec::new();
        for (start, end) in
            self.pyramid.facts.lost[first..].iter().take_while(|(start, _)| *start < to)
        {
            let start = (start >> view.level).max(view.cells.start);
            let end = (end >> view.level).saturating_add(1).min(view.cells.end);
            match lost.last_mut() {
                Some(last) if last.end >= start => last.end = last.end.max(end),
                _ => lost.push(start..end),
            }
        }
        lost
    }
}

/// Finds the nodes whose tiles have this level, the nodes above them, and the chunks that must be
/// read, all in order of time.
fn sort_out<'a>(
    node: &'a Node,
    level: u32,
    (from, to): (u64, u64),
    whole: &mut Vec<&'a Node>,
    split: &mut Vec<&'a Node>,
    leaves: &mut Vec<usize>,
) {
    if !node.touches(from, to) {
        return;
    }
    if node.tile.as_ref().is_some_and(|tile| tile.level <= level) {
        whole.push(node);
        return;
    }
    split.push(node);
    if node.children.is_empty() {
        leaves.push(node.chunk);
    }
    for child in &node.children {
        sort_out(child, level, (from, to), whole, split, leaves);
    }
}

/// Returns the calls of a row that touch a stretch of time, among those that are kept by row.
pub(super) fn of_row(
    kept: &[(RowKey, Span)],
    key: RowKey,
    from: u64,
    to: u64,
) -> impl Iterator<Item = &Span> {
    let first = kept.partition_point(|(other, _)| *other < key);
    let rest = &kept[first..];
    let of_row = &rest[..rest.partition_point(|(other, _)| *other == key)];
    of_row.iter().map(|(_, span)| span).filter(move |span| span.touches(from, to))
}
