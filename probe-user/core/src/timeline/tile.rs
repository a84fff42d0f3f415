//! The rows of a stretch of time at several levels, packed.
//!
//! A row has a table with the length of each level's cells and of the calls that are as long as a
//! cell of that level but not of the next, then all cells, the finest level first, then all those
//! calls in the same order. So a picture reads the cells of one level and a tail of the calls.

use super::band::Band;
use super::cell::{Cell, RowKey, Span};
use super::numbers;
use crate::calls::paths::{Node, ROOT};
use crate::formats::Ended;
use crate::units::Nanos;
use std::ops::Range;
use std::sync::Arc;

/// Bytes of a cell, at least, unless its calls have no duration.
pub(super) const LEAST_OF_CELL: usize = 5;

/// Rows of a stretch of time, packed. The cells of its highest level are longer than the stretch.
#[derive(Debug)]
pub(super) struct Tile {
    pub(super) from: u64,
    /// The lowest level.
    pub(super) level: u32,
    pub(super) levels: u32,
    /// The rows, in order, each with the place of its bytes.
    pub(super) rows: Box<[(RowKey, u32)]>,
    /// Its bytes are a part of these: tiles that were [saved](super::saved) share what was read.
    pub(super) bytes: (Arc<Vec<u8>>, Range<usize>),
}

/// A row's part of a tile.
pub(super) enum Packed {
    Cell(Cell),
    Span(Span),
}

/// The bytes of a row, level by level.
struct PackedRow {
    key: RowKey,
    cells: Vec<Vec<u8>>,
    spans: Vec<Vec<u8>>,
}

impl PackedRow {
    fn bytes(&self, level: usize) -> usize {
        let lengths = [self.cells[level].len(), self.spans[level].len()];
        // A pair of levels has one head for its lengths.
        let of_lengths = lengths.map(|length| numbers::bytes_of(length as u64));
        1 + lengths.into_iter().chain(of_lengths).sum::<usize>()
    }
}

impl Tile {
    /// Packs the levels of a band from its own to `top`. The lowest are left out until the tile has
    /// at most `most` bytes. `None` if nothing would be left. The band ends at the tile's level, or at one that is
    /// as long as a tile must have.
    pub(super) fn pack(
        band: &mut Band,
        from: u64,
        top: u32,
        most: usize,
        nodes: &[Node],
    ) -> Option<Self> {
        if band.rows.len() * size_of::<(RowKey, u32)>() > most {
            return None;
        }
        while band.level < top && band.cells() * LEAST_OF_CELL > most {
            band.coarsen_to(band.level + 1, nodes);
        }
        let lowest = band.level;
        let levels = (top + 1).saturating_sub(lowest) as usize;
        let mut rows: Vec<PackedRow> = band
            .rows
            .keys()
            .map(|&key| PackedRow { key, cells: Vec::new(), spans: Vec::new() })
            .collect();
        let mut coarse = band.clone();
        for level in lowest..=top {
            for (packed, row) in rows.iter_mut().zip(coarse.rows.values()) {
                packed.cells.push(pack_cells(&row.cells, from >> level));
                let of_class = row.spans.iter().filter(|span| span.class() == Some(level));
                packed.spans.push(pack_spans(of_class, from));
            }
            coarse.coarsen_to((level + 1).min(top), nodes);
        }
        let of_level = |level| rows.iter().map(|row| row.bytes(level)).sum::<usize>();
        // A level without another has a head of its own.
        let mut bytes = rows.len() * (size_of::<(RowKey, u32)>() + 1);
        let mut skipped = levels;
        while skipped > 0 && bytes + of_level(skipped - 1) <= most {
            skipped -= 1;
            bytes += of_level(skipped);
        }
        if skipped == levels || u32::try_from(bytes).is_err() {
            return None;
        }
        band.coarsen_to(lowest + skipped as u32, nodes);
        let mut out = Vec::with_capacity(bytes + numbers::AFTER);
        let mut places = Vec::with_capacity(rows.len());
        for row in &rows {
            places.push((row.key, out.len() as u32));
            let (cells, spans) = (&row.cells[skipped..], &row.spans[skipped..]);
            let lengths: Vec<_> = cells.iter().zip(spans).map(lengths).collect();
            for pair in lengths.chunks(2) {
                let [[cells, spans], [more_cells, more_spans]] =
                    [pair[0], pair.get(1).copied().unwrap_or_default()];
                numbers::put(&mut out, [cells, spans, more_cells, more_spans]);
            }
            cells.iter().chain(spans).for_each(|bytes| out.extend_from_slice(bytes));
        }
        out.extend([0; numbers::AFTER]);
        out.shrink_to_fit();
        let all = 0..out.len();
        Some(Self {
            from,
            level: lowest + skipped as u32,
            levels: (levels - skipped) as u32,
            rows: places.into(),
            bytes: (Arc::new(out), all),
        })
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes.0[self.bytes.1.clone()]
    }

