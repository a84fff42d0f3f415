//! The rows of single calls: the slowest of each function in an interval.
//!
//! Arguments and results are in no row.

use super::FunctionNames;
use super::rows::Origin;
use crate::formats::labels;
use crate::report::{Report, SlowCall};
use std::sync::Arc;

/// Limit of the direct callees of a row, those that took most.
const MOST_INSIDE: usize = 16;

/// A row of `slow_calls`.
#[derive(Clone, Debug, PartialEq)]
pub struct SlowRow {
    pub origin: Arc<Origin>,
    pub names: FunctionNames,
    pub call: OneCall,
    /// The names of the functions, outermost first.
    pub path: Vec<Arc<str>>,
    pub inside: Vec<CalleeRow>,
    pub lost_events: u64,
}

/// The call of a row.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OneCall {
    /// The process of the thread. With `follow` it may be another than that of the row.
    pub process: u32,
    pub tid: u32,
    /// The name of the thread.
    pub thread: Arc<str>,
    /// Nanoseconds since 1970.
    pub start_ns: i64,
    pub duration_ns: u64,
    /// Its duration without direct traced callees. `None` if they are not known.
    pub self_ns: Option<u64>,
}

/// Calls of one function that the call made itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CalleeRow {
    pub function: Arc<str>,
    pub calls: u64,
    pub total_ns: u64,
}

impl SlowRow {
    /// Returns the rows of a report. `epoch` returns a time of it since 1970.
    pub(super) fn all<'a>(
        report: &'a Report,
        origin: &'a Arc<Origin>,
        epoch: &'a dyn Fn(crate::units::Nanos) -> i64,
    ) -> impl Iterator<Item = Self> + 'a {
        report.slow_calls.iter().filter_map(|call| Self::of(report, call, origin, epoch))
    }

    fn of(
        report: &Report,
        call: &SlowCall,
        origin: &Arc<Origin>,
        epoch: &dyn Fn(crate::units::Nanos) -> i64,
    ) -> Option<Self> {
        let name = |function: usize| -> Option<Arc<str>> {
            Some(labels::text(&report.functions.get(function)?.name).into())
        };
        let function = report.functions.get(call.function)?;
        let inside = call.inside.iter().flatten().take(MOST_INSIDE).filter_map(|callee| {
            let function = name(callee.function)?;
            Some(CalleeRow { function, calls: callee.calls, total_ns: callee.total_ns.0 })
        });
        function.wait.is_none().then(|| Self {
            origin: Arc::clone(origin),
            names: FunctionNames::of(function),
            call: OneCall {
                process: call.pid.0,
                tid: call.tid.0,
                thread: labels::text(&call.thread).into(),
                start_ns: epoch(call.start_ns),
                duration_ns: call.duration_ns.0,
                self_ns: call.self_ns().map(|own| own.0),
            },
            path: call.path.iter().filter_map(|function| name(*function)).collect(),
            inside: inside.collect(),
            lost_events: report.loss.events,
        })
    }

    /// Returns about how much memory the row needs.
    pub(super) fn bytes(&self) -> usize {
        300 + 40 * self.path.len() + 56 * self.inside.len()
    }
}
