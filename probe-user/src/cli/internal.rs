//! The commands that ctrace starts itself with. They are a command line of their own: the process that
//! becomes the target parses it on the first thread's stack, which may be small, and before the
//! target begins.

use clap::{Args, Parser, Subcommand};
use std::{ffi::OsString, path::PathBuf};

#[derive(Debug, Parser)]
#[command(name = "ctrace")]
pub(crate) struct Internal {
    #[command(subcommand)]
    pub(crate) command: InternalCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum InternalCommand {
    #[command(name = "__exec")]
    Exec(ExecArgs),
    #[command(name = "__guard")]
    Guard,
    #[command(name = "__heal")]
    Heal(HealArgs),
}

/// The child of `run`, which becomes the command when ctrace tells it to.
#[derive(Debug, Args)]
pub(crate) struct ExecArgs {
    /// The rights to take on: UID:GID:GROUP,GROUP…
    #[arg(long = "as")]
    pub rights: Option<String>,
    /// The descriptor through which ctrace tells it to start.
    pub socket: i32,
    /// The resolved file to execute
    pub file: PathBuf,
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, required = true)]
    pub command: Vec<OsString>,
}

/// The child that removes breakpoints, so that nothing interrupts it.
#[derive(Debug, Args)]
pub(crate) struct HealArgs {
    pub pid: u32,
    /// No place is begun after this time.
    pub seconds: u64,
}
