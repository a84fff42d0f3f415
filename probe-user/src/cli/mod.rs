//! The command line. Man page and completions derive from it.

mod ctl;
mod daemon;
mod diff;
#[cfg(feature = "parquet")]
mod fleet;
mod internal;
mod log;
mod options;
mod process;
mod top;
mod trace;
mod ui;
pub(crate) mod values;

pub(crate) use ctl::{CtlArgs, CtlCommand, WhomArgs};
pub(crate) use daemon::DaemonArgs;
pub(crate) use diff::{DiffArgs, DiffFormat};
#[cfg(feature = "parquet")]
pub(crate) use fleet::{
    FleetArgs, FleetCommand, FleetCompactArgs, FleetDiffArgs, FleetFlamegraphArgs, FleetReportArgs,
    FleetSlowArgs, FleetWhatArgs,
};
pub(crate) use internal::{ExecArgs, HealArgs, Internal, InternalCommand};
pub(crate) use log::LogArgs;
pub(crate) use options::RECORDING;
pub(crate) use options::{
    ChosenUserArgs, FilterArgs, LensArgs, LinkArg, MostArgs, OnFullArg, OutputArgs, ProbeArgs,
    ProgramSelectArgs, QueryArgs, RecordingArgs, ReportFormat, ReturnsArg, SelectArgs, UserArgs,
    ValuesArgs,
};
pub(crate) use process::ProcessArgs;
pub(crate) use top::TopArgs;
pub(crate) use trace::{LinesArgs, TraceLinesArgs};
pub(crate) use ui::UiArgs;

use crate::target::process::lookup::ProcessName;
pub(crate) use crate::values::FramesLimit;
use clap::{Args, ColorChoice, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use ctrace_core::formats::ExportTable;
use std::{ffi::OsString, num::NonZeroUsize, path::PathBuf, time::Duration};

/// Show where the time goes inside a running native program, from outside, without recompiling.
#[derive(Debug, Parser)]
#[command(
    name = "ctrace",
    version,
    max_term_width = 100,
    after_help = "Examples:\n  \
        ctrace list ./server                                 what can be traced\n  \
        sudo ctrace attach 4711 -f 'handle_*' -d 10          ten seconds of a live process\n  \
        sudo ctrace attach redis.service -f processCommand   a service, by its systemd unit\n  \
        sudo ctrace run -f '*' --view tree -- ./server       a program from its first function\n  \
        sudo ctrace attach 4711 -f 'malloc@libc*' --interval 1\n  \
        sudo ctrace top server -f 'handle_*'                 a live screen\n  \
        sudo ctrace trace server -f 'handle_*'               every call as a line, as ltrace has it\n  \
        sudo ctrace log 4711 --arg 'app:log: 0:str'          what a program says, in order of time\n  \
        sudo ctrace record -f 'handle_*' -p 4711 -d 60       into a file, for later reports\n  \
        ctrace report trace.ctrace --view tree               who calls whom\n  \
        ctrace report trace.ctrace --view calls --top 3      the slowest calls, with the calls inside\n  \
        ctrace ui trace.ctrace                               every call on a timeline, in the browser\n  \
        ctrace diff old.ctrace new.ctrace                    changes, apart from noise\n  \
        ctrace fleet report /srv/fleet --by host             many machines, from their daemons' tables\n  \
        sudo ctrace doctor                                   what this kernel and user support"
)]
pub(crate) struct Cli {
    /// Print what is attached and what it costs; twice: print every step
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    pub verbose: u8,
    /// Colours: on a terminal that has them, unless NO_COLOR is set; always; never
    #[arg(
        long,
        global = true,
        value_name = "WHEN",
        default_value = "auto",
        hide_possible_values = true
    )]
    pub(crate) color: ColorChoice,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Doctor(DoctorArgs),
    List(ListArgs),
    Run(Box<RunArgs>),
    Attach(Box<AttachArgs>),
    Top(Box<TopArgs>),
    Trace(Box<TraceLinesArgs>),
    Log(Box<LogArgs>),
    Record(Box<RecordArgs>),
    Report(Box<ReportArgs>),
    Ui(Box<UiArgs>),
    Diff(Box<DiffArgs>),
    Export(Box<ExportArgs>),
    #[cfg(feature = "parquet")]
    Fleet(Box<FleetArgs>),
    Daemon(DaemonArgs),
    Ctl(CtlArgs),
    Completions(CompletionsArgs),
    Man(ManArgs),
}

