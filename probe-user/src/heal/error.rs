//! The reasons why a process could not be examined or healed.

use crate::{
    bpf::BpfError,
    target::process::{ProcessError, maps::MapsError},
};
use std::{io, time::Duration};
use thiserror::Error;

#[derive(Debug, Error)]
pub(crate) enum HealError {
    #[error(transparent)]
    Process(#[from] ProcessError),

    #[error(transparent)]
    Maps(#[from] MapsError),

    #[error(
        "cannot look at the pages of process {pid}: {error}; run ctrace with sudo, or with \
         CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH"
    )]
    Pages { pid: u32, error: io::Error },

    #[error(
        "the memory of process {pid} could not be read within {} s, as if the process did not want \
         to be looked at; nothing was changed", .limit.as_secs()
    )]
    TooSlow { pid: u32, limit: Duration },

    #[error(transparent)]
    Kernel(#[from] BpfError),

    #[error("cannot start a process that removes breakpoints: {0}")]
    Start(io::Error),

    #[error(
        "process {helper} still removes breakpoints from process {pid} after {} s, and ends by itself; do \
         not kill it", .patience.as_secs()
    )]
    Underway { helper: u32, pid: u32, patience: Duration },

    #[error(
        "breakpoints of process {pid} were not removed: {why}; `ctrace doctor --heal {pid}` tries again"
    )]
    Helper { pid: u32, why: String },
}
