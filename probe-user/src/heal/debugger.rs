//! Detects debuggers: their breakpoints look like those of a probe, and must stay.

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
    let threads = threads.take(MOST_THREADS).map(|thread| thread.path().join("status"));
    let debugger =
        threads.filter_map(|path| tracer(&fs::read(path).ok()?)).find(|tracer| *tracer != 0)?;
    let name = fs::read(format!("/proc/{debugger}/comm")).unwrap_or_default();
    let name = String::from_utf8_lossy(name.trim_ascii_end()).into_owned();
    Some(Debugger { pid: debugger, name })
}

/// Parses /proc/PID/status. The process name in it may hold any bytes but newlines.
fn tracer(status: &[u8]) -> Option<u32> {
    let line =
        status.split(|byte| *byte == b'\n').find_map(|line| line.strip_prefix(b"TracerPid:"))?;
    str::from_utf8(line).ok()?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_found() {
        assert_eq!(tracer(b"Name:\tx\nTracerPid:\t4711\nUid:\t0\n"), Some(4711));
        assert_eq!(tracer(b"Name:\tTracerPid: 1\nTracerPid:\t0\n"), Some(0));
        assert_eq!(tracer(b"Name:\t\xff\n"), None);
    }

    #[test]
    fn nobody_debugs_this_test() {
        assert_eq!(of(std::process::id()), None);
    }
}
