//! A chunk of a draft: its calls at one level.

use super::band::Band;
use super::cell::{Cell, RowKey, Span};
use super::of_chunk::OfChunk;
use super::pyramid::{Facts, of_rows};
use crate::calls::paths::Node as Path;
use crate::formats::Ended;
use crate::recording::Recording;
use crate::units::Nanos;
use std::collections::BTreeMap;

/// The calls of a chunk.
#[derive(Debug)]
pub(super) struct Part {
    /// The number of the chunk.
    pub(super) number: usize,
    pub(super) from: u64,
    pub(super) to: u64,
    /// The number of its calls.
    pub(super) calls: u64,
    pub(super) level: u32,
    /// In order, each with the places behind its cells and its calls.
    rows: Vec<(RowKey, usize, usize)>,
    cells: Vec<Cell>,
    spans: Vec<Span>,
    /// Calls that began before it, and those that are open at its end, by row.
    crossing: Vec<(RowKey, Span)>,
    /// False if nothing is known of its calls.
    pub(super) is_readable: bool,
    /// True if something is missing.
    pub(super) is_lossy: bool,
}

/// The calls of a row in a chunk, added up. `at` of the sums has no meaning.
#[derive(Debug, Default)]
pub(super) struct Average {
    /// The time of the chunk.
    pub(super) time: u64,
    /// The number of calls of all its rows.
    pub(super) calls: u64,
    /// Calls that are entirely within it.
    pub(super) inside: Option<Cell>,
    /// The others, as far as they are in its time.
    pub(super) crossing: Option<Cell>,
}

/// Adds to a sum.
pub(super) fn add(sum: &mut Option<Cell>, cell: Cell) {
    match sum {
        Some(sum) => sum.add(&cell),
        None => *sum = Some(cell),
    }
}

impl Part {
    /// Reads a chunk. `None` if it has too many rows.
    pub(super) fn read(recording: &Recording, number: usize, level: u32) -> Option<(Self, Facts)> {
        let mut of = OfChunk::read(recording, number, (level, usize::MAX), None);
        let part = Self::new(recording, number, of.band.take()?, &of);
        Some((part, of.facts))
    }

    /// Puts the rows of a band behind each other: there are many parts, each with few cells a row.
    pub(super) fn new(recording: &Recording, number: usize, band: Band, of: &OfChunk) -> Self {
        let entry = &recording.chunks()[number];
        let (mut rows, mut cells, mut spans) = (Vec::new(), Vec::new(), Vec::new());
        for (key, mut row) in band.rows {
            cells.append(&mut row.cells);
            spans.append(&mut row.spans);
            rows.push((key, cells.len(), spans.len()));
        }
        rows.shrink_to_fit();
        cells.shrink_to_fit();
        spans.shrink_to_fit();
        let mut crossing = [&*of.crossing, &*of.open].concat();
        crossing.sort_by_key(|(key, span)| (*key, span.order()));
        Self {
            number,
            from: entry.from.0,
            to: entry.to.0,
            calls: entry.calls,
            level: band.level,
            rows,
            cells,
            spans,
            crossing,
            is_readable: of.facts.unreadable_calls == 0,
            is_lossy: !of.facts.lost.is_empty(),
        }
    }

    /// Returns the memory that it takes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.rows.capacity() * size_of::<(RowKey, usize, usize)>()
            + self.cells.capacity() * size_of::<Cell>()
            + self.spans.capacity() * size_of::<Span>()
            + self.crossing.capacity() * size_of::<(RowKey, Span)>()
    }

    /// Returns the cells and the calls of a row that are entirely within the chunk.
    pub(super) fn row(&self, key: RowKey) -> (&[Cell], &[Span]) {
        let Ok(place) = self.rows.binary_search_by_key(&key, |(key, ..)| *key) else {
            return (&[], &[]);
        };
        let (_, cells, spans) = self.rows[place];
        let before = place.checked_sub(1).map_or((0, 0), |before| {
            let (_, cells, spans) = self.rows[before];
            (cells, spans)
        });
        (&self.cells[before.0..cells], &self.spans[before.1..spans])
    }

    /// Returns the calls of a row that are not entirely within the chunk.
    pub(super) fn crossing(&self, key: RowKey) -> impl Iterator<Item = &Span> {
        of_rows(&self.crossing, key.thread, key.depths(), (0, u64::MAX)).map(|(_, span)| span)
    }

    /// Adds up the calls of a row, as far as they are in the time of the chunk.
    pub(super) fn average(&self, key: RowKey, nodes: &[Path]) -> Average {
        let cell_of = |span: &Span| {
            let (start, end) = (span.start.0.max(self.from), span.end().0.min(self.to));
            let is_begun_here = u64::from(span.start.0 >= self.from);
            Cell {
                at: 0,
                covered: end.saturating_sub(start),
                longest: span.duration.0,
                count: is_begun_here,
                function: nodes[span.path as usize].func.0,
                ends: Cell::end_of(span),
            }
        };
        let time = self.to.saturating_sub(self.from).max(1);
        let mut average = Average { time, calls: self.calls, ..Average::default() };
        let (cells, spans) = self.row(key);
        let inside = cells.iter().copied().chain(spans.iter().map(cell_of));
        inside.for_each(|cell| add(&mut average.inside, cell));
        self.crossing(key).map(cell_of).for_each(|cell| add(&mut average.crossing, cell));
        average
    }
}

/// Returns the calls of a row that are not entirely within a chunk, each once. Until its end was read, a call is known
/// from the chunks at whose ends it was open: it is as long as the last of them says.
pub(super) fn crossing<'a>(
    parts: impl Iterator<Item = &'a Part>,
    key: RowKey,
) -> impl Iterator<Item = Span> {
    let (mut ended, mut open) = (Vec::new(), BTreeMap::<(Nanos, u32), Span>::new());
    for span in parts.flat_map(|part| part.crossing(key)) {
        match span.ended {
            Ended::Open => {
                let longest = open.entry((span.start, span.path)).or_insert(*span);
                longest.duration = longest.duration.max(span.duration);
            }
            _ => ended.push(*span),
        }
    }
    ended.iter().for_each(|span| _ = open.remove(&(span.start, span.path)));
    ended.into_iter().chain(open.into_values())
}
