//! The numbers that are compared, from the registry of numbers. Options, columns and JSON keys derive
//! from them.
//!
//! A change is told from noise by cutting a recording into stretches of time, so only a number that
//! every stretch has can be compared: a sum over calls or time, a mean, a percentile.

use crate::report::numbers::{Kind, NumberId, Unit};
use serde::{Serialize, Serializer};
use std::borrow::Cow;
use std::str::FromStr;

/// A number of a function or a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Metric(NumberId);

/// The name of no metric.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "only sums per second, means and percentiles are compared, since every stretch of time has them: \
     choose one of {}",
    Metric::all().map(Metric::name).collect::<Vec<_>>().join(", ")
)]
pub struct UnknownMetric;

impl Metric {
    pub const CALLS: Self = Self(NumberId::of("calls"));
    pub const P50: Self = Self(NumberId::of("p50_ns"));
    pub const P90: Self = Self(NumberId::of("p90_ns"));
    pub const P99: Self = Self(NumberId::of("p99_ns"));
    pub const MEAN: Self = Self(NumberId::of("mean_ns"));
    pub const TOTAL: Self = Self(NumberId::of("total_ns"));
    pub const OWN: Self = Self(NumberId::of("self_ns"));
    pub const EXCLUSIVE: Self = Self(NumberId::of("active_exclusive_ns"));

    /// The metrics that each comparison has.
    pub const USUAL: [Self; 8] = [
        Self::CALLS,
        Self::P50,
        Self::P90,
        Self::P99,
        Self::MEAN,
        Self::TOTAL,
        Self::OWN,
        Self::EXCLUSIVE,
    ];

    /// Returns all metrics, the usual ones first.
    pub fn all() -> impl Iterator<Item = Self> {
        let others = NumberId::all().filter_map(Self::of).filter(|m| !Self::USUAL.contains(m));
        Self::USUAL.into_iter().chain(others)
    }

    /// Returns the metric of a number, if that can be compared.
    pub fn of(number: NumberId) -> Option<Self> {
        match number.number().kind {
            Kind::OfCalls | Kind::OfTime | Kind::Mean | Kind::Percentile(_) => Some(Self(number)),
            Kind::Undated | Kind::Extreme | Kind::Other => None,
        }
    }

    /// Returns the underlying number of a function. A rate is that number per second of trace.
    pub fn number(self) -> NumberId {
        self.0
    }

    /// Returns the name in options and columns.
    pub fn name(self) -> &'static str {
        self.0.number().name
    }

    /// Returns the key in JSON, which includes the unit.
    pub fn key(self) -> Cow<'static, str> {
        let key = self.0.number().key;
        match self.is_rate() {
            true => format!("{key}_per_second").into(),
            false => key.into(),
        }
    }

    pub fn unit(self) -> Unit {
        self.0.number().unit
    }

    pub(super) fn kind(self) -> Kind {
        self.0.number().kind
    }

    /// Returns one line of help.
    pub fn help(self) -> String {
        match (self, self.kind()) {
            (Self::CALLS, _) => "calls per second of trace".to_owned(),
            (Self::P50, _) => "median duration of a call".to_owned(),
            (Self::OWN, _) => "time in the function itself, per second of trace".to_owned(),
            (Self::EXCLUSIVE, _) => {
                "time as the innermost traced function, per second of trace".to_owned()
            }
            (_, Kind::Mean) => "mean duration of a call".to_owned(),
            (_, Kind::Percentile(permille)) => {
                let percent = permille as f64 / 10.0;
                format!("duration that {percent} % of the calls do not exceed")
            }
            _ => format!("{}, per second of trace", self.0.number().phrase()),
        }
    }

    /// Returns true for an amount per second of trace, false for durations.
    pub fn is_rate(self) -> bool {
        self.0.number().is_additive()
    }
}

impl Serialize for Metric {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl FromStr for Metric {
    type Err = UnknownMetric;

    fn from_str(name: &str) -> Result<Self, UnknownMetric> {
        NumberId::named(name).and_then(Self::of).ok_or(UnknownMetric)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_registry() {
        let names = Metric::all().map(Metric::name).collect::<Vec<_>>().join(" ");
        assert!(
            names.starts_with("calls p50 p90 p99 mean total self innermost timed untimed a p95"),
            "{names}"
        );
        for metric in Metric::all() {
            assert_eq!(metric.name().parse(), Ok(metric));
            assert_eq!(serde_json::json!(metric), metric.name());
        }
        assert_eq!("p99.9".parse::<Metric>().map(Metric::key), Ok("p999_ns".into()));
    }

    #[test]
    fn numbers_that_stretches_lack_are_refused_with_a_list_of_the_others() {
        for name in ["max", "open", "headless", "innermost_percent", "center_mean", "p98", ""] {
            let error = name.parse::<Metric>().expect_err("no metric").to_string();
            assert!(error.contains("choose one of calls, p50,"), "{error}");
        }
    }
}
