//! Each function's numbers in the last intervals, for its sparkline.

use crate::top::{
    data::{catalogue::RowId, figures::Figures},
    model::columns::TopColumn,
};
use std::collections::VecDeque;

/// The number of intervals to keep.
pub(crate) const KEPT: usize = 32;
/// The factor for small numbers, since marks are drawn from integers.
const FINE: f32 = 1_000.0;

/// The numbers of a function by [`TopColumn::place`].
type Numbers = [Coarse; TopColumn::COUNT];

/// The upper half of a float, within 1 %: marks need no more, and there are many of them.
#[derive(Clone, Copy, Debug, Default)]
struct Coarse(u16);

impl Coarse {
    fn new(number: f64) -> Self {
        Self(((number as f32).to_bits() >> 16) as u16)
    }

    fn get(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }
}

/// The last intervals, the newest last, with only the functions that were called.
#[derive(Clone, Debug, Default)]
pub(crate) struct Trend(VecDeque<Vec<(RowId, Numbers)>>);

impl Trend {
    pub(crate) fn add(&mut self, figures: &Figures) {
        if self.0.len() == KEPT {
            self.0.pop_front();
        }
        let called = |place: &usize| figures.report.functions[*place].calls > 0;
        let places = (0..figures.report.functions.len()).filter(called);
        let mut rows: Vec<(RowId, Numbers)> = places
            .map(|place| {
                let mut numbers = [Coarse::default(); TopColumn::COUNT];
                for column in TopColumn::all() {
                    let value = column.seen(figures, place);
                    numbers[column.place()] = Coarse::new(value.unwrap_or(0.0));
                }
                (figures.ids[place], numbers)
            })
            .collect();
        rows.sort_unstable_by_key(|(id, _)| *id);
        self.0.push_back(rows);
    }

    /// Returns a column's numbers in the last `most` intervals.
    pub(crate) fn of(&self, id: RowId, column: TopColumn, most: usize) -> Vec<u64> {
        let skipped = self.0.len().saturating_sub(most);
        let rows = self.0.iter().skip(skipped);
        let number = rows.map(|rows| {
            let found = rows.binary_search_by_key(&id, |(id, _)| *id);
            found.map_or(0, |place| (rows[place].1[column.place()].get() * FINE) as u64)
        });
        number.collect()
    }
}
