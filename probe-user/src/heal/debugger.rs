//! Detects debuggers: their breakpoints look like those of a probe, and must stay.

use crate::process_status::ProcessStatus;
use serde::{Deserialize, Serialize};
use std::fs;

/// Limit of threads that are checked for a tracer: a debugger traces all.
const MOST_THREADS: usize = 256;

/// The tracer of a process by ptrace(2).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Debugger {
    pub pid: u32,
    pub name: String,
}

/// Returns the debugger of a process.
pub(super) fn of(pid: u32) -> Option<Debugger> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let paths = threads.take(MOST_THREADS).map(|thread| thread.path().join("status"));
    let mut tracers = paths.filter_map(|path| ProcessStatus::read(path).ok()?.number("TracerPid"));
    let debugger = tracers.find(|tracer| *tracer != 0)?;
    let name = fs::read(format!("/proc/{debugger}/comm")).unwrap_or_default();
    let name = String::from_utf8_lossy(name.trim_ascii_end()).into_owned();
    Some(Debugger { pid: debugger, name })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_debugs_this_test() {
        assert_eq!(of(std::process::id()), None);
    }
}
