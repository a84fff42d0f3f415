//! The one snapshot type: every table, export and screen is a pure function of a [`Report`].
//!
//! Its serialisation is the JSON interface `ctrace.report.v1` (`docs/report.schema.json`): keys are
//! only ever added, integers are integers, absent values are null.

pub(crate) mod assemble;
mod by_value;
mod calls;
mod cold;
pub mod ctrack;
mod distribution;
mod extras;
mod frames;
pub mod key;
mod locks;
mod loss;
mod meta;
mod names;
mod net;
pub mod numbers;
pub(crate) mod percentiles;
mod places;
mod plots;
mod probes;
pub mod render;
mod rendered;
mod row;
mod slow;
mod split;
mod stretches;
mod target;
mod timeline;
mod totals;
pub(crate) mod trend;
mod values;
mod wakers;

pub use assemble::MORE_THREADS;
pub use by_value::{ByValue, OneValue, ValueCalls};
pub use calls::{CallReport, InsideReport};
pub use ctrack::{CtrackReport, CtrackRow};
pub use distribution::{Distribution, FunctionHistogram, HeatRow, HistogramsReport};
pub use extras::Extras;
pub use frames::{FramePart, FrameReport, FramesAsked, FramesReport, MarkedFramesReport};
pub use locks::{LockCallerReport, LockReport, LocksReport};
pub use loss::LossReport;
pub use meta::ReportMeta;
pub use net::{Net, NetPath};
pub use plots::PlotReport;
pub use probes::{ProbeTimes, ProcessorTimes};
pub use slow::{Callee, SlowAsked, SlowCall};
pub use split::SplitReport;
pub use target::{RunningBefore, TargetExit, TargetReport};
pub use timeline::{LaneReport, TimelineCell, TimelineReport};
pub use totals::ReportTotals;
pub use trend::{FunctionTrend, TrendAsked, TrendInterval, TrendReport};
pub use values::{
    CallValues, LOST_TEXT, NOT_READ, NamedValues, PointReport, PointsReport, UNREADABLE,
};
pub use wakers::{INTERRUPT, WakerReport, WakersReport, WokenWaits};

pub use crate::calls::RestoredTimes;
use crate::colour::Colour;
use crate::function::FunctionKind;
use crate::points::PointShape;
use crate::stats::{Histogram, Summary};
use crate::units::{Nanos, Pid, Tid};
use crate::values::Value;
use crate::waits::WaitClass;
use serde::{Deserialize, Deserializer, Serialize};
use std::sync::Arc;

/// Value of the key `schema`.
pub const SCHEMA: &str = "ctrace.report.v1";

/// Everything known about one stretch of tracing.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Report {
    #[serde(skip_deserializing, default = "schema")]
    pub schema: &'static str,
    pub target: TargetReport,
    /// The part of the traced threads that it is about, if that is not all of them.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub part: Option<PartReport>,
    pub start_ns: Nanos,
    pub end_ns: Nanos,
    pub duration_ns: Nanos,
    /// The time in which any traced function ran on any thread.
    pub tracked_ns: Option<Nanos>,
    pub tracked_percent: Option<f64>,
    /// True if percentiles are from histograms (within 0.1 %) and center values are absent.
    pub approximate: bool,
    /// True if calls were counted in the kernel, without an event of each: percentiles are within 3.3 %, and
    /// what takes the times of single calls is null.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub counted: bool,
    /// True if it is of the tables of a fleet: the same accuracy, and other remedies.
    #[serde(skip)]
    pub of_fleet: bool,
    /// The percentage cut off each end for the `center` columns.
    pub center_cut_percent: f64,
    pub filtered_calls: u64,
    pub loss: LossReport,
    pub functions: Vec<FunctionReport>,
    pub paths: Vec<PathReport>,
    /// The number of calls on paths beyond the bound on paths.
    pub paths_other_calls: u64,
    /// The number of these calls that had not ended.
    #[serde(default, skip_serializing_if = "loss::is_none")]
    pub paths_other_open: u64,
    pub threads: Vec<ThreadReport>,
    /// Facts for the reader other than losses: children not followed, functions armed late, …
    pub notes: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub histograms: Option<HistogramsReport>,
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub slowest_calls: Option<Vec<CallReport>>,
    /// The slowest calls of each function in an interval, if a session [keeps](SlowAsked) them.
    #[serde(skip)]
    pub slow_calls: Vec<SlowCall>,
    /// The first calls that have values.
    #[serde(skip_serializing_if = "PointsReport::is_empty", skip_deserializing)]
    pub points: PointsReport,
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub timeline: Option<TimelineReport>,
    /// The frames, if a frame function or a frame mark was named.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub frames: Option<FramesReport>,
    /// Calls by their arguments and results, if that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty", skip_deserializing)]
    pub values: Vec<ByValue>,
    /// Waits by who ended them, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub wakers: Option<WakersReport>,
    /// The numbers of plots, if that was asked for.
    #[serde(skip_serializing_if = "Vec::is_empty", skip_deserializing)]
    pub plots: Vec<PlotReport>,
    /// The locks, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub locks: Option<LocksReport>,
    /// The functions in intervals of the report's time, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub trend: Option<TrendReport>,
    /// CTRACK's tables, if requested and if the report is not approximate.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub ctrack: Option<CtrackReport>,
}

