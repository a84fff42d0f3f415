//! The groups of options that several subcommands share: SELECT, FILTER, OUTPUT and the probes.

use super::values;
use crate::session::budget::slowdown::SlowdownPolicy;
use clap::{Args, ValueEnum};
use ctrace_core::units::Nanos;
use std::{path::PathBuf, time::Duration};

#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "What to trace")]
pub(crate) struct SelectArgs {
    /// Functions by glob or /regex/ on demangled names; repeatable. OBJECT is a glob on the file
    /// name of the program or library
    #[arg(short, long = "function", value_name = "GLOB[@OBJECT]")]
    pub functions: Vec<String>,
    /// USDT probes; repeatable
    #[arg(short, long = "usdt", value_name = "[PROVIDER:]GLOB[@OBJECT]")]
    pub usdt: Vec<String>,
    /// Marker scopes, in the program and all its libraries; repeatable. With none of -f, -u and -m:
    /// all that there are
    #[arg(short, long = "marker", value_name = "[GROUP/]GLOB[@OBJECT]")]
    pub markers: Vec<String>,
    /// Leave these out; repeatable
    #[arg(short = 'x', long = "exclude", value_name = "GLOB")]
    pub exclude: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "What to trace")]
pub(crate) struct MostArgs {
    /// Refuse a selection of more functions, probes and scopes than this
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = values::at_least_one::<usize>)]
    pub max_functions: usize,
    /// The memory that looking into one program or library may take, its debug file included
    #[arg(long, value_name = "SIZE", default_value = "512MiB", value_parser = values::size)]
    pub max_object_memory: u64,
    /// The processor time that looking into one program or library may take
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::seconds)]
    pub max_object_time: Duration,
}

#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Which calls count")]
pub(crate) struct FilterArgs {
    /// Only calls that took at least this long; shorter ones are their caller's time
    #[arg(long, value_name = "TIME", value_parser = values::nanos)]
    pub min_duration: Option<Nanos>,
    /// Only calls at most this deep among the traced functions
    #[arg(long, value_name = "N", value_parser = values::at_least_one::<u32>)]
    pub depth: Option<u32>,
    /// Only the threads whose names match, or the one of this id; repeatable
    #[arg(long = "thread", value_name = "GLOB|TID")]
    pub threads: Vec<String>,
}

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "How to look at it")]
pub(crate) struct LensArgs {
    /// Only calls of these functions, and what they call; repeatable
    #[arg(long = "caller", value_name = "GLOB[@OBJECT]")]
    pub callers: Vec<String>,
    /// Only calls of these functions, and the calls they are made in; repeatable
    #[arg(long = "callee", value_name = "GLOB[@OBJECT]")]
    pub callees: Vec<String>,
    /// Paths begin with these functions, such as an event loop's handlers; repeatable
    #[arg(long = "root", value_name = "GLOB[@OBJECT]")]
    pub roots: Vec<String>,
    /// Only calls that ended in this time since the start, such as 10s..20s, ..5s or 1m..
    #[arg(long, value_name = "FROM..TO", value_parser = values::window)]
    pub time: Option<std::ops::Range<Nanos>>,
    /// A function that is on the path already is not added to it again
    #[arg(long)]
    pub fold_recursion: bool,
    /// Read recordings of up to this many calls, each [default: 16 for each byte of its file, and
    /// 4 million, which recordings of ctrace do not have]
    #[arg(long, value_name = "N", value_parser = values::at_least_one::<u64>)]
    pub max_calls: Option<u64>,
}

/// What of a recording is looked at: SELECT, FILTER and how.
#[derive(Debug, Args)]
pub(crate) struct QueryArgs {
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub filter: FilterArgs,
    #[command(flatten)]
    pub lens: LensArgs,
}

#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "The command")]
pub(crate) struct UserArgs {
    /// Run the command as this user, with the groups and the login environment of the account; root
    /// keeps root. Under sudo the default is who called it, without sudo nothing changes
    ///
    /// The command shares ctrace's terminal. Where `sysctl dev.tty.legacy_tiocsti` is 1, it can type
    /// into the root shell that ctrace was started from: set that to 0, or start ctrace by `setsid -w`
    #[arg(long, value_name = "NAME|UID")]
    pub user: Option<String>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "The recording")]
