//! Groups of options that several subcommands share: SELECT, FILTER, OUTPUT and the probes.

use super::values;
use crate::{
    session::{budget::slowdown::SlowdownPolicy, keep::replayed::CENTER},
    target::{usdt::provider::ProviderFile, values::asked::AskedValues},
};
use clap::{ArgAction, Args, ValueEnum};
use ctrace_core::{report::By, units::Nanos};
use std::{convert::Infallible, ops::Range, path::PathBuf, time::Duration};

#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "What to trace")]
pub(crate) struct SelectArgs {
    /// Functions by glob or /regex/ on demangled names; repeatable. A name that is no function's
    /// whole name stands for *::NAME. In C++ and Rust choose your own namespace first: -f 'shop::*'
    /// rather than '*'. OBJECT is a glob on the file name of the program or library
    #[arg(short, long = "function", value_name = "GLOB[@OBJECT]")]
    pub functions: Vec<String>,
    /// USDT probes; repeatable. query-start and query__start mean the same. Pairs such as
    /// query__start and query__done are timed as calls of `query`, if both are chosen
    #[arg(short, long = "usdt", value_name = "[PROVIDER:]GLOB[@OBJECT]")]
    pub usdt: Vec<String>,
    /// Marker scopes, in the program and all its libraries; repeatable. By default (without -f, -u,
    /// -m, --pair, --arg, --ret, --where and --locks) all markers are traced
    #[arg(short, long = "marker", value_name = "[GROUP/]GLOB[@OBJECT]")]
    pub markers: Vec<String>,
    /// Functions, probes and scopes to leave out; repeatable. Part of a name works as with -f
    #[arg(short = 'x', long = "exclude", value_name = "GLOB")]
    pub exclude: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "What to trace")]
pub(crate) struct ProgramSelectArgs {
    /// Time calls from one USDT probe to another, where their names do not say that they are a pair;
    /// repeatable. A call may have several ENDs. Probes are named as with -u
    #[arg(long = "pair", value_name = "[NAME=]START,END")]
    pub pairs: Vec<String>,
    /// Count the hits of USDT probes that look like pairs, and time no calls between them
    #[arg(long)]
    pub no_pairs: bool,
    /// Read what arguments of USDT probes mean from a file for `dtrace -h`, as PostgreSQL's probes.d:
    /// `provider app { probe start(char *path, int fd); };`. Arguments of type char * are then texts.
    /// --arg goes before it; repeatable
    #[arg(long = "provider", value_name = "FILE", value_parser = ProviderFile::read)]
    pub providers: Vec<ProviderFile>,
    /// Also the functions that the chosen ones call by name, in the program and its libraries. With
    /// =N: those that these call, too, N calls deep
    #[arg(long, value_name = "N", default_missing_value = "1", num_args = 0..=1, require_equals = true,
        value_parser = values::at_least_one::<u32>)]
    pub with_callees: Option<u32>,
    /// Also the functions that call the chosen ones by name. With =N: those that call these, too, N
    /// calls up
    #[arg(long, value_name = "N", default_missing_value = "1", num_args = 0..=1, require_equals = true,
        value_parser = values::at_least_one::<u32>)]
    pub with_callers: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "What to trace")]
