//! The rows of an interval, from its report.
//!
//! A call counts in the interval in which it ends: open calls are in no sum, so rows can be added.
//! Numbers come from each function's `Summary`, not from what is rendered of it. Command lines and
//! arguments are in no row.

use super::FunctionNames;
use super::buckets::Buckets;
use super::slow::SlowRow;
use crate::formats::labels;
use crate::report::Report;
use crate::stats::Tally;
use crate::units::{Nanos, Pid};
use std::collections::HashSet;
use std::sync::Arc;

/// The process and the interval that rows are of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// Nanoseconds since 1970.
    pub start_ns: i64,
    pub end_ns: i64,
    /// The `id` in the configuration.
    pub target: Arc<str>,
    pub pid: Pid,
    /// The build id of the program.
    pub version: Option<Arc<str>>,
}

/// The sums of a function.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FunctionSums {
    pub tally: Tally,
    pub headless: u64,
    pub active_ns: u64,
    pub innermost_ns: u64,
    /// The timed calls by duration.
    pub buckets: Buckets,
    /// The time that its probes took.
    pub cost_ns: u64,
    /// The time in which it was armed.
    pub armed_ns: u64,
    /// Events that the process lost in these intervals.
    pub lost_events: u64,
}

impl FunctionSums {
    pub(super) fn add(&mut self, other: &Self) {
        self.tally.merge(&other.tally);
        self.buckets.merge(&other.buckets);
        for (mine, other) in [
            (&mut self.headless, other.headless),
            (&mut self.active_ns, other.active_ns),
            (&mut self.innermost_ns, other.innermost_ns),
            (&mut self.cost_ns, other.cost_ns),
            (&mut self.armed_ns, other.armed_ns),
            (&mut self.lost_events, other.lost_events),
        ] {
            *mine = mine.saturating_add(other);
        }
    }
}

/// A row of `functions`.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionRow {
    pub origin: Arc<Origin>,
    pub names: FunctionNames,
    /// The build id of the object.
    pub build_id: Option<Arc<str>>,
    pub sums: FunctionSums,
}

/// A row of `paths`.
#[derive(Clone, Debug, PartialEq)]
pub struct PathRow {
    pub origin: Arc<Origin>,
    /// The names of the functions, outermost first.
    pub path: Vec<Arc<str>>,
    pub calls: u64,
    pub total_ns: u64,
    pub self_ns: u64,
    pub lost_events: u64,
    /// The calls of which the duration is not known.
    pub untimed: u64,
    pub min_ns: Option<u64>,
    pub max_ns: Option<u64>,
    /// The timed calls by duration.
    pub buckets: Buckets,
}

/// A row of `targets`.
#[derive(Clone, Debug, PartialEq)]
pub struct TargetRow {
    pub origin: Arc<Origin>,
    pub processes: u32,
    /// The file name of the program.
    pub program: Arc<str>,
    /// The number of functions that were called.
    pub functions: u64,
    pub calls: u64,
    pub cost_ns: u64,
    /// CPU time of the process, if it is known.
    pub cpu_ns: Option<u64>,
    pub losses: Losses,
}

/// The losses of an interval, by kind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    pub events: u64,
    pub late: u64,
    pub decode_errors: u64,
    pub untimed: u64,
    pub open: u64,
    pub headless: u64,
    /// Calls on paths beyond the bound on paths.
    pub calls_without_path: u64,
}

/// All rows of an interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Interval {
    pub functions: Vec<FunctionRow>,
    pub paths: Vec<PathRow>,
    pub slow_calls: Vec<SlowRow>,
    pub target: TargetRow,
}

/// Facts about an interval besides its report.
pub struct Beside<'a> {
    /// The cost of each function of the report.
    pub spent: &'a [Nanos],
    /// CPU time in the interval.
    pub cpu: Option<Nanos>,
    /// Returns the build id of an object.
    pub build_id: &'a dyn Fn(&str) -> Option<Arc<str>>,
    /// The path of the program.
    pub program: &'a str,
    /// Returns a time of the report in nanoseconds since 1970.
    pub epoch: &'a dyn Fn(Nanos) -> i64,
}