pub(crate) struct RecordingArgs {
    /// The file to write
    #[arg(short, long = "output", value_name = "FILE", default_value = "trace.ctrace")]
    pub output: PathBuf,
    /// Replace recordings that are there already
    #[arg(long)]
    pub force: bool,
    /// Keep only the newest calls: at least half of this size (1MiB or more), and at most all
    /// of it, unless names and paths alone need nearly as much
    #[arg(long, value_name = "SIZE", value_parser = values::recording_size)]
    pub max_size: Option<u64>,
    /// Begin another file before one is larger than this (1MiB or more): trace.ctrace,
    /// trace.1.ctrace, …; each stands for itself
    #[arg(long, value_name = "SIZE", value_parser = values::recording_size, conflicts_with = "max_size")]
    pub rotate: Option<u64>,
    /// With --rotate: remove all but the newest so many files
    #[arg(long, value_name = "N", requires = "rotate", value_parser = values::at_least_one::<u32>)]
    pub keep: Option<u32>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    #[arg(long, value_enum, default_value_t)]
    pub format: ReportFormat,
    /// What to show; repeatable
    #[arg(long = "view", value_name = "VIEW", value_parser = values::view_names())]
    pub views: Vec<String>,
    /// Sort rows by a column
    #[arg(long, value_name = "COLUMN")]
    pub sort: Option<String>,
    /// Show only the first N rows
    #[arg(long, value_name = "N", value_parser = values::at_least_one::<usize>)]
    pub top: Option<usize>,
    /// Percent of the calls to cut off each end for the center columns
    #[arg(long, value_name = "PERCENT", default_value_t = 1.0, value_parser = values::center)]
    pub center: f64,
    /// Leave out rows with less than this percent of the time
    #[arg(long, value_name = "PERCENT", value_parser = values::percent)]
    pub min_percent: Option<f64>,
    /// Report every so many seconds (also 500ms, 2m); each report covers its own interval
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    pub interval: Option<Duration>,
    /// With --interval: each report covers everything since the start
    #[arg(long, requires = "interval")]
    pub cumulative: bool,
    /// Write the report to this file; - is stdout
    #[arg(short, long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
}

#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Probes")]
pub(crate) struct ProbeArgs {
    /// How the ends of calls are seen
    #[arg(long, value_enum, default_value_t)]
    pub returns: ReturnsArg,
    /// How probes are linked to the kernel
    #[arg(long, value_enum, default_value_t)]
    pub link: LinkArg,
    /// Attach more than a few hundred functions with perf links, although that is slow
    #[arg(long)]
    pub force_perf: bool,
    /// Trace the processes that the target forks, too
    #[arg(long)]
    pub follow: bool,
    /// Size of the ring buffer of each CPU, from 4KiB to 1GiB; it becomes a power of two
    #[arg(long, value_name = "SIZE", default_value = "16MiB", value_parser = values::ring_size)]
    pub ring_size: u64,
    /// Memory for calls; more go to a temporary file (in TMPDIR, or /var/tmp), and with 0 all. With
    /// --interval there is no file, and past this size percentiles are within 0.1 %
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = values::size)]
    pub spool: u64,
    /// Keep what the probes cost within this much of the target's own processor time: the dearest
    /// functions are armed for a part of the time only, and what they do in all of it is estimated
    #[arg(long, value_name = "PERCENT", value_parser = values::budget)]
    pub budget: Option<f64>,
    /// What to do about a slowed target (with --follow, and its children): warn (beyond 50 %), off,
    /// or stop beyond PERCENT
    #[arg(long, value_name = "warn|off|PERCENT", default_value = "warn", value_parser = values::slowdown)]
    pub max_slowdown: SlowdownPolicy,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    #[default]
    Table,
    Json,
    Csv,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReturnsArg {
    /// Return probes where nothing can unwind through them, probes on the ways out elsewhere
    #[default]
    Auto,
    /// Return probes wherever they are not deadly; exceptions and panics through them kill the target
    Uretprobe,
    /// Probes on the ways out of each function
    RetSites,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LinkArg {
    /// The best this kernel has
    #[default]
    Auto,
    /// One session link (6.13 and later)
    Session,
    /// Multi links (6.6 and later)
    Multi,
    /// One perf link for each probe (5.15 and later)
    Perf,
}
