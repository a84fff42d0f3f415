//! The columns of the function table, and the choice of columns for a narrow window.

use super::figures::{Figures, FromHistograms};
use crate::ui::units::{ABSENT, Digits, count, percent, rate, ratio, time};
use ctrace_core::report::numbers::{Number, Unit, number};
use ctrace_core::units::Nanos;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Name,
    Rate,
    Calls,
    Exclusive,
    P50,
    P75,
    P90,
    P99,
    Max,
    Mean,
    Own,
    Total,
    Cost,
}

impl Column {
    /// All columns from left to right, the name first.
    pub(super) const ALL: [Self; 13] = [
        Self::Name,
        Self::Rate,
        Self::Calls,
        Self::Exclusive,
        Self::P50,
        Self::P75,
        Self::P90,
        Self::P99,
        Self::Max,
        Self::Mean,
        Self::Own,
        Self::Total,
        Self::Cost,
    ];

    /// The default columns, the most important first.
    pub(super) const BY_NEED: [Self; 11] = [
        Self::Rate,
        Self::Exclusive,
        Self::P50,
        Self::P99,
        Self::Total,
        Self::Max,
        Self::P90,
        Self::Own,
        Self::Mean,
        Self::Cost,
        Self::Calls,
    ];

    /// Returns the number that it shows, if that comes from the report.
    fn number(self) -> Option<&'static Number> {
        Some(match self {
            Self::Name | Self::Cost => return None,
            Self::Rate => const { number("calls_per_second") },
            Self::Calls => const { number("calls") },
            Self::Exclusive => const { number("active_exclusive_percent") },
            Self::P50 => const { number("p50_ns") },
            Self::P75 => const { number("p75_ns") },
            Self::P90 => const { number("p90_ns") },
            Self::P99 => const { number("p99_ns") },
            Self::Max => const { number("max_ns") },
            Self::Mean => const { number("mean_ns") },
            Self::Own => const { number("self_ns") },
            Self::Total => const { number("total_ns") },
        })
    }

    pub(super) fn heading(self) -> &'static str {
        match self {
            Self::Name => "function",
            Self::Rate => "calls/s",
            Self::Exclusive => "ae %",
            Self::Cost => "cost %",
            other => other.number().and_then(|number| number.name).unwrap_or_default(),
        }
    }

    /// Returns one sentence of help, as the rest of a line.
    pub(super) fn help(self) -> String {
        let sentence = match self {
            Self::Name => "The function; a marker with its group, a USDT probe with its provider.",
            Self::Cost => "What its probes cost, of the target's CPU time; an estimate.",
            other => other.number().map_or("", |number| number.help),
        };
        let sentence = sentence.trim_end_matches('.');
        let (first, rest) = sentence.split_at(sentence.len().min(1));
        first.to_lowercase() + rest
    }

    /// Returns the number of a function by its place, if there is one. Times are in nanoseconds.
    pub(super) fn value(self, figures: &Figures, place: usize) -> Option<f64> {
        let function = figures.report.functions.get(place)?;
        // A sampled function shows estimates for the whole time.
        match (self, &function.sampled) {
            (Self::Rate, Some(estimate)) => Some(estimate.calls? as f64 / figures.seconds()),
            (Self::Calls, Some(estimate)) => Some(estimate.calls? as f64),
            (Self::Total, Some(estimate)) => Some(estimate.total_ns?.0 as f64),
            (Self::Cost, _) => figures.percent_of_cpu(*figures.spent.get(place)?),
            _ => (self.number()?.of)(function).real(),
        }
    }

    /// Returns whether that number is inexact.
    pub(super) fn is_about(self, figures: &Figures, place: usize) -> bool {
        let functions = &figures.report.functions;
        let estimated = functions.get(place).is_some_and(|function| function.sampled.is_some());
        match self {
            Self::Cost => true,
            Self::Max => figures.from_histograms == FromHistograms::Extremes,
            Self::Rate | Self::Calls | Self::Total => estimated,
            other => figures.report.approximate && other.is_percentile(),
        }
    }

    fn is_percentile(self) -> bool {
        self.number().is_some_and(|number| number.permille().is_some())
    }

    fn unit(self) -> Option<Unit> {
        match self {
            Self::Cost => Some(Unit::Percent),
            other => other.number().map(|number| number.unit),
        }
    }

    /// Formats the number.
    pub(super) fn text(self, value: Option<f64>, about: bool) -> String {
        let Some((value, unit)) = value.zip(self.unit()) else { return ABSENT.to_owned() };
        let text = match unit {
            Unit::Rate => rate(value),
            Unit::Count => count(value as u64),
            Unit::Percent => percent(value),
            Unit::Ratio => ratio(Some(value)),
            Unit::Time => time(Nanos(value as u64), Digits::Short),
        };
        if about { format!("~{text}") } else { text }
    }

    /// Returns whether it grows with time, so that stretches are compared by second.
    pub(super) fn is_sum(self) -> bool {
        self.number().is_some_and(|number| number.additive)
    }

    /// Returns whether it is a share, which is compared in points.
    pub(super) fn is_percent(self) -> bool {
        self.unit() == Some(Unit::Percent)
    }

    /// Returns the name in `--sort` and CSV.
    pub(super) fn sort_name(self) -> &'static str {
        match self {
            Self::Name => "name",
            other => other.number().and_then(|number| number.name).unwrap_or("ae"),
        }
    }
}

/// Returns the columns for a table of this width: the sorting column, and as many others as fit.
pub(super) fn shown(width: usize, sort: Column) -> Vec<Column> {
    let numbers = width.saturating_sub(name_room(width) + trend_room(width)) / EACH;
    let first = (sort != Column::Name).then_some(sort);
    let others = Column::BY_NEED.into_iter().filter(|column| *column != sort);
    let chosen: Vec<Column> = first.into_iter().chain(others).take(numbers.max(1)).collect();
    Column::ALL.into_iter().filter(|column| chosen.contains(column)).collect()
}

/// The width of a number with the gap before it.
const EACH: usize = 8;

/// Returns the least width of a name.
fn name_room(width: usize) -> usize {
    match width {
        ..60 => 14,
        60..110 => 20,
        _ => 32,
    }
}

/// Returns the width of a sparkline with the gap before it.
pub(super) fn trend_room(width: usize) -> usize {
    match width {
        ..72 => 0,
        72..110 => 9,
        _ => 17,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_column_sorted_by_is_shown() {
        use Column::*;
        assert_eq!(shown(80, Exclusive), [Rate, Exclusive, P50, P99, Max, Total]);
        assert_eq!(shown(80, Mean), [Rate, Exclusive, P50, P99, Mean, Total]);
        assert_eq!(shown(40, Name), [Rate, Exclusive, P50]);
        assert_eq!(shown(0, Cost), [Cost]);
        assert_eq!(shown(200, Name).len(), 11);
    }

    #[test]
    fn only_p75_has_to_be_asked_for() {
        let is_hidden = |column: &&Column| !Column::BY_NEED.contains(column);
        let hidden: Vec<_> = Column::ALL[1..].iter().filter(is_hidden).collect();
        assert_eq!(hidden, [&Column::P75]);
        assert!(shown(60, Column::P75).contains(&Column::P75));
    }

    #[test]
    fn every_column_has_a_heading_and_a_meaning() {
        for column in Column::ALL {
            assert!(!column.heading().is_empty() && !column.help().is_empty(), "{column:?}");
        }
        assert_eq!(Column::P99.help(), "all but one in a hundred took no longer");
    }
}
