//! Other processes that run already when a trace begins: those that the user named as well, and all
//! that the traced ones have started. Later ones are followed by the kernel.

use super::Session;
use crate::{process_status::ProcessStatus, target::process::Process};
use anyhow::ensure;
use ctrace_core::units::Pid;
use std::{collections::HashSet, path::PathBuf};

/// Parents that are looked at.
const DEEPEST: usize = 1 << 10;

const UNSAFE: &str =
    "their return addresses cannot be guarded here; --returns ret-sites needs no guards";

impl Session {
    /// Traces these processes, too, and what they and the target have started. Returns remarks for
    /// the user.
    ///
    /// A parent is traced before its children are listed. So one that it starts meanwhile is either
    /// in the list or followed.
    pub(crate) fn trace_family(&mut self, others: &[Process]) -> anyhow::Result<Vec<String>> {
        if !self.arming.planner.is_safe_beside_others() {
            ensure!(others.is_empty(), "several processes cannot be traced together: {UNSAFE}");
            let mut children = Process::children_of(self.target.pid.0).into_iter();
            let is_parent = children.any(Process::is_running);
            let remark = || format!("what it had started before is not traced: {UNSAFE}");
            return Ok(is_parent.then(remark).into_iter().collect());
        }
        let ours = Ours::new();
        let mut remarks = Vec::new();
        let mut parents = vec![self.target.pid];
        let mut found = Vec::new();
        for other in others {
            if self.trace_too(other, &mut remarks) {
                parents.push(Pid(other.pid()));
                found.push(other.pid());
            }
        }
        while let Some(Pid(parent)) = parents.pop() {
            for pid in Process::children_of(parent) {
                let is_known = pid == self.target.pid.0 || self.target.followed.contains(&Pid(pid));
                if is_known || !Process::is_running(pid) {
                    continue;
                }
                let Ok(child) = Process::open(pid) else { continue };
                if ours.has(&child) {
                    continue;
                }
                if self.trace_too(&child, &mut remarks) {
                    parents.push(Pid(pid));
                    found.push(pid);
                }
            }
        }
        remarks.extend(named(&found));
        Ok(remarks)
    }

    fn trace_too(&mut self, process: &Process, remarks: &mut Vec<String>) -> bool {
        let pid = process.pid();
        remarks.extend(super::super::before::remarks(process));
        if let Err(error) = self.kernel.trace_process(Pid(pid)) {
            let why = format!("process {pid} is not traced: {error}");
            self.note(why.clone());
            remarks.push(why);
            return false;
        }
        self.target.followed.insert(Pid(pid));
        self.introduce(process);
        true
    }
}

/// Processes that are no part of what the user means, although the target may have started them:
/// this one, its guard, and those that started it, such as sudo.
struct Ours {
    line: HashSet<u32>,
    program: Option<PathBuf>,
}

impl Ours {
    fn new() -> Self {
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

    fn has(&self, process: &Process) -> bool {
        let is_ctrace = self.program.as_deref().is_some_and(|own| own == process.exe());
        is_ctrace || self.line.contains(&process.pid())
    }
}

/// Tells which processes are traced beside the target.
fn named(pids: &[u32]) -> Option<String> {
    const NAMED: usize = 8;
    let mut names: Vec<String> = pids.iter().take(NAMED).map(u32::to_string).collect();
    if pids.len() > NAMED {
        names.push("…".to_owned());
    }
    let count = crate::ui::units::counted(pids.len() as u64, "process", "processes");
    (!pids.is_empty())
        .then(|| format!("traced along with it: {count} that ran already ({})", names.join(", ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ctrace_and_what_started_it_is_left_out() {
        let ours = Ours::new();
        let open = |pid: u32| Process::open(pid).expect("it runs");
        assert!(ours.has(&open(std::process::id())));
        assert!(ours.has(&open(std::os::unix::process::parent_id())));
        let mut other =
            std::process::Command::new("/bin/sleep").arg("100").spawn().expect("starts");
        let has_other = ours.has(&open(other.id()));
        other.kill().expect("ours");
        other.wait().expect("ours");
        assert!(!has_other);
    }

    #[test]
    fn few_processes_are_named() {
        assert_eq!(named(&[]), None);
        let one = named(&[812]).expect("one");
        assert!(one.ends_with("1 process that ran already (812)"), "{one}");
        let many = named(&(1..=20).collect::<Vec<_>>()).expect("many");
        assert!(
            many.ends_with("20 processes that ran already (1, 2, 3, 4, 5, 6, 7, 8, …)"),
            "{many}"
        );
    }
}
