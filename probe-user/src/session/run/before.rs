//! Checks and repairs a running process before it is traced.

use crate::{
    heal::{self, HealError, InUse},
    target::process::Process,
};
use ctrace_core::units::Pid;
use std::time::Duration;

/// Time limit for the removal. Honest breakpoints take a fraction of it, and forged ones cannot
/// delay the trace for longer.
const LIMIT: Duration = Duration::from_secs(6);

/// Removes leftovers of an earlier tracer from the process. Returns remarks for the user on this,
/// and on a process that does not run.
pub(super) fn remarks(process: &Process, in_use: &mut InUse) -> Vec<String> {
    let pid = process.pid();
    let removal = match heal::process(Pid(pid), LIMIT, Some(in_use)) {
        Ok(outcome) => outcome.removal().map(|line| format!("process {pid}: {line}")),
        Err(error @ (HealError::Helper { .. } | HealError::Underway { .. })) => {
            Some(error.to_string())
        }
        // Trace also if ctrace cannot look there, for whatever reason.
        Err(error) => {
            tracing::info!("{error}");
            None
        }
    };
    let standstill = process.standstill().map(|why| format!("process {pid} {why}"));
    removal.into_iter().chain(standstill).collect()
}
