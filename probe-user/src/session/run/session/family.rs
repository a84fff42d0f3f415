//! Other processes that run already when a trace begins: those that the user named as well, and all
//! that the traced ones have started. Later ones are followed by the kernel.

use super::{Session, processes::Standing};
use crate::{
    heal::InUse,
    target::process::{Process, maps::MappedObject, ours::Ours},
    ui::text::{first_few, units::counted},
};
use anyhow::ensure;
use ctrace_core::units::Pid;

/// The most processes that are found and traced beside the target.
const MOST_FOUND: usize = 1 << 10;
/// The most remarks on them. The rest is counted.
const MOST_REMARKS: usize = 16;

const REMEDY: &str = "--returns ret-sites needs no guards";

impl Session {
    /// Traces these processes, too, and what they and the target have started. `objects` are the
    /// target's. Returns remarks for the user.
    ///
    /// A parent is traced before its children are listed. So one that it starts meanwhile is either
    /// in the list or followed.
    pub(crate) fn trace_family(
        &mut self,
        objects: &[MappedObject],
        others: &[Process],
    ) -> anyhow::Result<Vec<String>> {
        self.arming.know(objects);
        if !self.arming.planner.is_safe_beside_others() {
            let why = "their return addresses cannot be guarded here";
            ensure!(
                others.is_empty(),
                "several processes cannot be traced together: {why}; {REMEDY}"
            );
            let children = Process::children_of(self.target.pid.0);
            let is_parent = children.into_iter().flatten().any(Process::is_running);
            let remark = || format!("what it had started before is not traced: {why}; {REMEDY}");
            return Ok(is_parent.then(remark).into_iter().collect());
        }
        let ours = Ours::new();
        let mut remarks = Vec::new();
        let mut parents = vec![self.target.pid];
        for other in others {
            if self.trace_too(other, &mut remarks) {
                parents.push(Pid(other.pid()));
            }
        }
        let mut found = Vec::new();
        while let Some(parent) = parents.pop() {
            let Some(children) = Process::children_of(parent.0) else {
                remarks.push(format!("what process {} had started is not known", parent.0));
                continue;
            };
            for pid in children {
                let is_known =
                    pid == self.target.pid.0 || self.target.processes.is_traced(Pid(pid));
                if is_known || !Process::is_running(pid) {
                    continue;
                }
                let Ok(child) = Process::open(pid) else { continue };
                if ours.has(pid, child.exe()) {
                    continue;
                }
                if found.len() == MOST_FOUND {
                    let why = format!("only {MOST_FOUND} of the processes that ran are traced");
                    self.note(why.clone());
                    remarks.push(why);
                    parents.clear();
                    break;
                }
                if self.trace_too(&child, &mut remarks) {
                    parents.push(Pid(pid));
                    found.push(pid);
                }
            }
        }
        remarks.extend(named(&found));
        Ok(folded(remarks))
    }

    /// Traces a process unless it cannot be traced along with the target, or its id is another's by
    /// now. Then the reason is a remark.
    fn trace_too(&mut self, process: &Process, remarks: &mut Vec<String>) -> bool {
        let traced = self.try_to_trace(process, Standing::Followed, remarks);
        if let Err(why) = &traced {
            self.note(why.clone());
            remarks.push(why.clone());
        }
        traced.is_ok()
    }

    /// Remembers where other tracers have probes in the target: its family has the same.
    pub(crate) fn remember_in_use(&mut self, in_use: InUse) {
        self.target.in_use = in_use;
    }

    pub(super) fn try_to_trace(
        &mut self,
        process: &Process,
        standing: Standing,
        remarks: &mut Vec<String>,
    ) -> Result<(), String> {
        let pid = process.pid();
        let refused = |why: &dyn std::fmt::Display| format!("process {pid} is not traced: {why}");
        let objects = process.objects().map_err(|error| refused(&error))?;
        self.check_joining(Pid(pid), &objects)?;
        remarks.extend(super::super::before::remarks(process, &mut self.target.in_use));
        self.kernel.trace_process(Pid(pid)).map_err(|error| refused(&error))?;
        let is_same = |now: Process| now.start_time() == process.start_time();
        if !Process::open(pid).is_ok_and(is_same) {
            self.kernel.forget_process(Pid(pid));
            return Err(refused(&"it has ended"));
        }
        self.target.processes.set(Pid(pid), standing);
        self.introduce(process);
        self.locate_python(Pid(pid), &objects);
        Ok(())
    }

    /// Refuses a process if what it has loaded stands against tracing it along with the target.
    pub(super) fn check_joining(
        &mut self,
        pid: Pid,
        objects: &[MappedObject],
    ) -> Result<(), String> {
        let new = self.arming.unknown(objects);
        let against = self.arming.planner.against_joining(&new);
        let refused = |why| Err(format!("process {} is not traced: {why}; {REMEDY}", pid.0));
        against.map_or(Ok(()), refused)
    }
}

/// Leaves out what are too many remarks.
fn folded(mut remarks: Vec<String>) -> Vec<String> {
    let more = remarks.len().saturating_sub(MOST_REMARKS);
    if more > 0 {
        // The last one tells what is traced.
        remarks
            .splice(MOST_REMARKS - 1..remarks.len() - 1, [format!("… and {more} more such lines")]);
    }
    remarks
}

/// Tells which processes are traced beside the target.
fn named(pids: &[u32]) -> Option<String> {
    const NAMED: usize = 8;
    let names = first_few(NAMED, &pids.iter().map(u32::to_string).collect::<Vec<_>>());
    let count = counted(pids.len() as u64, "process", "processes");
    (!pids.is_empty()).then(|| format!("traced along with it: {count} that ran already ({names})"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_processes_are_named() {
        assert_eq!(named(&[]), None);
        let one = named(&[812]).expect("one");
        assert!(one.ends_with("1 process that ran already (812)"), "{one}");
        let many = named(&(1..=20).collect::<Vec<_>>()).expect("many");
        assert!(
            many.ends_with("20 processes that ran already (1, 2, 3, 4, 5, 6, 7, 8 and 12 more)"),
            "{many}"
        );
    }
}
