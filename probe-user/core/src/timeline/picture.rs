//! Makes pictures: what is visible in some rows, from one time to another, in so many pixels.

use super::Timeline;
use super::cell::{Cell, RowKey, Span, append, settle};
use super::chosen::Chosen;
use super::pyramid::{Node, of_rows};
use super::tile::Packed;
use crate::calls::paths::Node as Path;
use crate::recording::{ChunkEntry, Recording};
use crate::stop::Stop;
use crate::units::Nanos;
use rayon::prelude::*;
use std::ops::Range;

/// Pixels of a picture, at most.
pub const MOST_PIXELS: u32 = 8_192;
/// Calls of a row of a picture, at most.
pub const MOST_SPANS: usize = 32_768;
/// Calls of a picture, at most, unless they do not overlap. Those are fewer than the cells: each is as
/// long as one.
const MOST_OF_ALL: usize = 1 << 18;
/// Chunks that are read before their calls are put into rows, and their calls.
pub(super) const AT_ONCE: usize = 16;
const CALLS_AT_ONCE: u64 = 1 << 21;

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
    /// Chooses the cells for a stretch of time: as long as a pixel, or longer and shorter than two. Nobody sees
    /// shorter ones, and they would be twice as many.
    pub fn new(rows: Vec<RowKey>, time: Range<Nanos>, pixels: u32) -> Self {
        let length = time.end.since(time.start).0.max(1);
        let pixels = u64::from(pixels.clamp(1, MOST_PIXELS));
        let pixel = length.div_ceil(pixels).checked_next_power_of_two();
        let level = pixel.map_or(u64::BITS - 1, u64::ilog2);
        let first = time.start.0 >> level;
        let last = (time.start.0.saturating_add(length) - 1) >> level;
        Self { rows, level, cells: first..last.max(first).saturating_add(1) }
    }

    /// Returns how many calls a row may have.
    fn most_spans(&self) -> usize {
        let cells = self.cells.end.saturating_sub(self.cells.start) as usize;
        (MOST_OF_ALL / self.rows.len().max(1)).max(cells.saturating_add(1)).min(MOST_SPANS)
    }

    /// Returns the view of the same time, or a little more, with longer cells.
    pub(super) fn at_level(&self, level: u32) -> Self {
        let more = level - self.level;
        let last = self.cells.end.saturating_sub(1) >> more;
        let cells = self.cells.start >> more..last.saturating_add(1);
        Self { rows: self.rows.clone(), level, cells }
    }

    /// Returns the beginning of a cell, and its end if that is before the end of time.
    pub(super) fn times_of(&self, at: u64) -> (u64, u64) {
        let begin = at << self.level;
        (begin, begin.saturating_add(1 << self.level))
    }

    /// Returns its cells that stretches of time touch. These are in order of time.
    pub(super) fn touched(&self, times: impl Iterator<Item = (u64, u64)>) -> Vec<Range<u64>> {
        let (from, to) = self.times();
        let mut touched: Vec<Range<u64>> = Vec::new();
        let times = times.take_while(|(start, _)| *start < to).filter(|(_, end)| *end >= from);
        for (start, end) in times {
            let start = (start >> self.level).max(self.cells.start);
            let end = (end >> self.level).saturating_add(1).min(self.cells.end);
            match touched.last_mut() {
                Some(last) if last.end >= start => last.end = last.end.max(end),
                _ => touched.push(start..end),
            }
        }
        touched
    }

    /// Returns its beginning, and its end if that is before the end of time.
    pub(super) fn times(&self) -> (u64, u64) {
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

/// The visible part of a [`View`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Picture {
    /// As many as the view has.
    pub rows: Vec<PictureRow>,
    /// The cells from which something may be missing, for all rows.
    pub lost: Vec<Range<u64>>,
    /// The cells of which not all was read, for all rows: what they have is estimated. Only pictures of a
    /// [`Draft`](super::Draft) have any.
    pub unread: Vec<Range<u64>>,
}

impl PictureRow {
    #[inline]
    pub(super) fn cell(&mut self, cell: Cell, view: &View) {
        if view.cells.contains(&cell.at) {
            append(&mut self.cells, cell);
        }
    }

    /// Adds a call of the row that touches the view.
    #[inline]
    pub(super) fn push(&mut self, span: &Span, view: &View, paths: &[Path]) {
        if !span.is_small(view.level) {
            self.spans.push(*span);
            let most = view.most_spans();
            if self.spans.len() >= 2 * most {
                self.keep_longest(most);
            }
            return;
        }
        Cell::each(span, view.level, paths, |cell| self.cell(cell, view));
    }

    fn keep_longest(&mut self, most: usize) {
        let Some(others) = self.spans.len().checked_sub(most).filter(|others| *others > 0) else {
            return;
        };
        let by_length = |span: &Span| (std::cmp::Reverse(span.duration), span.order());
        self.spans.select_nth_unstable_by_key(most, by_length);
        self.spans.truncate(most);
        self.left_out += others as u64;
    }

