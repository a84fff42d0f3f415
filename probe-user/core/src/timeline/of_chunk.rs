//! The calls of a chunk as a node of the pyramid and a part of a draft need them.

use super::band::{Band, BandRow};
use super::cell::{RowKey, Span};
use super::leaf::{Leaf, open_calls};
use super::pyramid::{Facts, MOST_ROWS, top};
use crate::calls::paths::Node as Path;
use crate::recording::Recording;

/// The calls of a chunk.
#[derive(Debug, Default)]
pub(super) struct OfChunk {
    /// Those that are entirely within it. `None` if there are too many rows.
    pub(super) band: Option<Band>,
    /// The same with longer cells, if asked for.
    pub(super) coarse: Option<Band>,
    /// Those that began before it.
    pub(super) crossing: Vec<(RowKey, Span)>,
    /// Those that are open at its end. At that of the last chunk they are open until the recording ends.
    pub(super) open: Vec<(RowKey, Span)>,
    pub(super) facts: Facts,
}

impl OfChunk {
    /// Reads a chunk. The bands have the levels asked for, or higher ones if there are very many calls, or more than
    /// `most` cells for the first. A chunk that cannot be read is lost.
    pub(super) fn read(
        recording: &Recording,
        number: usize,
        (level, most): (u32, usize),
        coarse: Option<u32>,
    ) -> Self {
        let (nodes, entry) = (recording.nodes(), &recording.chunks()[number]);
        let (from, to) = (entry.from.0, entry.to.0);
        let mut of = Self { band: Some(Band::new(level)), ..Self::default() };
        of.coarse = coarse.map(Band::new);
        let Ok(chunk) = recording.chunk(entry) else {
            of.facts.lost.push((from, to));
            of.facts.unreadable_calls = entry.calls;
            return of;
        };
        let leaf;
        (leaf, of.crossing) = Leaf::of(&chunk, nodes);
        let is_last = number + 1 == recording.chunks().len();
        let end = if is_last { recording.period().1 } else { entry.to };
        of.open = open_calls(&chunk, end, nodes);
        of.crossing.iter().for_each(|(key, span)| of.facts.saw(*key, &[*span]));
        leaf.rows().for_each(|(key, calls)| of.facts.saw(key, calls));
        if let Some(band) = &mut of.band {
            // The node above has no shorter cells than this one, so an idle stretch must not make its own longer.
            if has_room(leaf.rows().count(), most) {
                band.level = lowest(&leaf, level, top(from, to), most);
            }
        }
        for band in [&mut of.band, &mut of.coarse] {
            *band = band.take().filter(|_| leaf.len() <= MOST_ROWS);
            if let Some(band) = band {
                fill(band, &leaf, nodes);
                band.limit(top(from, to), nodes);
            }
        }
        let loss = &chunk.loss;
        if loss.lost_events() > 0 || loss.late > 0 || loss.decode_errors > 0 {
            of.facts.lost.push((from, to));
        }
        of
    }
}

/// Returns the lowest level, `least` or above, at which a chunk may have few enough cells.
fn lowest(leaf: &Leaf, least: u32, top: u32, most: usize) -> u32 {
    let fits = |level: &u32| {
        let mut cells = 0;
        for (_, calls) in leaf.rows() {
            // The latest call comes first. Where calls overlap, not each has a cell of its own.
            let mut first = u64::MAX;
            for span in calls.iter().filter(|span| span.is_small(*level)) {
                let start = span.start.0 >> level;
                if start < first {
                    (cells, first) = (cells + 1, start);
                }
                // Most levels have far too many.
                if cells > most {
                    return false;
                }
            }
        }
        true
    };
    (least..top).find(fits).unwrap_or(top.max(least))
}

/// True if a tile with so many cells at most tells more of so many rows than that they are there.
pub(super) fn has_room(rows: usize, most: usize) -> bool {
    const CELLS: usize = 12;
    rows <= most / CELLS
}

/// Adds the calls of a chunk.
fn fill(band: &mut Band, leaf: &Leaf, nodes: &[Path]) {
    for (key, calls) in leaf.rows() {
        let mut row = BandRow::default();
        // In order of time, cells are added to the last one.
        calls.iter().rev().for_each(|span| row.push(*span, band.level, nodes));
        row.settle();
        band.rows.insert(key, row);
    }
}
