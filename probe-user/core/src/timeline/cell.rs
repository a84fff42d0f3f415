//! The two things that a picture has in a row: cells, and the calls that are as long as a cell.
//!
//! At level L a cell has 2^L nanoseconds and begins at a multiple of that. A call that lasts shorter
//! than a cell touches one cell or two, and is added to them. Everything in a cell is a sum, a
//! maximum or a union, so two cells make the one above them exactly, in any order.

use crate::calls::paths::Node;
use crate::formats::Ended;
use crate::units::{Nanos, ThreadId};

/// A row of the timeline: the calls of a thread at one depth. Depth 0 has the outermost calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RowKey {
    /// The thread: see [`Recording::thread`](crate::recording::Recording::thread).
    pub thread: ThreadId,
    /// The number of traced calls around the calls of this row.
    pub depth: u32,
}

impl RowKey {
    /// Returns the depths of this row alone.
    pub(super) fn depths(self) -> std::ops::Range<u32> {
        self.depth..self.depth.saturating_add(1)
    }
}

/// A call of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The time at which it began.
    pub start: Nanos,
    /// Its duration, which `ended` qualifies.
    pub duration: Nanos,
    /// Its node in the tree of call paths: see [`Recording::path`](crate::recording::Recording::path).
    pub path: u32,
    /// The kind of its end.
    pub ended: Ended,
}

impl Span {
    /// Returns the time at which it ended, or the last that is known of it.
    pub fn end(&self) -> Nanos {
        self.start.saturating_add(self.duration)
    }

    /// Returns a key that sorts spans by time, the outer one first.
    pub(super) fn order(&self) -> impl Ord + use<> {
        (self.start, std::cmp::Reverse(self.duration), self.path, self.ended as u8)
    }

    /// True if some of it, or its beginning, is at or after `from` and before `to`.
    pub(super) fn touches(&self, from: u64, to: u64) -> bool {
        self.start.0 < to && (self.end().0 > from || self.start.0 >= from)
    }

    /// Returns the level whose cells are at most as long, while those of the next are longer. `None`
    /// without a duration.
    pub(super) fn class(&self) -> Option<u32> {
        self.duration.0.checked_ilog2()
    }

    /// True if it is shorter than a cell of this level.
    #[inline]
    pub(super) fn is_small(&self, level: u32) -> bool {
        self.duration.0 >> level == 0
    }
}

/// The calls of a row that touch a cell and are shorter than it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The cell's beginning, in cells since time 0.
    pub at: u64,
    /// The time in the cell that calls cover, added up: more than the cell if they overlap.
    pub covered: u64,
    /// The duration of the longest call that touches it.
    pub longest: u64,
    /// The number of calls that begin in it.
    pub count: u64,
    /// The function of the longest call; of several, the one with the lowest id.
    pub function: u32,
    /// The ways in which calls that touch it ended: [`TIMED`](Self::TIMED) and so on.
    pub ends: u8,
}

impl Cell {
    /// The end of a call was seen.
    pub const TIMED: u8 = 1;
    /// The end of a call was not seen.
    pub const UNTIMED: u8 = 2;
    /// A call is open at the end of the recording.
    pub const OPEN: u8 = 4;

    /// Returns the way in which a call ended.
    #[inline]
    pub(super) fn end_of(span: &Span) -> u8 {
        match span.ended {
            Ended::Timed => Self::TIMED,
            Ended::Untimed => Self::UNTIMED,
            Ended::Open => Self::OPEN,
        }
    }

    /// Shows the cells that a call shorter than a cell touches, in order.
    #[inline]
    pub(super) fn each(span: &Span, level: u32, nodes: &[Node], mut show: impl FnMut(Self)) {
        let function = nodes[span.path as usize].func.0;
        let (start, end) = (span.start.0, span.end().0);
        let at = start >> level;
        let ends = Self::end_of(span);
        let longest = span.duration.0;
        let next = (u128::from(at) + 1) << level;
        let after = u128::from(end).saturating_sub(next) as u64;
        let covered = end.saturating_sub(start) - after;
        show(Self { at, covered, longest, count: 1, function, ends });
        if after > 0 {
            show(Self { at: at + 1, covered: after, longest, count: 0, function, ends });
        }
    }

    /// Adds the calls of another part of the same cell.
    #[inline]
    pub(super) fn add(&mut self, other: &Self) {
        self.covered = self.covered.saturating_add(other.covered);
        self.count = self.count.saturating_add(other.count);
        self.ends |= other.ends;
        if other.longest > self.longest
            || other.longest == self.longest && other.function < self.function
        {
            (self.longest, self.function) = (other.longest, other.function);
        }
    }
}

/// Cells of a row are put in order each time they have become twice as many, from so many on.
const MANY: usize = 4_096;

/// Adds a cell behind the others, or to the last if that has its place. Calls in any order take no more
/// room than twice that of their cells: before the list grows, cells of one place are added up.
#[inline]
pub(super) fn append(cells: &mut Vec<Cell>, cell: Cell) {
    match cells.last_mut() {
        Some(last) if last.at == cell.at => last.add(&cell),
        _ => {
            if cells.len() == cells.capacity() && cells.len() >= MANY {
                settle(cells);
                if cells.len() > cells.capacity() / 2 {
                    cells.reserve(cells.len());
                }
            }
            cells.push(cell);
        }
    }
}

/// Sorts cells by time and adds those of one place.
pub(super) fn settle(cells: &mut Vec<Cell>) {
    if !cells.is_sorted_by_key(|cell| cell.at) {
        cells.sort_by_key(|cell| cell.at);
    }
    cells.dedup_by(|next, cell| {
        let is_same = next.at == cell.at;
        if is_same {
            cell.add(next);
        }
        is_same
    });
}

/// Adds up cells that are in order.
pub(super) fn merge(one: &[Cell], other: &[Cell]) -> Vec<Cell> {
    let mut all = Vec::with_capacity(one.len() + other.len());
    let (mut one, mut other) = (one.iter().peekable(), other.iter().peekable());
    loop {
        let is_before = match (one.peek(), other.peek()) {
            (Some(one), Some(other)) => one.at <= other.at,
            (one, _) => one.is_some(),
        };
        let next = if is_before { one.next() } else { other.next() };
        let Some(next) = next else { return all };
        append(&mut all, *next);
    }
}