    /// Returns the memory that it takes.
    pub(super) fn memory(&self) -> usize {
        self.bytes.1.len() + size_of_val(&*self.rows) + size_of::<Self>()
    }

    /// True if all of it can be read, and it names only paths and functions that there are.
    pub(super) fn is_sound(&self, paths: usize, functions: usize) -> bool {
        let top = self.levels.checked_sub(1).and_then(|more| self.level.checked_add(more));
        if top.is_none_or(|top| top >= u64::BITS)
            || !self.rows.is_sorted_by(|one, next| one.0 < next.0)
        {
            return false;
        }
        // No byte is read for two rows.
        let row = |before: usize, at: u32| {
            let at = Some(at as usize).filter(|at| *at >= before)?;
            self.end_of_sound_row(at, paths, functions)
        };
        self.rows.iter().try_fold(0, |before, (_, at)| row(before, *at)).is_some()
    }

    /// Returns where a row ends. `None` if it is not sound.
    fn end_of_sound_row(&self, at: usize, paths: usize, functions: usize) -> Option<usize> {
        let mut bytes = self.bytes().get(at..)?;
        let (mut cells, mut spans) = (Vec::new(), Vec::new());
        for _ in (0..self.levels).step_by(2) {
            let lengths = numbers::take::<4>(&mut bytes)?;
            let [of_cells, of_spans, more_cells, more_spans] = lengths.map(usize::try_from);
            cells.extend([of_cells.ok()?, more_cells.ok()?]);
            spans.extend([of_spans.ok()?, more_spans.ok()?]);
        }
        let is_function = |number| number < functions as u64;
        let is_path = |number| number != u64::from(ROOT) && number < paths as u64;
        for length in cells {
            pass_level::<5>(&mut bytes, length, is_function)?;
        }
        for length in spans {
            pass_level::<3>(&mut bytes, length, is_path)?;
        }
        Some(self.bytes().len() - bytes.len())
    }

    /// Shows the cells and then the calls of a row at a level, which is at least the tile's own.
    pub(super) fn read(&self, key: RowKey, level: u32, mut show: impl FnMut(Packed)) {
        let Ok(place) = self.rows.binary_search_by_key(&key, |(key, _)| *key) else { return };
        let mut bytes = &self.bytes()[self.rows[place].1 as usize..];
        let top = self.level + self.levels - 1;
        let stored = level.min(top);
        let skipped = stored - self.level;
        // Lengths of all cells, of those before the level, of the calls before it, and of its cells.
        let (mut all, mut before, mut spans_before, mut here) = (0, 0, 0, 0);
        let mut spans_here = 0;
        let mut level_has = |place: u32, cells: u64, spans: u64| {
            let (cells, spans) = (cells as usize, spans as usize);
            all += cells;
            match place.cmp(&skipped) {
                std::cmp::Ordering::Less => {
                    before += cells;
                    spans_before += spans;
                }
                std::cmp::Ordering::Equal => {
                    here = cells;
                    spans_here += spans;
                }
                std::cmp::Ordering::Greater => spans_here += spans,
            }
        };
        for place in (0..self.levels).step_by(2) {
            let lengths = numbers::take(&mut bytes).unwrap_or_default();
            let [cells, spans, more_cells, more_spans] = lengths;
            level_has(place, cells, spans);
            level_has(place + 1, more_cells, more_spans);
        }
        unpack_cells(&bytes[before..], here, self.from >> stored, |mut found| {
            found.at >>= level - stored;
            show(Packed::Cell(found));
        });
        let first = all + spans_before;
        unpack_spans(&bytes[first..], spans_here, self.from, |found| show(Packed::Span(found)));
    }
}

