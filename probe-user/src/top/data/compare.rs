//! Compares the current numbers with frozen ones.

use crate::top::{
    data::{catalogue::RowId, figures::Figures},
    model::columns::TopColumn,
};
use crate::ui::text::units::ABSENT;
use ctrace_core::units::Nanos;

/// The frozen numbers: those of the last interval, and those since the start.
#[derive(Clone, Debug)]
pub(crate) struct Baseline {
    pub(crate) interval: Figures,
    pub(crate) sums: Figures,
    /// The time of freezing.
    pub(crate) at: Nanos,
}

/// A number now and before. Sums are per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NumberChange {
    now: Option<f64>,
    before: Option<f64>,
}

/// The smallest relative change that counts.
const LEAST: f64 = 0.005;
/// The smallest change of a share that counts, in points.
const LEAST_POINTS: f64 = 0.05;

impl NumberChange {
    pub(crate) fn of(column: TopColumn, now: &Figures, before: &Figures, id: RowId) -> Self {
        // Where only the most is known of a time, its change is that of the time as it was seen.
        let is_known = |figures: &Figures| {
            figures.place(id).is_none_or(|place| column.is_known_less(figures, place))
        };
        let number =
            if is_known(now) && is_known(before) { TopColumn::value } else { TopColumn::seen };
        let value = |figures: &Figures| {
            let place = figures.place(id)?;
            let called = figures.report.functions[place].calls > 0;
            let value = number(column, figures, place).filter(|_| called)?;
            Some(if column.is_sum() { value / figures.seconds() } else { value })
        };
        Self { now: value(now), before: value(before) }
    }

    /// Returns the growth, for sorting.
    pub(crate) fn growth(self) -> Option<f64> {
        match (self.now, self.before) {
            (None, None) => None,
            (now, before) => Some(now.unwrap_or(0.0) - before.unwrap_or(0.0)),
        }
    }

    pub(crate) fn text(self, column: TopColumn) -> String {
        let (now, before) = match (self.now, self.before) {
            (None, None) => return ABSENT.to_owned(),
            (Some(_), None) => return "new".to_owned(),
            (None, Some(_)) => return "gone".to_owned(),
            (Some(now), Some(before)) => (now, before),
        };
        let change = now - before;
        if column.is_percent() {
            return match change.abs() < LEAST_POINTS {
                true => "=".to_owned(),
                false => format!("{change:+.1} pp"),
            };
        }
        if change == 0.0 || change.abs() < before * LEAST {
            return "=".to_owned();
        }
        if before <= 0.0 {
            return "new".to_owned();
        }
        match now / before {
            times if times >= 99.5 => format!("×{times:.0}"),
            times if times >= 9.95 => format!("×{times:.1}"),
            times => format!("{:+.0}%", (times - 1.0) * 100.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_words_and_signs() {
        let cases = [
            (TopColumn::P50, None, None, "–"),
            (TopColumn::P50, Some(1.0), None, "new"),
            (TopColumn::P50, None, Some(1.0), "gone"),
            (TopColumn::P50, Some(1_000.0), Some(1_001.0), "="),
            (TopColumn::P50, Some(1_100.0), Some(1_000.0), "+10%"),
            (TopColumn::P50, Some(250.0), Some(1_000.0), "-75%"),
            (TopColumn::P50, Some(12_000.0), Some(1_000.0), "×12.0"),
            (TopColumn::P50, Some(5e6), Some(1_000.0), "×5000"),
            (TopColumn::EXCLUSIVE, Some(12.0), Some(10.5), "+1.5 pp"),
            (TopColumn::EXCLUSIVE, Some(10.51), Some(10.5), "="),
        ];
        for (column, now, before, text) in cases {
            assert_eq!(NumberChange { now, before }.text(column), text);
        }
    }
}
