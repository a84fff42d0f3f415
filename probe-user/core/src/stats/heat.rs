//! The change of durations over time: counts of calls by function, octave of the duration, and
//! slice of time in which the call ended.

use crate::hash::{IntMap, pair};
use crate::report::HeatRow;
use crate::stats::histogram::{log_bounds, log_bucket};
use crate::stats::slices::{SLICE_BITS, Slices};
use crate::units::{FuncId, Nanos};
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
pub(crate) struct Heat {
    slices: Slices,
    cells: IntMap<u64>,
}

impl Heat {
    pub(crate) fn new(slices: Slices) -> Self {
        Self { slices, cells: IntMap::default() }
    }

    #[inline]
    pub(crate) fn add(&mut self, function: FuncId, end: u64, duration: u64) {
        let octave = log_bucket(duration, 0) as u32;
        let cell = pair(function.0, octave << SLICE_BITS | self.slices.of(end) as u32);
        *self.cells.entry(cell).or_default() += 1;
    }

    pub(crate) fn merge(&mut self, other: Self) {
        for (cell, count) in other.cells {
            *self.cells.entry(cell).or_default() += count;
        }
    }

    pub(crate) fn edges(&self) -> Vec<Nanos> {
        self.slices.edges()
    }

    /// Returns by function its octaves, from short to long.
    pub(crate) fn into_rows(self) -> BTreeMap<usize, Vec<HeatRow>> {
        let mut cells: Vec<_> = self.cells.into_iter().collect();
        cells.sort_unstable();
        let mut rows = BTreeMap::<usize, Vec<HeatRow>>::new();
        for same in cells.chunk_by(|(a, _), (b, _)| a >> SLICE_BITS == b >> SLICE_BITS) {
            let (function, octave) = (same[0].0 >> 32, same[0].0 as u32 >> SLICE_BITS);
            let (from, width) = log_bounds(octave as usize, 0);
            let mut counts = vec![0; self.slices.len()];
            for (cell, count) in same {
                counts[(cell & ((1 << SLICE_BITS) - 1)) as usize] = *count;
            }
            rows.entry(function as usize).or_default().push(HeatRow {
                from_ns: Nanos(from),
                to_ns: Nanos(from.saturating_add(width)),
                counts,
            });
        }
        rows
    }
}
