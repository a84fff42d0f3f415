//! The numbers that are compared: one list, from which options, columns and JSON keys derive.

use crate::report::FunctionReport;
use crate::report::numbers::{Number, Unit, number};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::str::FromStr;

/// A number of a function or a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Metric {
    Calls,
    P50,
    P90,
    P99,
    Mean,
    Total,
    Own,
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

    /// Returns the underlying number of a function. A rate is that number per second of trace.
    fn number(self) -> &'static Number {
        match self {
            Self::Calls => const { number("calls") },
            Self::P50 => const { number("p50_ns") },
            Self::P90 => const { number("p90_ns") },
            Self::P99 => const { number("p99_ns") },
            Self::Mean => const { number("mean_ns") },
            Self::Total => const { number("total_ns") },
            Self::Own => const { number("self_ns") },
            Self::Exclusive => const { number("active_exclusive_ns") },
        }
    }

    /// Returns the name in options and columns.
    pub fn name(self) -> &'static str {
        let number = self.number();
        number.name.unwrap_or(number.key)
    }

    /// Returns the key in JSON, which includes the unit.
    pub fn key(self) -> Cow<'static, str> {
        let key = self.number().key;
        match self.is_rate() {
            true => format!("{key}_per_second").into(),
            false => key.into(),
        }
    }

    pub fn unit(self) -> Unit {
        self.number().unit
    }

    /// Returns one line of help.
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

    /// Returns true for an amount per second of trace, false for durations.
    pub fn is_rate(self) -> bool {
        self.number().additive
    }

    /// Returns the percentile's share of the calls, which are as short or shorter.
    pub(crate) fn quantile(self) -> Option<f64> {
        self.number().permille().map(|permille| permille as f64 / 1_000.0)
    }

    /// Returns the number in the row of a report; NaN if there is none.
    pub(crate) fn of(self, row: &FunctionReport) -> f64 {
        (self.number().of)(row).real().unwrap_or(f64::NAN)
    }
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl FromStr for Metric {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|metric| metric.name() == name).ok_or(())
    }
}

/// A value of each metric, in their order; NaN if there is none.
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