/// Check what this kernel and user support, and what ctrace will use
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sudo ctrace doctor\n  ctrace doctor --json\n  \
    sudo ctrace doctor --calibrate        measure what a probe costs on this machine\n  \
    sudo ctrace doctor --heal 4711        remove breakpoints that a killed tracer left in it\n\n\
    Exit status: 0 tracing works (with --heal: nothing is left), 1 it does not \
    (something is left), 125 error.")]
pub(crate) struct DoctorArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
    /// Measure what a probe costs on this machine (a second or two)
    #[arg(long)]
    pub calibrate: bool,
    /// Only remove breakpoints that a killed tracer left in a process: a PID, a name, or a systemd
    /// unit
    #[arg(
        long,
        value_name = "PROCESS",
        value_parser = ProcessName::parse,
        conflicts_with = "calibrate"
    )]
    pub heal: Option<ProcessName>,
}

/// List functions, USDT probes and marker scopes of a program; -v shows how each would be traced
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  ctrace list ./server\n  \
    ctrace list ./server -f 'http::*' -v         place, cost class, how the exit is seen, why not\n  \
    ctrace list ./server -m 'prod/*'             marker scopes of a group\n  \
    sudo ctrace list -p 4711 -f 'malloc*@libc*'\n  \
    sudo ctrace list -p redis-server")]
pub(crate) struct ListArgs {
    /// The program or library to search
    #[arg(value_name = "BINARY", required_unless_present = "chosen", conflicts_with = "chosen")]
    pub binary: Option<PathBuf>,
    #[command(flatten)]
    pub process: ProcessArgs,
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub program: ProgramSelectArgs,
    #[command(flatten)]
    pub most: MostArgs,
    /// Choose how the ends of calls are seen
    #[arg(long, value_enum, default_value_t, help_heading = "Probes")]
    pub returns: ReturnsArg,
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}

/// Run a command and trace it from the first instruction of main
#[derive(Debug, Args)]
#[command(after_help = "The report goes to stderr, as stdout is the command's; -o changes that. \
    ctrace exits as the command did. Under sudo the command runs as the user who called sudo, not as \
    root, and that user owns the report files.\n\nExamples:\n  \
    sudo ctrace run -f '*' -- ./server --port 80\n  \
    sudo ctrace run -f 'parse*' -f 'eval*' --view tree -- ./interp script\n  \
    sudo ctrace run -f '*' --format json -o report.json -- ./batch")]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub trace: TraceArgs,
    /// Stop tracing after this many seconds (also 500ms, 2m). The command goes on
    #[arg(short, long, value_name = "SECONDS", value_parser = values::seconds)]
    pub duration: Option<Duration>,
    #[command(flatten)]
    pub user: UserArgs,
    /// The command and its arguments
    #[arg(
        value_name = "CMD",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        required = true
    )]
    pub command: Vec<OsString>,
}

/// Trace a running process until the time is up, Ctrl-C, or its end
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  sudo ctrace attach 4711 -f 'handle_*' -d 10\n  \
    sudo ctrace attach 4711 -f '*' -x 'std::*' --min-duration 10us --view tree\n  \
    sudo ctrace attach 4711 -m 'prod/*'          marker scopes of a group\n  \
    sudo ctrace attach redis-server -f '/^(read|write).*/' --interval 1\n  \
    sudo ctrace attach redis.service -f processCommand\n  \
    sudo ctrace attach --exe ./server -f 'handle_*'")]