/// Reads a number that is null where it is not known.
fn or_none<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    number: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(number)?.unwrap_or_default())
}

fn schema() -> &'static str {
    SCHEMA
}

/// The rule by which a report is divided into parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum By {
    Process,
    /// Processes of one program.
    Exe,
    /// Processes of one control group.
    Cgroup,
    Thread,
    /// Threads of one name.
    Name,
    /// The calls of a function with one value of an argument, or of the result.
    Value {
        function: String,
        argument: String,
    },
}

/// A process, all processes of a program or a control group, a thread, all threads of a name, or calls of a function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartReport {
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub pid: Option<Pid>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub tid: Option<Tid>,
    /// The name of the thread, of a process's program, of the control group, or of the function.
    pub name: Arc<str>,
    /// The number of processes of the program or the control group that the part is about.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub processes: Option<u64>,
    /// True if it is about a control group, and not a program.
    #[serde(skip_serializing_if = "std::ops::Not::not", default)]
    pub is_cgroup: bool,
    /// The calls of the function that the part is about. The calls inside them belong to it, too.
    #[serde(skip_serializing_if = "Option::is_none", skip_deserializing)]
    pub calls: Option<PartCalls>,
}

/// Calls of a function with one value of an argument or of the result, or with some others.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PartCalls {
    /// The function as people know it: a marker with its group, a USDT probe with its provider.
    #[serde(skip)]
    pub function: Arc<str>,
    /// The name of the argument, or `retval`.
    pub argument: Arc<str>,
    /// `None`: all values without a report of their own, or none that could be read.
    pub value: Option<Value>,
    /// True if it could not be read.
    pub is_unreadable: bool,
}

/// Statistics of one function, with the terms of docs/statistics.md. [`numbers`] names each of
/// them.
#[derive(Clone, Debug, Deserialize)]
pub struct FunctionReport {
    pub name: Arc<str>,
    /// As in [`FunctionInfo`](crate::function::FunctionInfo), like the next one.
    #[serde(default)]
    pub short_name: Option<Arc<str>>,
    #[serde(default)]
    pub full_name: Option<Arc<str>>,
    pub aliases: Vec<Arc<str>>,
    pub object: Arc<str>,
    pub file: Option<Arc<str>>,
    pub line: Option<u32>,
    pub kind: FunctionKind,
    pub group: Option<Arc<str>>,
    pub calls: u64,
    pub timed: u64,
    pub untimed: u64,
    pub open: u64,
    pub headless: u64,
    /// Number of threads that entered it.
    #[serde(deserialize_with = "or_none")]
    pub threads: u64,
    pub total_ns: Nanos,
    pub self_ns: Nanos,
    #[serde(deserialize_with = "or_none")]
    pub active_ns: Nanos,
    #[serde(deserialize_with = "or_none")]
    pub active_exclusive_ns: Nanos,
    #[serde(deserialize_with = "or_none")]
    pub active_exclusive_percent: f64,
    #[serde(flatten)]
    pub durations: DurationReport,
    pub fastest: TailReport,
    pub center: CenterReport,
    pub slowest: SlowTailReport,
    /// Estimates, if it was armed for only a part of the time to keep within a budget.
    #[serde(default)]
    pub sampled: Option<SampledReport>,
    /// True if a call that leaves by a tail call ends there, and not at its return.
    #[serde(default)]
    pub until_tail_call: bool,
    /// The number of calls inside its own that are left out, because they are deeper than asked for: its self
    /// time has theirs.
    #[serde(default)]
    pub callees_left_out: u64,
    /// Calls in which return addresses were put back, which nobody can subtract. Not known of recordings.
    #[serde(default)]
    pub restored: RestoredTimes,
    /// The part of its self time that is certainly no work: the threads that called it had a processor, or waited
    /// for one, for less than the rest.
    #[serde(default)]
    pub idle_ns: Nanos,
    /// True if calls within calls of the function itself are on the path of the outermost one.
    #[serde(default)]
    pub folded: bool,
    /// True if its calls were counted without an event of each, see [`Report::counted`].
    #[serde(skip)]
    pub counted: bool,
    /// True if only the order of a thread's events tells the ends of calls: one that is missing makes
    /// durations wrong.
    #[serde(default)]
    pub joined_by_order: bool,
    /// True if its calls are those of an async function, or the waits in them.
    #[serde(default, rename = "async")]
    pub is_async: bool,
    /// The condition that calls meet, if only those count that do.
    #[serde(default)]
    pub condition: Option<Arc<str>>,
    /// Functions with inlined code in it, as far as they were looked for: their time is its self time.
    #[serde(default)]
    pub inlined: Vec<Arc<str>>,
    /// The kind of waits that its calls are, if it is no function of a program.
    #[serde(default)]
    pub wait: Option<WaitClass>,
    /// The shape of a marker that is no scope, but a point in time.
    #[serde(default)]
    pub point: Option<PointShape>,
    /// The colour that the program gives a scope.
    #[serde(default, deserialize_with = "Colour::read")]
    pub colour: Option<Colour>,
    #[serde(flatten)]
    pub split: SplitReport,
    #[serde(default)]
    pub probes: Option<ProbeTimes>,
    /// The length of the report's stretch. Unknown for a row that was read from JSON.
    #[serde(skip)]
    pub stretch_ns: Nanos,
    /// The source of the rendered numbers; `None` if the row was read from JSON. It has a histogram
    /// if latencies are requested.
    #[serde(skip)]
    pub summary: Option<Summary>,
}

