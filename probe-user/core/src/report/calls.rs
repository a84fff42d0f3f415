//! Single calls: the slowest, and the calls inside them.

use super::values::{NamedValues, PointsReport};
use crate::units::{Nanos, Pid, Tid};
use serde::Serialize;
use std::sync::Arc;

/// One timed call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CallReport {
    /// Index in `functions` of the report.
    pub function: usize,
    /// The names of functions from the thread's first traced frame to this function.
    pub path: Vec<Arc<str>>,
    /// The same path as indices in `functions` of the report.
    pub functions: Vec<usize>,
    pub pid: Option<Pid>,
    pub tid: Option<Tid>,
    /// Name of the thread.
    pub thread: Option<Arc<str>>,
    pub start_ns: Nanos,
    pub duration_ns: Nanos,
    pub self_ns: Nanos,
    /// The values that were read at its entry.
    #[serde(skip_serializing_if = "NamedValues::is_empty")]
    pub values: NamedValues,
    /// Calls inside it that have values.
    #[serde(skip_serializing_if = "PointsReport::is_empty")]
    pub points: PointsReport,
    /// The number of calls inside it, at any depth.
    pub inside_calls: u64,
    /// The same calls as a tree.
    pub inside: Vec<InsideReport>,
}

impl CallReport {
    /// Returns the name of the function.
    pub fn name(&self) -> &str {
        self.path.last().map_or("", |name| name)
    }
}

/// A call inside another, or several of one function in one row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InsideReport {
    /// Index in `inside` of the caller, which comes first. `None` if the reported call is the
    /// caller.
    pub parent: Option<usize>,
    /// Index in `functions` of the report.
    pub function: usize,
    pub name: Arc<str>,
    pub calls: u64,
    /// The start of the first one.
    pub start_ns: Nanos,
    pub total_ns: Nanos,
    pub self_ns: Nanos,
    /// The duration of the longest one.
    pub max_ns: Nanos,
}