pub(crate) struct AttachArgs {
    /// The process to trace, with all its threads: a PID, a name that no other process has, a
    /// systemd unit (its main process), or the path of its program. Several are traced together,
    /// with all that they start
    #[arg(
        value_name = "PROCESS",
        value_parser = ProcessName::parse,
        required_unless_present_any = ["chosen", "user"],
        conflicts_with = "chosen"
    )]
    pub processes: Vec<ProcessName>,
    #[command(flatten)]
    pub by: ProcessArgs,
    /// All processes that have this user's rights. With --exe, --cgroup or --container: those among
    /// them
    #[arg(long, value_name = "NAME|UID")]
    pub user: Option<String>,
    /// Also trace processes that start later and match the choice, until Ctrl-C or -d. If none runs yet,
    /// wait for the first
    #[arg(long, help_heading = "What to trace")]
    pub later: bool,
    #[command(flatten)]
    pub trace: TraceArgs,
    /// Stop after this many seconds (also 500ms, 2m)
    #[arg(short, long, value_name = "SECONDS", value_parser = values::seconds)]
    pub duration: Option<Duration>,
}

/// The options that `run` and `attach` share.
#[derive(Debug, Args)]
pub(crate) struct TraceArgs {
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub program: ProgramSelectArgs,
    #[command(flatten)]
    pub values: ValuesArgs,
    #[command(flatten)]
    pub output: OutputArgs,
    #[command(flatten)]
    pub filter: FilterArgs,
    #[command(flatten)]
    pub probes: ProbeArgs,
    /// Count calls in the kernel, with histograms of their durations by call path: for functions that
    /// are called millions of times a second. There are no single calls then, and percentiles are within
    /// 3.3 %. Where a thread changes stacks, as coroutines do, paths and self times may be wrong. It needs -f.
    /// With --arg 'FUNCTION: ARG' and --by 'FUNCTION: ARG', calls are counted for each value of an argument
    #[arg(long, help_heading = "Cost")]
    pub aggregate: bool,
    #[command(flatten)]
    pub most: MostArgs,
}

impl TraceArgs {
    /// Returns the options that `record` has, too.
    pub(crate) fn what(&self) -> WhatArgs {
        WhatArgs {
            select: self.select.clone(),
            program: self.program.clone(),
            values: self.values.clone(),
            filter: self.filter.clone(),
            probes: self.probes.clone(),
            most: self.most.clone(),
        }
    }
}

/// The options that these share with `record` and `top`. Help shows them in this order.
#[derive(Clone, Debug, Default, PartialEq, Args)]
pub(crate) struct WhatArgs {
    #[command(flatten)]
    pub select: SelectArgs,
    #[command(flatten)]
    pub program: ProgramSelectArgs,
    #[command(flatten)]
    pub values: ValuesArgs,
    #[command(flatten)]
    pub filter: FilterArgs,
    #[command(flatten)]
    pub probes: ProbeArgs,
    #[command(flatten)]
    pub most: MostArgs,
}

/// Trace a process or a command, and keep every call in a file
#[derive(Debug, Args)]
#[command(after_help = "`ctrace report` prints from the file all that `run` and `attach` show, \
    with any filter.\n\nExamples:\n  \
    sudo ctrace record -o slow.ctrace -f 'handle_*' -p 4711 -d 60\n  \
    sudo ctrace record -f '*' -- ./batch --all\n  \
    sudo ctrace record --max-size 100MiB -m '*' -p 4711     a flight recorder: the newest calls\n  \
    ctrace report slow.ctrace --view tree --thread 'worker-*'")]
pub(crate) struct RecordArgs {
    #[command(flatten)]
    pub file: RecordingArgs,
    #[command(flatten)]
    pub what: WhatArgs,
    #[command(flatten)]
    pub process: ProcessArgs,
    /// Stop after this many seconds (also 500ms, 2m). A command goes on
    #[arg(short, long, value_name = "SECONDS", value_parser = values::seconds)]
    pub duration: Option<Duration>,
    #[command(flatten)]
    pub user: ChosenUserArgs,
    /// The command to launch and record, and its arguments
    #[arg(
        value_name = "CMD",
        trailing_var_arg = true,
        allow_hyphen_values = true,
        conflicts_with = "chosen"
    )]
    pub command: Vec<OsString>,
}

