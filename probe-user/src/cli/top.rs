//! `ctrace top`.

use super::{UserArgs, WhatArgs, values};
use clap::Args;
use std::{ffi::OsString, path::PathBuf, time::Duration};

/// Watch a process or a command on a screen that changes while it runs
#[derive(Debug, Args)]
#[command(
    after_help = "Keys are told by ? on the screen. Losses and what the probes cost are always \
    shown; ~ marks what is not exact. With NO_COLOR set there is no colour.\n\nA command reads and \
    writes /dev/null where ctrace has the terminal; its stderr may be redirected with that of ctrace. \
    When you quit, it goes on.\n\nExamples:\n  \
    sudo ctrace top 4711 -f 'handle_*'\n  \
    sudo ctrace top 4711                         the marker scopes of a program that has some\n  \
    sudo ctrace top $(pidof redis-server) -f '/^(read|write).*/' --interval 2\n  \
    sudo ctrace top -f 'handle_*' -- ./server --port 80\n  \
    sudo ctrace top --daemon                     what the daemon traces\n  \
    sudo ctrace top 4711 -f '*' -x 'std::*' --min-duration 10us --max-slowdown 20%"
)]
pub(crate) struct TopArgs {
    /// The process to watch: all its threads
    #[arg(
        value_name = "PID",
        value_parser = values::pid,
        required_unless_present_any = ["daemon", "command"],
        conflicts_with_all = ["daemon", "command"]
    )]
    pub pid: Option<u32>,
    /// A command to launch and watch, from the first instruction of main
    #[arg(value_name = "CMD", last = true, conflicts_with = "daemon")]
    pub command: Vec<OsString>,
    #[command(flatten)]
    pub user: UserArgs,
    /// Look at what `ctrace daemon` traces: a list of its processes, then the one that is chosen
    #[arg(long)]
    pub daemon: bool,
    /// Where the daemon listens
    #[arg(long, value_name = "PATH", default_value = "/run/ctrace/ctrace.sock")]
    pub socket: PathBuf,
    #[command(flatten)]
    pub what: WhatArgs,
    /// New numbers every so many seconds (also 500ms, 2m)
    #[arg(
        long,
        value_name = "SECONDS",
        default_value = "1",
        value_parser = values::seconds,
        help_heading = "Output"
    )]
    pub interval: Duration,
}
