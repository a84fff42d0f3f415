//! The command line of the daemon.

use clap::Args;
use std::path::PathBuf;

/// Trace chosen processes for as long as they live, with a report every minute
#[derive(Debug, Args)]
#[command(after_help = "docs/daemon.md explains its operation; docs/ctrace.toml lists every key \
    with its default. SIGHUP reads the file again; SIGTERM ends with a last report.\n\nExamples:\n  \
    sudo ctrace daemon\n  \
    sudo ctrace daemon --config ./ctrace.toml\n  \
    ctrace daemon --check                   check the file")]
pub(crate) struct DaemonArgs {
    /// The configuration: what to trace and where to report
    #[arg(long, value_name = "FILE", default_value = "/etc/ctrace/ctrace.toml")]
    pub config: PathBuf,
    /// Check the file, print its mistakes, and exit
    #[arg(long)]
    pub check: bool,
}