pub(crate) struct ValuesArgs {
    /// Read arguments of functions at each call, and trace these functions; repeatable. With debug
    /// information, ARG is a name of the source: key, or req->len. Without, it is POS:TYPE. POS is 0
    /// to 5 for the integers and pointers in registers, or s0, s1, … for 8 bytes each on the stack.
    /// TYPE is i8 u8 i16 u16 i32 u32 i64 u64 bool char ptr str, and on the stack f32 f64. With
    /// PROVIDER:PROBE for FUNCTION, POS is the number of a USDT probe's argument. `python` is the Python
    /// function around the call, `python.file` its file, `python.line` its line
    #[arg(
        long = "arg",
        value_name = "FUNCTION: [NAME=]ARG, …",
        value_parser = AskedValues::arguments
    )]
    pub arguments: Vec<AskedValues>,
    /// Read results of functions; repeatable. Without TYPE, debug information says what it is
    #[arg(long = "ret", value_name = "FUNCTION[: TYPE]", value_parser = AskedValues::result)]
    pub results: Vec<AskedValues>,
    /// Count only calls whose arguments meet a condition: 'handle: len > 4096 && method == "GET"';
    /// repeatable. ARG is as for --arg, VALUE a whole number, 'c', true, false, a "text" or a name of
    /// an enumeration. It traces FUNCTION; without one it holds for all that -f chooses
    #[arg(
        long = "where",
        value_name = "[FUNCTION:] ARG==VALUE",
        value_parser = AskedValues::condition
    )]
    pub conditions: Vec<AskedValues>,
    /// Follow the mutexes and read-write locks of libc: how long threads wait for each, how long it is
    /// held, and by whom (--view locks). Every lock and unlock takes the time of its probes
    #[arg(long)]
    pub locks: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Limits")]
pub(crate) struct MostArgs {
    /// Refuse a selection of more functions, probes and scopes than this
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = values::at_least_one::<usize>)]
    pub max_functions: usize,
    /// Memory limit for reading one program or library, including its debug file
    #[arg(long, value_name = "SIZE", default_value = "512MiB", value_parser = values::size)]
    pub max_object_memory: u64,
    /// CPU time limit for reading one program or library
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::seconds)]
    pub max_object_time: Duration,
}

#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Which calls count")]
pub(crate) struct FilterArgs {
    /// Only calls that took at least this long; shorter calls count as their caller's self time, and make
    /// no events while tracing
    #[arg(long, value_name = "TIME", value_parser = values::nanos)]
    pub min_duration: Option<Nanos>,
    /// Only calls at most this deep among the traced functions; while tracing, deeper ones make no events
    #[arg(long, value_name = "N", value_parser = values::at_least_one::<u32>)]
    pub depth: Option<u32>,
    /// Only threads with a matching name, or the one with this id; repeatable
    #[arg(long = "thread", value_name = "GLOB|TID")]
    pub threads: Vec<String>,
}

/// The option that chooses a part of the time. A comparison takes two.
pub(super) const TIME: &str = "time";

#[derive(Debug, Default, Args)]
#[command(next_help_heading = "How to look at it")]
pub(crate) struct LensArgs {
    /// Only calls of these functions, and the calls inside them; repeatable
    #[arg(long = "caller", value_name = "GLOB[@OBJECT]")]
    pub callers: Vec<String>,
    /// Only calls of these functions, and the calls around them; repeatable
    #[arg(long = "callee", value_name = "GLOB[@OBJECT]")]
    pub callees: Vec<String>,
    /// Start paths at these functions, such as an event loop's handlers; repeatable
    #[arg(long = "root", value_name = "GLOB[@OBJECT]")]
    pub roots: Vec<String>,
    /// Only calls that ended in this time since the start, such as 10s..20s, ..5s or 1m..
    #[arg(
        id = TIME,
        long,
        value_name = "FROM..TO",
        value_parser = values::window,
        action = ArgAction::Set
    )]
    pub times: Vec<Range<Nanos>>,
    /// Do not add a function to a path that already contains it
    #[arg(long)]
    pub fold_recursion: bool,
    /// Read at most this many calls of each recording [default: 16 for each byte of its file, plus
    /// 4 million; recordings of ctrace never have more]
    #[arg(long, value_name = "N", value_parser = values::at_least_one::<u64>)]
    pub max_calls: Option<u64>,
}

impl LensArgs {
    pub(crate) fn time(&self) -> Option<&Range<Nanos>> {
        self.times.first()
    }
}

/// The part of a recording to look at: SELECT, FILTER and lens.
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
    /// Run the command as this user, with the account's groups and login environment; root keeps
    /// root. Default: under sudo its caller, else no change
    ///
    /// The command shares ctrace's terminal. Where `sysctl dev.tty.legacy_tiocsti` is 1, it can
    /// type into the root shell that started ctrace: set that to 0, or start ctrace by `setsid -w`
    #[arg(long, value_name = "NAME|UID")]
    pub user: Option<String>,
}