/// Passes over a level's cells or calls, of `N` numbers each. `None` if they do not end where they should, or if one
/// names something unknown in its last number.
fn pass_level<const N: usize>(
    bytes: &mut &[u8],
    length: usize,
    is_known: impl Fn(u64) -> bool,
) -> Option<()> {
    let mut level = bytes.get(..length.checked_add(numbers::AFTER)?)?;
    *bytes = &bytes[length..];
    let mut is_sound = true;
    while level.len() > numbers::AFTER {
        let numbers = numbers::take::<N>(&mut level)?;
        is_sound &= is_known(numbers[N - 1] >> 3);
    }
    (is_sound && level.len() == numbers::AFTER).then_some(())
}

/// Returns the lengths of a level's cells and calls.
fn lengths((cells, spans): (&Vec<u8>, &Vec<u8>)) -> [u64; 2] {
    [cells.len() as u64, spans.len() as u64]
}

/// Packs cells. `next`: the first that there can be. Each has the number of cells that are missing before it.
fn pack_cells(cells: &[Cell], mut next: u64) -> Vec<u8> {
    let mut out = Vec::new();
    for cell in cells {
        let tag = u64::from(cell.function) << 3 | u64::from(cell.ends);
        let missing = cell.at.wrapping_sub(next);
        numbers::put(&mut out, [missing, cell.covered, cell.longest, cell.count, tag]);
        next = cell.at.wrapping_add(1);
    }
    out
}

/// Shows the cells in the first bytes, of which there are `length`.
fn unpack_cells(mut bytes: &[u8], length: usize, mut next: u64, mut show: impl FnMut(Cell)) {
    let rest = bytes.len().saturating_sub(length);
    while bytes.len() > rest
        && let Some([missing, covered, longest, count, tag]) = numbers::take(&mut bytes)
    {
        let at = next.wrapping_add(missing);
        let (function, ends) = ((tag >> 3) as u32, (tag & 7) as u8);
        show(Cell { at, covered, longest, count, function, ends });
        next = at.wrapping_add(1);
    }
}

/// Packs calls of one class. A start is a distance from the one before; the first of a class has a
/// mark, and its distance is from `from`: several classes are read as one.
fn pack_spans<'a>(spans: impl Iterator<Item = &'a Span>, from: u64) -> Vec<u8> {
    let (mut out, mut start, mut is_first) = (Vec::new(), from, true);
    for span in spans {
        let tag = u64::from(span.path) << 3 | (span.ended as u64) << 1 | u64::from(is_first);
        numbers::put(&mut out, [span.start.0.wrapping_sub(start), span.duration.0, tag]);
        (start, is_first) = (span.start.0, false);
    }
    out
}

fn unpack_spans(mut bytes: &[u8], length: usize, from: u64, mut show: impl FnMut(Span)) {
    let rest = bytes.len().saturating_sub(length);
    let mut before = from;
    while bytes.len() > rest
        && let Some([distance, duration, tag]) = numbers::take(&mut bytes)
    {
        let start = if tag & 1 == 1 { from } else { before }.wrapping_add(distance);
        let ended = match tag >> 1 & 3 {
            0 => Ended::Timed,
            1 => Ended::Untimed,
            _ => Ended::Open,
        };
        show(Span {
            start: Nanos(start),
            duration: Nanos(duration),
            path: (tag >> 3) as u32,
            ended,
        });
        before = start;
    }
}
