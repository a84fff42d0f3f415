//! The command line of the daemon.

use clap::Args;
use std::path::PathBuf;

/// Trace chosen processes for as long as they live, with a report every minute
#[derive(Debug, Args)]
#[command(
    after_help = "docs/daemon.md tells about operating it, and docs/ctrace.toml has every key \
    with its default. SIGHUP reads the file again, SIGTERM ends with a last report.\n\nExamples:\n  \
    sudo ctrace daemon\n  \
    sudo ctrace daemon --config ./ctrace.toml\n  \
    ctrace daemon --check                   is the file sound?"
)]
pub(crate) struct DaemonArgs {
    /// What to trace and where to report
    #[arg(long, value_name = "FILE", default_value = "/etc/ctrace/ctrace.toml")]
    pub config: PathBuf,
    /// Read the file, say what is wrong with it, and end
    #[arg(long)]
    pub check: bool,
}
