//! Tells ctrace's own processes, and those that started it, from what the user means.

use crate::process_status::ProcessStatus;
use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

/// Parents that are looked at.
const DEEPEST: usize = 1 << 10;

/// Processes that are no part of what the user means, although the target may have started them:
/// this one, its guard, and those that started it, such as sudo.
pub(crate) struct Ours {
    line: HashSet<u32>,
    program: Option<PathBuf>,
}

impl Ours {
    pub(crate) fn new() -> Self {
        let parent = |pid: &u32| {
            let status = ProcessStatus::of(*pid).ok()?;
            status.words("PPid").next()?.parse().ok().filter(|parent| *parent != 0)
        };
        let line = std::iter::successors(Some(std::process::id()), parent);
        Self {
            line: line.take(DEEPEST).collect(),
            program: std::fs::read_link("/proc/self/exe").ok(),
        }
    }

    pub(crate) fn has(&self, pid: u32, exe: &Path) -> bool {
        self.line.contains(&pid) || self.program.as_deref().is_some_and(|own| own == exe)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Process;
    use super::*;

    #[test]
    fn ctrace_and_what_started_it_is_left_out() {
        let ours = Ours::new();
        let has = |pid: u32| {
            let process = Process::open(pid).expect("it runs");
            ours.has(pid, process.exe())
        };
        assert!(has(std::process::id()));
        assert!(has(std::os::unix::process::parent_id()));
        let mut other =
            std::process::Command::new("/bin/sleep").arg("100").spawn().expect("starts");
        let has_other = has(other.id());
        other.kill().expect("ours");
        other.wait().expect("ours");
        assert!(!has_other);
    }
}
