//! Each function's numbers in the last intervals, for its sparkline.

use super::{catalogue::RowId, columns::Column, figures::Figures};
use std::collections::VecDeque;

/// The number of intervals to keep.
pub(super) const KEPT: usize = 32;
/// The factor for small numbers, since marks are drawn from integers.
const FINE: f32 = 1_000.0;

/// The numbers of a function in the order of [`Column::ALL`]. Marks need no more precision.
type Numbers = [f32; Column::ALL.len()];

/// The last intervals, the newest last, with only the functions that were called.
#[derive(Clone, Debug, Default)]
pub(super) struct Trend(VecDeque<Vec<(RowId, Numbers)>>);

impl Trend {
    pub(super) fn add(&mut self, figures: &Figures) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        let called = |place: &usize| figures.report.functions[*place].calls > 0;
        let places = (0..figures.report.functions.len()).filter(called);
        let mut rows: Vec<(RowId, Numbers)> = places
            .map(|place| {
                let number = |column: Column| column.value(figures, place).unwrap_or(0.0) as f32;
                (figures.ids[place], Column::ALL.map(number))
            })
            .collect();
        rows.sort_unstable_by_key(|(id, _)| *id);
        self.0.push_back(rows);
    }

    /// Returns a column's numbers in the last `most` intervals.
    pub(super) fn of(&self, id: RowId, column: Column, most: usize) -> Vec<u64> {
        let at = Column::ALL.iter().position(|c| *c == column).unwrap_or(0);
        let skipped = self.0.len().saturating_sub(most);
        let rows = self.0.iter().skip(skipped);
        let number = rows.map(|rows| {
            let found = rows.binary_search_by_key(&id, |(id, _)| *id);
            found.map_or(0, |place| (rows[place].1[at] * FINE) as u64)
        });
        number.collect()
    }
}
