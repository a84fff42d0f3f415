//! Rows at one level, while the pyramid is built: cells, and the calls at least as long as a cell.

use super::cell::{Cell, RowKey, Span, append, merge, settle};
use crate::calls::paths::Node;
use std::collections::BTreeMap;

/// Cells and calls of a band, at most: many bands are in memory at a time. At a level whose cells are
/// longer than its stretch of time, a row has two cells at most.
pub(super) const MOST_ENTRIES: usize = 1 << 16;

/// A row at the level of its band.
#[derive(Clone, Debug, Default)]
pub(super) struct BandRow {
    /// In order of time.
    pub(super) cells: Vec<Cell>,
    /// Calls at least as long as a cell, in order of time.
    pub(super) spans: Vec<Span>,
}

/// The rows of a stretch of time at one level.
#[derive(Clone, Debug, Default)]
pub(super) struct Band {
    pub(super) level: u32,
    pub(super) rows: BTreeMap<RowKey, BandRow>,
}

impl BandRow {
    /// Adds a call. [`Self::settle`] is due after the last one.
    #[inline]
    pub(super) fn push(&mut self, span: Span, level: u32, nodes: &[Node]) {
        if !span.is_small(level) {
            self.spans.push(span);
            return;
        }
        Cell::each(&span, level, nodes, |cell| append(&mut self.cells, cell));
    }

    /// Puts everything in order of time.
    pub(super) fn settle(&mut self) {
        settle(&mut self.cells);
        self.spans.sort_by_key(Span::order);
    }

    /// Goes one level up: calls that are shorter than the longer cells are added to these.
    fn coarsen(&mut self, level: u32, nodes: &[Node]) {
        self.cells.iter_mut().for_each(|cell| cell.at >>= 1);
        let mut more = Vec::new();
        self.spans.retain(|span| {
            let is_small = span.is_small(level);
            if is_small {
                Cell::each(span, level, nodes, |cell| append(&mut more, cell));
            }
            !is_small
        });
        settle(&mut self.cells);
        if !more.is_empty() {
            settle(&mut more);
            self.cells = merge(&self.cells, &more);
        }
    }
}

impl Band {
    pub(super) fn new(level: u32) -> Self {
        Self { level, rows: BTreeMap::new() }
    }

    /// Goes up to a level.
    pub(super) fn coarsen_to(&mut self, level: u32, nodes: &[Node]) {
        while self.level < level {
            self.level += 1;
            self.rows.values_mut().for_each(|row| row.coarsen(self.level, nodes));
        }
    }

    /// Returns the number of cells.
    pub(super) fn cells(&self) -> usize {
        self.rows.values().map(|row| row.cells.len()).sum()
    }

    /// Goes up until there are few enough cells and calls, or to a level whose cells are longer than its
    /// stretch of time. Calls that overlap are as many as they like.
    pub(super) fn limit(&mut self, top: u32, nodes: &[Node]) {
        let of = |row: &BandRow| row.cells.len() + row.spans.len();
        while self.level < top && self.rows.values().map(of).sum::<usize>() > MOST_ENTRIES {
            self.coarsen_to(self.level + 1, nodes);
        }
        for row in self.rows.values_mut() {
            row.cells.shrink_to(2 * row.cells.len());
            row.spans.shrink_to(2 * row.spans.len());
        }
    }

    /// Adds a band of the same level that has a later stretch of time.
    pub(super) fn append(&mut self, later: Self) {
        for (key, mut row) in later.rows {
            let here = self.rows.entry(key).or_default();
            here.cells.append(&mut row.cells);
            here.spans.append(&mut row.spans);
        }
    }

    /// Adds single calls and puts all in order.
    pub(super) fn finish(&mut self, calls: &[(RowKey, Span)], nodes: &[Node]) {
        for (key, span) in calls {
            self.rows.entry(*key).or_default().push(*span, self.level, nodes);
        }
        for row in self.rows.values_mut() {
            settle(&mut row.cells);
            row.spans.sort_by_key(Span::order);
        }
    }
}