/// Estimates of a function's numbers over the whole time, extrapolated from the observed part.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampledReport {
    /// The time in which it was armed.
    pub armed_ns: Nanos,
    pub armed_percent: f64,
    /// The number of short stretches in which it was armed; longer ones do not count.
    pub windows: u64,
    pub calls: Option<u64>,
    /// Half the width of the 95 % interval around `calls`; needs at least two windows.
    pub calls_error: Option<u64>,
    pub total_ns: Option<Nanos>,
    pub active_ns: Option<Nanos>,
}

/// Distribution of the timed calls; all null if there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct DurationReport {
    pub min_ns: Option<Nanos>,
    pub mean_ns: Option<Nanos>,
    pub p50_ns: Option<Nanos>,
    pub p75_ns: Option<Nanos>,
    pub p90_ns: Option<Nanos>,
    pub p95_ns: Option<Nanos>,
    pub p99_ns: Option<Nanos>,
    pub p999_ns: Option<Nanos>,
    pub max_ns: Option<Nanos>,
    pub sd_ns: Option<Nanos>,
    pub cv: Option<f64>,
}

/// The fastest calls, left out of the center.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct TailReport {
    pub min_ns: Option<Nanos>,
    pub mean_ns: Option<Nanos>,
}

/// The slowest calls, left out of the center.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct SlowTailReport {
    pub mean_ns: Option<Nanos>,
    pub max_ns: Option<Nanos>,
}

/// The calls between the two tails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct CenterReport {
    pub min_ns: Option<Nanos>,
    pub mean_ns: Option<Nanos>,
    pub median_ns: Option<Nanos>,
    pub max_ns: Option<Nanos>,
    pub active_ns: Option<Nanos>,
    pub active_exclusive_ns: Option<Nanos>,
    pub active_exclusive_percent: Option<f64>,
}

/// One call path, from a thread's first traced frame to its last.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct PathReport {
    /// The names of the functions, root to leaf.
    pub path: Vec<Arc<str>>,
    /// Index in `paths` of the path without the leaf; parents come before children.
    pub parent: Option<usize>,
    /// Index in `functions` of the leaf.
    pub function: usize,
    pub calls: u64,
    /// The number of these that had not ended.
    #[serde(skip)]
    pub open: u64,
    pub total_ns: Nanos,
    pub self_ns: Nanos,
    pub p50_ns: Option<Nanos>,
    pub p90_ns: Option<Nanos>,
    pub p99_ns: Option<Nanos>,
    pub max_ns: Option<Nanos>,
    /// The durations by octave, if requested.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub histogram: Option<Distribution>,
    /// The calls that ended, with their durations, if requested.
    #[serde(skip)]
    pub latencies: Option<PathLatencies>,
}

/// The timed calls on a path by duration, and the others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PathLatencies {
    pub histogram: Histogram,
    pub min_ns: Option<Nanos>,
    pub max_ns: Option<Nanos>,
    pub untimed: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ThreadReport {
    pub pid: Pid,
    pub tid: Tid,
    pub name: Arc<str>,
    pub calls: u64,
    /// The number of these calls that had not ended.
    #[serde(default)]
    pub open: u64,
    pub first_ns: Nanos,
    pub last_ns: Nanos,
}
