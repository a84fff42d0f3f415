//! The columns of the table of functions: what each shows, and which of them a narrow window keeps.

use super::figures::{Figures, FromHistograms};
use crate::ui::units::{ABSENT, Digits, count, percent, time};
use ctrace_core::units::Nanos;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Name,
    Rate,
    Calls,
    Exclusive,
    P50,
    P90,
    P99,
    Max,
    Mean,
    Own,
    Total,
    Cost,
}

impl Column {
    /// From left to right, the name first.
    pub(super) const ALL: [Self; 12] = [
        Self::Name,
        Self::Rate,
        Self::Calls,
        Self::Exclusive,
        Self::P50,
        Self::P90,
        Self::P99,
        Self::Max,
        Self::Mean,
        Self::Own,
        Self::Total,
        Self::Cost,
    ];

    /// The numbers, what one needs most first.
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

    pub(super) fn heading(self) -> &'static str {
        match self {
            Self::Name => "function",
            Self::Rate => "calls/s",
            Self::Calls => "calls",
            Self::Exclusive => "ae %",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::Max => "max",
            Self::Mean => "mean",
            Self::Own => "self",
            Self::Total => "total",
            Self::Cost => "cost %",
        }
    }

    /// What one sentence of help says.
    pub(super) fn help(self) -> &'static str {
        match self {
            Self::Name => "the function; a marker with its group, a USDT probe with its provider",
            Self::Rate => "calls that ended, for each second",
            Self::Calls => "calls, those that have not ended included",
            Self::Exclusive => "share of the time in which it was innermost on any thread",
            Self::P50 => "half of the calls took no longer",
            Self::P90 => "nine tenths took no longer",
            Self::P99 => "all but one in a hundred took no longer",
            Self::Max => "the longest call",
            Self::Mean => "the mean duration",
            Self::Own => "time in it, less that in the traced functions it calls",
            Self::Total => "time in it, summed over calls and threads",
            Self::Cost => "what its probes cost, of the target's CPU time; an estimate",
        }
    }

    /// The number of a function by its place, if there is one. Times are in nanoseconds.
    pub(super) fn value(self, figures: &Figures, place: usize) -> Option<f64> {
        let function = figures.report.functions.get(place)?;
        let durations = &function.durations;
        let time = |ns: Option<Nanos>| ns.map(|ns| ns.0 as f64);
        // What it did in all of the time, where it was armed for a part of it.
        let estimate = function.sampled.as_ref();
        match self {
            Self::Name => None,
            Self::Rate => {
                let seen = function.calls.saturating_sub(function.open);
                let ended = estimate.map_or(Some(seen), |estimate| estimate.calls)?;
                Some(ended as f64 / figures.seconds())
            }
            Self::Calls => {
                let calls = estimate.map_or(Some(function.calls), |estimate| estimate.calls)?;
                Some(calls as f64)
            }
            Self::Exclusive => Some(function.active_exclusive_percent),
            Self::P50 => time(durations.p50_ns),
            Self::P90 => time(durations.p90_ns),
            Self::P99 => time(durations.p99_ns),
            Self::Max => time(durations.max_ns),
            Self::Mean => time(durations.mean_ns),
            Self::Own => time(Some(function.self_ns)),
            Self::Total => {
                time(estimate.map_or(Some(function.total_ns), |estimate| estimate.total_ns))
            }
            Self::Cost => figures.percent_of_cpu(*figures.spent.get(place)?),
        }
    }

    /// Whether that number is not exact.
    pub(super) fn is_about(self, figures: &Figures, place: usize) -> bool {
        let functions = &figures.report.functions;
        let estimated = functions.get(place).is_some_and(|function| function.sampled.is_some());
        match self {
            Self::Cost => true,
            Self::P50 | Self::P90 | Self::P99 => figures.report.approximate,
            Self::Max => figures.from_histograms == FromHistograms::Extremes,
            Self::Rate | Self::Calls | Self::Total => estimated,
            _ => false,
        }
    }

    /// The number as text.
    pub(super) fn text(self, value: Option<f64>, about: bool) -> String {
        let Some(value) = value else { return ABSENT.to_owned() };
        let text = match self {
            Self::Name => String::new(),
            Self::Rate => rate(value),
            Self::Calls => count(value as u64),
            Self::Exclusive | Self::Cost => percent(value),
            _ => time(Nanos(value as u64), Digits::Short),
        };
        if about { format!("~{text}") } else { text }
    }

    /// Whether it grows with the length of the stretch, so that stretches are compared by second.
    pub(super) fn is_sum(self) -> bool {
        matches!(self, Self::Calls | Self::Own | Self::Total)
    }

    /// A share, which is compared in points.
    pub(super) fn is_percent(self) -> bool {
        matches!(self, Self::Exclusive | Self::Cost)
    }

    /// As `--sort` and CSV know it.
    pub(super) fn sort_name(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Rate | Self::Calls => "calls",
            Self::Exclusive | Self::Cost => "ae",
            other => other.heading(),
        }
    }
}

/// What a table of this width shows: the column it is sorted by, and as many others as there is
/// room for.
pub(super) fn shown(width: usize, sort: Column) -> Vec<Column> {
    let numbers = width.saturating_sub(name_room(width) + trend_room(width)) / EACH;
    let first = (sort != Column::Name).then_some(sort);
    let others = Column::BY_NEED.into_iter().filter(|column| *column != sort);
    let chosen: Vec<Column> = first.into_iter().chain(others).take(numbers.max(1)).collect();
    Column::ALL.into_iter().filter(|column| chosen.contains(column)).collect()
}

/// A number with the gap before it.
const EACH: usize = 8;

/// What a name gets at least.
fn name_room(width: usize) -> usize {
    match width {
        ..60 => 14,
        60..110 => 20,
        _ => 32,
    }
}

/// Columns of a sparkline with the gap before it.
pub(super) fn trend_room(width: usize) -> usize {
    match width {
        ..72 => 0,
        72..110 => 9,
        _ => 17,
    }
}

/// So many a second, in at most six columns.
fn rate(value: f64) -> String {
    match value {
        _ if value == 0.0 => "0".to_owned(),
        _ if value < 10.0 => format!("{value:.2}"),
        _ if value < 9_999.5 => count(value.round() as u64),
        _ if value < 99_950.0 => format!("{:.1} k", value / 1e3),
        _ if value < 999_500.0 => format!("{:.0} k", value / 1e3),
        _ if value < 99_950_000.0 => format!("{:.2} M", value / 1e6),
        _ => format!("{:.0} M", value / 1e6),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_short() {
        let cases = [
            (0.0, "0"),
            (0.25, "0.25"),
            (1_234.4, "1,234"),
            (9_999.6, "10.0 k"),
            (123_456.0, "123 k"),
            (1_234_567.0, "1.23 M"),
            (123_456_789.0, "123 M"),
        ];
        for (value, text) in cases {
            assert_eq!(rate(value), text);
        }
    }

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
    fn every_number_has_its_need() {
        let needs = |column: &Column| Column::BY_NEED.contains(column);
        assert!(Column::ALL[1..].iter().all(needs));
        assert_eq!(Column::BY_NEED.len() + 1, Column::ALL.len());
    }
}