/// Print reports from a recording
#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  \
    ctrace report                                    ./trace.ctrace, which `record` writes\n  \
    ctrace report trace.ctrace -f 'parse*' --view tree\n  \
    ctrace report trace.ctrace --caller handle_request --min-duration 1ms\n  \
    ctrace report trace.ctrace --time 10s..20s --format json -o part.json\n  \
    ctrace report trace.ctrace --interval 60\n  \
    ctrace report trace.ctrace --view trend          whether functions get slower over time\n  \
    ctrace report trace*.ctrace                      the files of `record --rotate` as one")]
pub(crate) struct ReportArgs {
    /// A recording, or all files that `--rotate` made of it
    #[arg(value_name = "FILE", default_value = RECORDING)]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub output: OutputArgs,
    /// Exit with 1 if more than this part of the frames takes longer: 16.6ms:1%, or 16.6ms for any. The
    /// frames are those of --frame, or those that the program marks
    #[arg(long, value_name = "TIME[:PERCENT]", value_parser = values::frames_limit)]
    pub fail_frames_over: Option<FramesLimit>,
    /// Refused with a hint: a recording has waits, or it has none
    #[arg(long, hide = true)]
    pub cpu: bool,
    /// The same
    #[arg(long, hide = true)]
    pub wakers: bool,
    #[command(flatten)]
    pub query: QueryArgs,
}

/// Convert a recording for other tools
#[derive(Debug, Args)]
#[command(
    after_help = "Messages on stderr, and in the file if its format has a place for them, tell what \
    is missing from the recording.\n\nExamples:\n  \
    ctrace export run.ctrace --format perfetto -o run.pftrace    open it at ui.perfetto.dev\n  \
    ctrace export run.ctrace --format flamegraph -o run.svg      open it in a browser\n  \
    ctrace export new.ctrace --format flamegraph --diff old.ctrace -o diff.svg\n  \
    ctrace export run.ctrace --format chrome --caller handle_get --time 10s..12s -o part.json\n  \
    ctrace export run.ctrace --format jsonl | jq -c 'select(.duration_ns > 1e6)'"
)]
pub(crate) struct ExportArgs {
    /// The recording, or all files that `--rotate` made of it
    #[arg(value_name = "FILE", default_value = RECORDING)]
    pub files: Vec<PathBuf>,
    /// The format to write
    #[arg(long, value_name = "NAME", value_parser = values::format_names())]
    pub format: String,
    /// Write to this file; - is stdout, the default
    #[arg(short, long = "output", value_name = "OUT")]
    pub output: Option<PathBuf>,
    /// flamegraph: merge stacks from their innermost frames and draw them downwards
    #[arg(long)]
    pub reversed: bool,
    /// flamegraph: colour what became slower (red) and faster (blue) since this recording
    #[arg(long, value_name = "OLD")]
    pub diff: Option<PathBuf>,
    /// parquet: the table to write [default: calls]
    #[arg(long, value_enum)]
    pub table: Option<TableArg>,
    /// frame: the calls of this function are frames, or the times between frame marks of this name, or
    /// between hits of this USDT probe. A plain number is that of the frame, as with --frame-number
    #[arg(long, value_name = "FUNCTION|N")]
    pub frame: Option<String>,
    /// frame: the same, and never a number
    #[arg(long, value_name = "FUNCTION")]
    pub frame_function: Option<String>,
    /// frame: the number of the frame, from 1 on [default: that of the longest]. The frames are those that
    /// the program marks, if none are named
    #[arg(long, value_name = "N")]
    pub frame_number: Option<NonZeroUsize>,
    /// Write at most this much [default: 4096 times the size of the recording, plus 1GiB]
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    pub max_output: Option<u64>,
    #[command(flatten)]
    pub query: QueryArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TableArg {
    Calls,
    Functions,
}

impl From<TableArg> for ExportTable {
    fn from(table: TableArg) -> Self {
        match table {
            TableArg::Calls => Self::Calls,
            TableArg::Functions => Self::Functions,
        }
    }
}

/// Print a completion script for a shell
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  ctrace completions bash > /etc/bash_completion.d/ctrace")]
pub(crate) struct CompletionsArgs {
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Write the man pages into a folder
#[derive(Debug, Args)]
#[command(after_help = "Example:\n  ctrace man /usr/local/share/man/man1")]
pub(crate) struct ManArgs {
    pub folder: PathBuf,
}
