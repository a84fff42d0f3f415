//! `ctrace top`.

use super::{ChosenUserArgs, ProcessArgs, WhatArgs, values};
use crate::target::process::lookup::ProcessName;
use clap::Args;
use std::{ffi::OsString, path::PathBuf, time::Duration};

/// Watch a process or a command on a live screen
#[derive(Debug, Args)]
#[command(
    after_help = "Press ? on the screen for the keys. Losses and the cost of the probes are always \
    shown; ~ marks inexact numbers. NO_COLOR switches colours off.\n\nA command reads and writes /dev/null \
    where ctrace has the terminal. Its stderr can be redirected with that of ctrace. It goes on when \
    you quit.\n\nExamples:\n  \
    sudo ctrace top 4711 -f 'handle_*'\n  \
    sudo ctrace top 4711                         the marker scopes of a program that has some\n  \
    sudo ctrace top redis-server -f '/^(read|write).*/' --interval 2\n  \
    sudo ctrace top -f 'handle_*' -- ./server --port 80\n  \
    sudo ctrace top 4711 -f '*' --sort p999\n  \
    sudo ctrace top --daemon                     what the daemon traces\n  \
    sudo ctrace top 4711 -f '*' -x 'std::*' --min-duration 10us --max-slowdown 20%"
)]
pub(crate) struct TopArgs {
    /// The process to watch, with all its threads: a PID, a name, a systemd unit, or the path of its
    /// program
    #[arg(
        value_name = "PROCESS",
        value_parser = ProcessName::parse,
        required_unless_present_any = ["chosen", "daemon", "command", "user"],
        conflicts_with_all = ["chosen", "daemon", "command"]
    )]
    pub process: Option<ProcessName>,
    #[command(flatten)]
    pub by: ProcessArgs,
    /// A command to launch and watch, from the first instruction of main
    #[arg(value_name = "CMD", last = true, conflicts_with_all = ["daemon", "chosen"])]
    pub command: Vec<OsString>,
    #[command(flatten)]
    pub user: ChosenUserArgs,
    /// Watch what `ctrace daemon` traces: choose from a list of its processes
    #[arg(long, conflicts_with = "chosen")]
    pub daemon: bool,
    /// Path of the daemon's socket
    #[arg(long, value_name = "PATH", default_value = "/run/ctrace/ctrace.sock")]
    pub socket: PathBuf,
    #[command(flatten)]
    pub what: WhatArgs,
    /// Refresh at this interval in seconds (also 500ms, 2m)
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "1",
        value_parser = values::seconds,
        help_heading = "Output"
    )]
    pub interval: Duration,
    /// Sort rows by a column: name, cost, or any number that `report --sort` takes
    #[arg(long, value_name = "COLUMN", help_heading = "Output")]
    pub sort: Option<String>,
}
