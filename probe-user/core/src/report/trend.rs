//! The functions of a report in intervals of its time: whether they get slower.

use super::numbers::{Number, number};
use super::row::write;
use super::{FunctionReport, LossReport};
use crate::units::Nanos;
use serde::ser::{Serialize, SerializeMap, Serializer};

/// The request for a trend; the default chooses the intervals by the report's duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TrendAsked {
    /// The length of an interval.
    pub interval: Option<Nanos>,
}

impl TrendAsked {
    /// The number of intervals, at most.
    pub const MOST: u64 = 1_000;
    /// The same if nobody says how long they are: they fit on a screen.
    const MOST_UNASKED: u64 = 20;

    /// Returns the length of the intervals of this time: 1, 2 or 5 of a power of ten, unless it was
    /// asked for.
    pub fn length(self, duration: Nanos) -> Nanos {
        let least = |most: u64| duration.0.div_ceil(most).max(1);
        if let Some(asked) = self.interval {
            return Nanos(asked.0.max(least(Self::MOST)));
        }
        let mut unit = 1_u64;
        loop {
            let steps = [1, 2, 5].map(|factor| unit.saturating_mul(factor));
            if let Some(step) = steps.into_iter().find(|step| *step >= least(Self::MOST_UNASKED)) {
                return Nanos(step);
            }
            unit = unit.saturating_mul(10);
        }
    }
}

/// The numbers of a function that an interval has: those that calls alone tell which ended in it.
pub(crate) const NUMBERS: &[Number] = &[
    *number("calls"),
    *number("timed"),
    *number("untimed"),
    *number("open"),
    *number("calls_per_second"),
    *number("total_ns"),
    *number("min_ns"),
    *number("mean_ns"),
    *number("p50_ns"),
    *number("p75_ns"),
    *number("p90_ns"),
    *number("p95_ns"),
    *number("p99_ns"),
    *number("p999_ns"),
    *number("max_ns"),
    *number("net_mean_ns"),
    *number("net_p50_ns"),
    *number("net_p99_ns"),
    *number("net_max_ns"),
];

/// Functions in intervals of a report's time.
#[derive(Clone, Debug, serde::Serialize)]
pub struct TrendReport {
    /// The length of each interval. The last may be shorter.
    pub interval_ns: Nanos,
    pub intervals: Vec<TrendInterval>,
    /// The functions that were called, in the order of the report.
    pub functions: Vec<FunctionTrend>,
    /// The number of functions that were called, but would be too many rows.
    pub functions_left_out: u64,
}

/// One interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct TrendInterval {
    pub start_ns: Nanos,
    pub end_ns: Nanos,
    pub loss: LossReport,
}

/// A function over time.
#[derive(Clone, Debug)]
pub struct FunctionTrend {
    /// Index in `functions` of the report.
    pub function: usize,
    /// A row for each interval. Its self time, its active time and its threads are not known.
    pub rows: Vec<FunctionReport>,
}

impl TrendReport {
    /// Returns the rows of a function, each with its interval.
    pub fn rows_of(
        &self,
        function: usize,
    ) -> Option<impl Iterator<Item = (&TrendInterval, &FunctionReport)>> {
        let of = self.functions.iter().find(|of| of.function == function)?;
        Some(self.intervals.iter().zip(&of.rows))
    }
}

impl Serialize for FunctionTrend {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("function", &self.function)?;
        map.serialize_entry("rows", &self.rows.iter().map(OfInterval).collect::<Vec<_>>())?;
        map.end()
    }
}

/// A row with the numbers that are known in an interval.
struct OfInterval<'a>(&'a FunctionReport);

impl Serialize for OfInterval<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(NUMBERS.len()))?;
        write(NUMBERS, self.0, &mut map)?;
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_round_and_fit_on_a_screen() {
        let length = |ns| TrendAsked::default().length(Nanos(ns)).0;
        let lengths = [0, 7, 2_170_400_000, 10_000_000_000, 3_600_000_000_000].map(length);
        assert_eq!(lengths, [1, 1, 200_000_000, 500_000_000, 200_000_000_000]);
        assert!(length(u64::MAX) >= u64::MAX / 20);
        let asked = TrendAsked { interval: Some(Nanos(3)) };
        assert_eq!([10, 1_000_000].map(|ns| asked.length(Nanos(ns)).0), [3, 1_000]);
    }
}
