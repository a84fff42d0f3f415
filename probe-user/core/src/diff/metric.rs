//! The numbers that are compared: one list, from which options, columns and JSON keys derive.

use serde::Serialize;
use std::str::FromStr;

/// A number of a function or a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    Calls,
    P50,
    P90,
    P99,
    Mean,
    Total,
    #[serde(rename = "self")]
    Own,
    #[serde(rename = "ae")]
    Exclusive,
}

impl Metric {
    pub const ALL: [Self; 8] = [
        Self::Calls,
        Self::P50,
        Self::P90,
        Self::P99,
        Self::Mean,
        Self::Total,
        Self::Own,
        Self::Exclusive,
    ];

    /// As options and columns have it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Calls => "calls",
            Self::P50 => "p50",
            Self::P90 => "p90",
            Self::P99 => "p99",
            Self::Mean => "mean",
            Self::Total => "total",
            Self::Own => "self",
            Self::Exclusive => "ae",
        }
    }

    /// The key in JSON, which tells the unit.
    pub fn key(self) -> &'static str {
        match self {
            Self::Calls => "calls_per_second",
            Self::P50 => "p50_ns",
            Self::P90 => "p90_ns",
            Self::P99 => "p99_ns",
            Self::Mean => "mean_ns",
            Self::Total => "total_ns_per_second",
            Self::Own => "self_ns_per_second",
            Self::Exclusive => "active_exclusive_ns_per_second",
        }
    }

    /// One line of help.
    pub fn help(self) -> &'static str {
        match self {
            Self::Calls => "calls per second of trace",
            Self::P50 => "median duration of a call",
            Self::P90 => "duration that 90 % of the calls do not exceed",
            Self::P99 => "duration that 99 % of the calls do not exceed",
            Self::Mean => "mean duration of a call",
            Self::Total => "sum of all durations, per second of trace",
            Self::Own => "time in the function itself, per second of trace",
            Self::Exclusive => "active-exclusive time, per second of trace",
        }
    }

    pub(crate) fn index(self) -> usize {
        self as usize
    }

    /// An amount per second of trace; the others are of durations.
    pub fn is_rate(self) -> bool {
        !matches!(self, Self::P50 | Self::P90 | Self::P99 | Self::Mean)
    }

    /// The part of the calls that are as short or shorter.
    pub(crate) fn quantile(self) -> Option<f64> {
        match self {
            Self::P50 => Some(0.5),
            Self::P90 => Some(0.9),
            Self::P99 => Some(0.99),
            _ => None,
        }
    }
}

impl FromStr for Metric {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|metric| metric.name() == name).ok_or(())
    }
}

/// A value of each metric, in their order; NaN where there is none.
pub(crate) type Values = [f64; Metric::ALL.len()];

pub(crate) const ABSENT: Values = [f64::NAN; Metric::ALL.len()];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_is_in_its_place() {
        for (place, metric) in Metric::ALL.into_iter().enumerate() {
            assert_eq!(metric.index(), place);
            assert_eq!(metric.name().parse(), Ok(metric));
            assert_eq!(serde_json::json!(metric), metric.name());
        }
    }
}