impl Interval {
    pub fn of(report: &Report, origin: Origin, beside: &Beside<'_>) -> Self {
        let origin = Arc::new(origin);
        let lost_events = report.loss.events;
        let functions: Vec<FunctionRow> = (report.functions.iter().enumerate())
            .filter(|(_, row)| row.wait.is_none() && (row.ended() > 0 || row.headless > 0))
            .map(|(place, row)| {
                let summary = row.summary();
                let armed = row.sampled.map_or(report.duration_ns, |sampled| sampled.armed_ns);
                FunctionRow {
                    origin: Arc::clone(&origin),
                    names: FunctionNames::of(row),
                    build_id: (beside.build_id)(&row.object),
                    sums: FunctionSums {
                        headless: summary.headless,
                        active_ns: summary.active_ns,
                        innermost_ns: summary.exclusive_ns,
                        buckets: summary.histogram.as_ref().map(Buckets::of).unwrap_or_default(),
                        cost_ns: beside.spent.get(place).map_or(0, |cost| cost.0),
                        armed_ns: armed.0,
                        lost_events,
                        tally: summary.tally,
                    },
                }
            })
            .collect();
        let name = |place: usize| report.functions.get(place).filter(|row| row.wait.is_none());
        let paths = report.paths.iter().filter(|path| path.calls > path.open);
        let paths = paths.filter(|path| name(path.function).is_some()).map(|path| {
            let latencies = path.latencies.as_ref();
            PathRow {
                origin: Arc::clone(&origin),
                path: path.path.iter().map(|name| labels::text(name).into()).collect(),
                calls: path.calls - path.open,
                total_ns: path.total_ns.0,
                self_ns: path.self_ns.0,
                lost_events,
                untimed: latencies.map_or(0, |it| it.untimed),
                min_ns: latencies.and_then(|it| Some(it.min_ns?.0)),
                max_ns: latencies.and_then(|it| Some(it.max_ns?.0)),
                buckets: latencies.map(|it| Buckets::of(&it.histogram)).unwrap_or_default(),
            }
        });
        let slow_calls = SlowRow::all(report, &origin, beside.epoch).collect();
        let processes: HashSet<Pid> = report.threads.iter().map(|thread| thread.pid).collect();
        let program = beside.program.rsplit('/').next().unwrap_or_default();
        let sum = |of: fn(&FunctionRow) -> u64| {
            functions.iter().fold(0, |sum: u64, row| sum.saturating_add(of(row)))
        };
        let target = TargetRow {
            origin: Arc::clone(&origin),
            processes: processes.len().max(1) as u32,
            program: labels::text(program).into(),
            functions: functions.len() as u64,
            calls: sum(|row| row.sums.tally.ended()),
            cost_ns: beside.spent.iter().fold(0, |sum, cost| sum.saturating_add(cost.0)),
            cpu_ns: beside.cpu.map(|cpu| cpu.0),
            losses: Losses {
                events: lost_events,
                late: report.loss.late,
                decode_errors: report.loss.decode_errors,
                untimed: report.loss.calls_untimed,
                open: report.loss.calls_open,
                headless: report.loss.calls_headless,
                calls_without_path: (report.paths_other_calls)
                    .saturating_sub(report.paths_other_open),
            },
        };
        Self { functions, paths: paths.collect(), slow_calls, target }
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> u64 {
        (self.functions.len() + self.paths.len() + self.slow_calls.len() + 1) as u64
    }

    /// Returns about how much memory the rows need.
    pub fn bytes(&self) -> usize {
        let functions: usize =
            self.functions.iter().map(|row| 400 + 8 * row.sums.buckets.len()).sum();
        let of_path = |row: &PathRow| 200 + 40 * row.path.len() + 8 * row.buckets.len();
        let paths: usize = self.paths.iter().map(of_path).sum();
        let slow_calls: usize = self.slow_calls.iter().map(SlowRow::bytes).sum();
        500 + functions + paths + slow_calls
    }
}
