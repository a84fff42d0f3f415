//! The command line of `ctrace ctl`.

use super::values;
use crate::target::process::lookup::ProcessName;
use clap::{Args, Subcommand};
use std::{path::PathBuf, time::Duration};

/// Ask or control a running `ctrace daemon`
#[derive(Debug, Args)]
#[command(
    after_help = "Only root and the members of `group` in the daemon's configuration may use it. \
    docs/daemon.md describes the protocol.\n\nExamples:\n  \
    sudo ctrace ctl status\n  \
    sudo ctrace ctl targets\n  \
    sudo ctrace ctl attach 4711 -f 'handle_*'\n  \
    sudo ctrace ctl report web\n  \
    sudo ctrace ctl record web -d 10        every call of ten seconds, for `ctrace report`"
)]
pub(crate) struct CtlArgs {
    /// Path of the daemon's socket
    #[arg(long, value_name = "PATH", default_value = "/run/ctrace/ctrace.sock", global = true)]
    pub socket: PathBuf,
    /// Print the daemon's answer as one line of JSON
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: CtlCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum CtlCommand {
    /// Show the state of the daemon
    Status,
    /// Show its targets and their processes
    Targets,
    /// Trace a process, by a target of the configuration or as chosen here
    Attach(CtlAttachArgs),
    /// Stop tracing a process or a target, until `attach` or `reload`
    Detach(WhomArgs),
    /// Show the current interval so far
    Report(WhomArgs),
    /// Read the configuration again
    Reload,
    /// Record every call for a while into the daemon's folder
    Record(CtlRecordArgs),
}

#[derive(Debug, Args)]
pub(crate) struct CtlAttachArgs {
    /// The process to trace
    #[arg(value_name = "PROCESS", value_parser = ProcessName::parse)]
    pub process: ProcessName,
    /// Trace it as this target of the configuration
    #[arg(long, value_name = "NAME")]
    pub target: Option<String>,
    /// Functions to trace; repeatable
    #[arg(short, long = "function", value_name = "GLOB[@OBJECT]", conflicts_with = "target")]
    pub functions: Vec<String>,
    /// USDT probes to trace; repeatable
    #[arg(
        short,
        long = "usdt",
        value_name = "[PROVIDER:]GLOB[@OBJECT]",
        conflicts_with = "target"
    )]
    pub usdt: Vec<String>,
    /// Marker scopes to trace; repeatable
    #[arg(short, long = "marker", value_name = "[GROUP/]GLOB[@OBJECT]", conflicts_with = "target")]
    pub markers: Vec<String>,
    /// Functions, probes and scopes to leave out; repeatable
    #[arg(short = 'x', long = "exclude", value_name = "GLOB", conflicts_with = "target")]
    pub exclude: Vec<String>,
}

#[derive(Debug, Args)]
pub(crate) struct WhomArgs {
    /// Name of a target, or id of a process
    #[arg(value_name = "TARGET|PID")]
    pub whom: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct CtlRecordArgs {
    #[command(flatten)]
    pub whom: WhomArgs,
    /// Record for this many seconds (also 500ms, 2m)
    #[arg(short, long, value_name = "SECONDS", default_value = "10", value_parser = values::seconds)]
    pub duration: Duration,
}
