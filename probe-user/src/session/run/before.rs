//! What is looked at, and mended, in a running process before it is traced.

use crate::{
    heal::{self, HealError},
    target::process::Process,
};
use ctrace_core::units::Pid;
use std::time::Duration;

/// For removing. Honest breakpoints take a fraction of it, and nobody forges a longer delay of the trace.
const LIMIT: Duration = Duration::from_secs(6);

/// Removes what an earlier tracer left in the process. Returns what the user should know of this, and of a
/// process that does not run.
pub(super) fn remarks(process: &Process) -> Vec<String> {
    let pid = process.pid();
    let removal = match heal::process(Pid(pid), LIMIT) {
        Ok(outcome) => outcome.removal().map(|line| format!("process {pid}: {line}")),
        Err(error @ (HealError::Helper { .. } | HealError::Underway { .. })) => {
            Some(error.to_string())
        }
        // Whatever keeps ctrace from looking there is no reason not to trace.
        Err(error) => {
            tracing::info!("{error}");
            None
        }
    };
    let standstill = process.standstill().map(|why| format!("process {pid} {why}"));
    removal.into_iter().chain(standstill).collect()
}
