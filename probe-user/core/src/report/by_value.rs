//! The calls of a function by one of their values: which argument or result goes with which
//! durations.

use crate::units::Nanos;
use crate::values::Value;
use serde::Serialize;
use std::sync::Arc;

/// An argument or result of a function, and its calls by that.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ByValue {
    /// Index in `functions` of the report.
    pub function: usize,
    /// The name of the argument, or `retval`.
    pub name: Arc<str>,
    pub is_result: bool,
    /// The values whose calls took the most time, and of points, which take none, the most frequent.
    pub rows: Vec<OneValue>,
    /// The calls with other values.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub others: Option<ValueCalls>,
    /// The calls whose value could not be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unread: Option<ValueCalls>,
    /// True if there are too many different values to compare all: one of the others may have taken
    /// more than one that is shown.
    pub unsure: bool,
}

/// The calls with one value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OneValue {
    pub value: Value,
    #[serde(flatten)]
    pub of: ValueCalls,
}

/// Finished calls, with the numbers of those whose durations are known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ValueCalls {
    pub calls: u64,
    /// The number of calls with a known duration.
    pub timed: u64,
    pub total_ns: Nanos,
    pub mean_ns: Option<Nanos>,
    /// Percentiles are within 0.1 %.
    pub p50_ns: Option<Nanos>,
    pub p90_ns: Option<Nanos>,
    pub p99_ns: Option<Nanos>,
    pub max_ns: Option<Nanos>,
}