/// The same option where processes can be chosen as well, and that to await more of them.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub(crate) struct ChosenUserArgs {
    /// All processes that have this user's rights. With --exe, --cgroup or --container: those among
    /// them. With a command: run it as this user, as `ctrace run` does
    #[arg(long, value_name = "NAME|UID")]
    pub user: Option<String>,
    /// Also trace processes that start later and match the choice, until Ctrl-C or --duration. If none
    /// runs yet, wait for the first
    #[arg(long, conflicts_with = "command", help_heading = "What to trace")]
    pub later: bool,
}

/// The recording that `record` writes, and the others read, where none is named.
pub(crate) const RECORDING: &str = "trace.ctrace";

#[derive(Debug, Args)]
#[command(next_help_heading = "The recording")]
pub(crate) struct RecordingArgs {
    /// The file to write
    #[arg(short, long = "output", value_name = "FILE", default_value = RECORDING)]
    pub output: PathBuf,
    /// Replace existing recordings
    #[arg(long)]
    pub force: bool,
    /// Keep only the newest calls: between half and all of this size (1MiB or more), unless names
    /// and paths alone need nearly as much
    #[arg(long, value_name = "SIZE", value_parser = values::recording_size)]
    pub max_size: Option<u64>,
    /// Start a new file before one exceeds this size (1MiB or more): trace.ctrace, trace.1.ctrace,
    /// …; each is readable alone
    #[arg(long, value_name = "SIZE", value_parser = values::recording_size, conflicts_with = "max_size")]
    pub rotate: Option<u64>,
    /// With --rotate: keep only the N newest files
    #[arg(long, value_name = "N", requires = "rotate", value_parser = values::at_least_one::<u32>)]
    pub keep: Option<u32>,
}

#[derive(Debug, Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// The view to show; repeatable [default: summary]
    #[arg(long = "view", value_name = "VIEW", value_parser = values::view_names())]
    pub views: Vec<String>,
    /// Show why the longest frames take longer than typical ones. A frame is a call of FUNCTION, or the
    /// time between two frame marks of this name, or between two hits of this USDT probe (--view frames)
    #[arg(long, value_name = "FUNCTION", visible_alias = "frame-function")]
    pub frame: Option<String>,
    /// Add a report for each part. PART is process, exe (program), cgroup, thread, name (all threads of
    /// one name), or 'FUNCTION: ARG': the calls of FUNCTION with each value of ARG (or of retval, its
    /// result), and what they called
    #[arg(long, value_name = "PART", value_parser = values::by)]
    pub by: Option<By>,
    /// Sort rows by a column
    #[arg(long, value_name = "COLUMN")]
    pub sort: Option<String>,
    /// Show only the first N rows
    #[arg(long, value_name = "N", value_parser = values::at_least_one::<usize>)]
    pub top: Option<usize>,
    /// Leave out rows below this percentage of the time
    #[arg(long, value_name = "PERCENT", value_parser = values::percent)]
    pub min_percent: Option<f64>,
    /// Report at this interval in seconds (also 500ms, 2m); each report covers its own interval. With
    /// --view trend: the length of its intervals, in one report
    #[arg(long, value_name = "SECONDS", value_parser = values::seconds)]
    pub interval: Option<Duration>,
    /// With --interval: let each report cover everything since the start
    #[arg(long, requires = "interval")]
    pub cumulative: bool,
    #[arg(long, value_enum, default_value_t)]
    pub format: ReportFormat,
    /// Write the report to this file; - is stdout
    #[arg(short, long = "output", value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Show times as seen, with the cost of probes. Once `ctrace doctor --calibrate` has measured it,
    /// `--view summary` also shows them without it
    #[arg(long)]
    pub raw: bool,
    /// Percentage of calls to cut off each end for the center (--view detail, --view ctrack)
    #[arg(long, value_name = "PERCENT", default_value_t = CENTER, value_parser = values::center)]
    pub center: f64,
}

