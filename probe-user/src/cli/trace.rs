//! `ctrace trace`, and its options that `ctrace log` has, too.

use super::{ChosenUserArgs, LensArgs, ProcessArgs, WhatArgs, values};
use clap::Args;
use std::{ffi::OsString, path::PathBuf, time::Duration};

/// Print every call as a line, while it happens or from a recording
#[derive(Debug, Args)]
#[command(
    after_help = "A line has the time since the start, the thread if there are several, and the call, \
    indented by its depth: name(arguments) = result <duration>. Lines are in the order in which the \
    calls began. A call that runs for half a second holds up no other: it is printed as \"still \
    running\", and again when it ends (\"resumed\").\n\n\
    The lines of a command go to stderr, as stdout is the command's. Those of a process and of a \
    recording go to stdout. -o changes that. With a command, ctrace exits as the command did.\n\n\
    Examples:\n  \
    sudo ctrace trace -f 'parse*' --arg 'parse: path=0:str' --ret 'parse: i32' -- ./tool file\n  \
    sudo ctrace trace redis-server --arg 'dictFind: key=1:str' --ret 'dictFind: ptr' -d 3\n  \
    sudo ctrace trace 4711 -u 'libstdcxx:throw' -o throws.txt\n  \
    sudo ctrace trace 4711 -f 'handle_*' --min-duration 10ms     only slow calls\n  \
    ctrace trace trace.ctrace --time 10s..11s --thread 'worker-*'\n  \
    ctrace trace trace.ctrace -f 'handle_*' --json | jq -c 'select(.duration_ns > 1e6)'"
)]
pub(crate) struct TraceLinesArgs {
    #[command(flatten)]
    pub lines: LinesArgs,
    /// Print a JSON object for each call, with the keys of `export --format jsonl`
    #[arg(long, help_heading = "Output")]
    pub json: bool,
}

/// The options that `trace` and `log` share: the subject of a stream of lines, and its destination.
#[derive(Debug, Args)]
pub(crate) struct LinesArgs {
    /// The process to trace: a PID, a name, a systemd unit, or the path of its program. Or a
    /// recording, or all files that `--rotate` made of it
    #[arg(
        value_name = "PROCESS|FILE",
        required_unless_present_any = ["chosen", "command", "user"],
        conflicts_with_all = ["chosen", "command"]
    )]
    pub subject: Vec<PathBuf>,
    #[command(flatten)]
    pub by: ProcessArgs,
    /// A command to launch and trace, from the first instruction of main
    #[arg(value_name = "CMD", last = true, conflicts_with = "chosen")]
    pub command: Vec<OsString>,
    #[command(flatten)]
    pub user: ChosenUserArgs,
    /// Stop after this many seconds (also 500ms, 2m). A command goes on
    #[arg(short, long, value_name = "SECONDS", value_parser = values::seconds)]
    pub duration: Option<Duration>,
    /// Write the lines to this file; - is stdout
    #[arg(short, long = "output", value_name = "OUT", help_heading = "Output")]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub what: WhatArgs,
    #[command(flatten)]
    pub lens: LensArgs,
}