    pub(super) fn finish(mut self, view: &View) -> Self {
        settle(&mut self.cells);
        self.keep_longest(view.most_spans());
        self.spans.sort_by_key(Span::order);
        self
    }
}

impl Timeline {
    /// Returns what is visible of a view. The time that it takes depends on the pixels and rows, not
    /// on the calls, except for the calls of chunks that must be read. `None` if it was stopped.
    pub fn picture(&self, recording: &Recording, view: &View, stop: &Stop) -> Option<Picture> {
        self.draw(recording, view, None, stop)
    }

    /// Returns what is visible of chosen calls alone. All chunks of the view are read for it.
    pub fn picture_of(
        &self,
        recording: &Recording,
        view: &View,
        chosen: &Chosen,
        stop: &Stop,
    ) -> Option<Picture> {
        self.draw(recording, view, Some(chosen), stop)
    }

    fn draw(
        &self,
        recording: &Recording,
        view: &View,
        chosen: Option<&Chosen>,
        stop: &Stop,
    ) -> Option<Picture> {
        let (from, to) = view.times();
        let paths = recording.nodes();
        let is_shown = |span: &Span| chosen.is_none_or(|chosen| chosen.has(span, paths));
        // Tiles have sums over all calls.
        let level = chosen.is_none().then_some(view.level);
        let mut rows: Vec<PictureRow> = vec![PictureRow::default(); view.rows.len()];
        let (mut whole, mut split, mut leaves) = (Vec::new(), Vec::new(), Vec::new());
        if let Some(root) = &self.pyramid.root {
            sort_out(root, level, (from, to), &mut whole, &mut split, &mut leaves);
        }
        rows.par_iter_mut().zip(&view.rows).for_each(|(row, key)| {
            for node in &whole {
                let Some(tile) = &node.tile else { continue };
                tile.read(*key, view.level, |packed| match packed {
                    Packed::Cell(cell) => row.cell(cell, view),
                    Packed::Span(span) if span.touches(from, to) => row.push(&span, view, paths),
                    Packed::Span(_) => {}
                });
            }
            let kept = split.iter().map(|node| &node.own).chain([&self.pyramid.loose]);
            kept.flat_map(|kept| of_rows(kept, key.thread, key.depths(), (from, to)))
                .take_while(|_| !stop.is_stopped())
                .filter(|(_, span)| is_shown(span))
                .for_each(|(_, span)| row.push(span, view, paths));
        });
        let mut leaves = leaves.as_slice();
        while !leaves.is_empty() {
            let (numbers, rest) = leaves.split_at(at_once(leaves, recording.chunks()));
            leaves = rest;
            let get = |number: &usize| {
                self.leaves.get(recording, *number, &recording.chunks()[*number], stop)
            };
            let read: Vec<_> = numbers.par_iter().map(get).collect();
            if stop.is_stopped() {
                return None;
            }
            rows.par_iter_mut().zip(&view.rows).for_each(|(row, key)| {
                for leaf in &read {
                    // In order of time, cells are added to the last one.
                    leaf.of_rows(key.thread, key.depths(), (from, to))
                        .rev()
                        .filter(|(_, span)| is_shown(span))
                        .for_each(|(_, span)| row.push(span, view, paths));
                }
            });
        }
        let rows = rows.into_par_iter().map(|row| row.finish(view)).collect();
        let picture = Picture { rows, lost: self.lost(view), unread: Vec::new() };
        Some(picture).filter(|_| !stop.is_stopped())
    }

    /// Returns the cells of stretches of time from which something may be missing.
    fn lost(&self, view: &View) -> Vec<Range<u64>> {
        let (from, _) = view.times();
        let first = self.pyramid.facts.lost.partition_point(|(_, end)| *end < from);
        view.touched(self.pyramid.facts.lost[first..].iter().copied())
    }
}

/// Returns how many of these chunks are read together: a hostile one has millions of calls.
pub(super) fn at_once(numbers: &[usize], chunks: &[ChunkEntry]) -> usize {
    let mut calls = 0_u64;
    let fits = numbers.iter().take(AT_ONCE).take_while(|number| {
        calls = calls.saturating_add(chunks[**number].calls);
        calls <= CALLS_AT_ONCE
    });
    fits.count().max(1)
}

/// Finds the nodes whose tiles have this level, if tiles are of use, the nodes above them, and the chunks that must be
/// read, all in order of time.
fn sort_out<'a>(
    node: &'a Node,
    level: Option<u32>,
    (from, to): (u64, u64),
    whole: &mut Vec<&'a Node>,
    split: &mut Vec<&'a Node>,
    leaves: &mut Vec<usize>,
) {
    if !node.touches(from, to) {
        return;
    }
    let is_fine = |level: u32| node.tile.as_ref().is_some_and(|tile| tile.level <= level);
    if level.is_some_and(is_fine) {
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