#[derive(Clone, Debug, Default, PartialEq, Args)]
#[command(next_help_heading = "Probes")]
pub(crate) struct ProbeArgs {
    /// Refused with a hint: it judges recordings
    #[arg(long, value_name = "TIME[:PERCENT]", value_parser = values::for_recordings, hide = true)]
    pub fail_frames_over: Option<Infallible>,
    /// Also trace the processes that the target has started and starts, until the last of them ends.
    /// With attach, record, top and trace, a name then means all processes that have it
    #[arg(long, help_heading = "What to trace")]
    pub follow: bool,
    /// If nothing matches yet, wait for libraries that the target loads, and for programs that it
    /// executes; 125 if none has a match. --follow waits as well, also for what it starts
    #[arg(long, help_heading = "What to trace")]
    pub wait: bool,
    /// Tell waiting from working: the time of each call in which its thread ran, waited for a processor
    /// (runnable), or waited for something else (blocked), and for what. The first screen is in order of
    /// the time in which threads ran
    #[arg(long, help_heading = "What to trace")]
    pub cpu: bool,
    /// Tell who ends each wait: the traced function and the thread that woke the one that waited, another
    /// process, or an interrupt (--view wakers). It implies --cpu
    #[arg(long, help_heading = "What to trace")]
    pub wakers: bool,
    /// Limit the cost of probes to this percentage of the target's own CPU time: the costliest
    /// functions are probed intermittently, and their rows show what was seen meanwhile. JSON estimates
    /// all of it
    #[arg(long, value_name = "PERCENT", value_parser = values::budget, help_heading = "Cost")]
    pub budget: Option<f64>,
    /// Reaction if the probes slow the target (with --follow, with its children): warn beyond 50 %
    /// (it takes 1.5 times as long), off, or stop beyond PERCENT. It takes about half a second of
    /// the target's CPU time before it acts
    #[arg(
        long,
        value_name = "warn|off|PERCENT",
        default_value = "warn",
        value_parser = values::slowdown,
        help_heading = "Cost"
    )]
    pub max_slowdown: SlowdownPolicy,
    /// Choose how the ends of calls are seen
    #[arg(long, value_enum, default_value_t)]
    pub returns: ReturnsArg,
    /// The kind of kernel link for probes
    #[arg(long, value_enum, default_value_t)]
    pub link: LinkArg,
    /// Attach more than a few hundred functions with perf links, although that is slow
    #[arg(long)]
    pub force_perf: bool,
    /// Choose what a thread with a full marker buffer does while its ring is nearly full [default:
    /// wait; drop before Linux 6.13]. With wait, each ring has at least 64KiB
    #[arg(long, value_enum)]
    pub on_full: Option<OnFullArg>,
    /// Memory for calls; more go to a temporary file (in TMPDIR, or /var/tmp), with 0 all of them.
    /// With --interval there is no file, and beyond this size percentiles are within 0.1 %
    #[arg(long, value_name = "SIZE", default_value = "256MiB", value_parser = values::size, help_heading = "Limits")]
    pub spool: u64,
    /// Size of each CPU's ring buffer, from 4KiB to 1GiB, rounded up to a power of two [default: by
    /// the memory there is, 16MiB at most]
    #[arg(long, value_name = "SIZE", value_parser = values::ring_size, help_heading = "Limits")]
    pub ring_size: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReportFormat {
    #[default]
    Table,
    Json,
    Csv,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OnFullArg {
    /// Wait until ctrace has read, for a limited time
    Wait,
    /// Go on: what finds no room is lost, and counted
    Drop,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ReturnsArg {
    /// Return probes where they are guarded or nothing can unwind through them, else probes on the ways out
    #[default]
    Auto,
    /// Return probes wherever they are not deadly. Where they cannot be guarded, exceptions and panics
    /// through them kill the target
    Uretprobe,
    /// Probes on the ways out of each function
    RetSites,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LinkArg {
    /// The best kind that this kernel has
    #[default]
    Auto,
    /// One session link (6.13 and later)
    Session,
    /// Multi links (6.6 and later)
    Multi,
    /// One perf link for each probe (5.15 and later)
    Perf,
}
