//! Processes that come after the start and are among those that the user chose. The kernel admits those
//! that are like others by itself ([`super::admitted`]). Nothing stops the rest, so what they do before
//! they are found is not seen.

use super::{Session, processes::Standing};
use crate::{
    session::run::{
        admission,
        later::{Later, Meant},
    },
    target::process::{Process, facts::ProgramFacts},
    ui::{self, text::units::counted},
};
use anyhow::ensure;
use ctrace_core::units::{Nanos, Pid};
use std::{collections::HashSet, path::Path, sync::Arc};
use tokio::sync::mpsc::UnboundedReceiver;

/// Rounds in which what a process loads meanwhile is guarded, before it is traced.
const ROUNDS: usize = 4;
/// Children that are traced along with one of these processes, if it has started them already.
const MOST_CHILDREN: usize = 1 << 10;
/// Names of programs that are known.
const MOST_NAMES: usize = 1 << 10;
/// Bytes of a name that the kernel keeps.
const COMM_BYTES: usize = 15;
/// Processes that are told when they join.
const MOST_TOLD: u64 = 16;

/// The processes that have joined.
#[derive(Default)]
pub(super) struct Joined {
    found: Option<UnboundedReceiver<Pid>>,
    /// None: none are awaited.
    meant: Option<Arc<Meant>>,
    /// The facts by which the kernel admits them.
    admits: u32,
    count: u64,
    /// The number of those that ended before they could be traced.
    missed: u64,
    /// The number of those that the kernel admitted though they were not meant.
    pub(super) mistaken: u64,
    /// The number of those that the kernel admitted and that ended before anybody could tell whether
    /// they were meant.
    unclear: u64,
    /// Programs of those that are meant, as the kernel names them.
    names: HashSet<String>,
    /// True once the kernel has taken no more to admit processes by.
    is_full: bool,
}

impl Joined {
    pub(super) fn is_awaited(&self) -> bool {
        self.meant.is_some()
    }

    pub(super) fn means(&self, pid: Pid) -> bool {
        self.meant.as_ref().is_some_and(|meant| meant.has(pid))
    }

    fn is_ours(&self, pid: Pid) -> bool {
        self.meant.as_ref().is_some_and(|meant| meant.is_ours(pid))
    }

    /// Returns a note for a reader of the reports. `unclocked`: processes whose CPU time is not all
    /// counted.
    pub(super) fn note(&self, unclocked: u64) -> Option<String> {
        let joined = match self.count {
            0 => "no process".to_owned(),
            count => counted(count, "process", "processes"),
        };
        let missed = match self.missed {
            0 => String::new(),
            missed => {
                let processes = counted(missed, "more", "more");
                format!("; {processes} ended before they could be traced")
            }
        };
        let mistaken = match self.mistaken {
            0 => String::new(),
            mistaken => {
                let processes = counted(mistaken, "other was", "others were");
                format!("; {processes} traced for a moment by mistake")
            }
        };
        let unclear = match self.unclear {
            0 => String::new(),
            unclear => {
                let processes = counted(unclear, "other", "others");
                format!("; {processes} ended before it was known whether they were meant")
            }
        };
        let unclocked = match unclocked {
            0 => String::new(),
            unclocked => {
                let processes = counted(unclocked, "process", "processes");
                format!("; the CPU time of {processes} is not counted, or not all of it")
            }
        };
        self.is_awaited().then(|| {
            format!(
                "{joined} joined after the start (--later), besides children of traced processes{missed}{mistaken}{unclear}{unclocked}"
            )
        })
    }

    /// Counts a process that the kernel has admitted, and that has ended since it executed a program of
    /// this name.
    pub(super) fn count_ended(&mut self, name: &str) {
        *(if self.names.contains(name) { &mut self.count } else { &mut self.unclear }) += 1;
    }

    /// Knows the name of a program that is meant, as the kernel tells it or as its file has it.
    fn know(&mut self, name: &str) {
        if self.names.len() < MOST_NAMES && !name.is_empty() {
            let cut = name.char_indices().find(|(at, c)| at + c.len_utf8() > COMM_BYTES);
            self.names.insert(name[..cut.map_or(name.len(), |(at, _)| at)].to_owned());
        }
    }
}

impl Session {
    /// Traces what comes later, too.
    pub(crate) fn await_later(&mut self, later: Later) -> anyhow::Result<()> {
        ensure!(
            self.arming.planner.is_safe_beside_others(),
            "processes that come later cannot be traced along with the first one: its return \
             addresses cannot be guarded here; --returns ret-sites needs no guards"
        );
        self.target.joined.admits = later.meant().admits();
        self.target.joined.meant = Some(Arc::clone(later.meant()));
        self.target.joined.found = Some(later.find(self.kernel.traced())?);
        if !Process::is_running(self.target.pid.0) {
            // Another process may get its id.
            self.kernel.forget_process(self.target.pid);
        }
        if let Some(name) =
            self.target.report.exe.as_deref().map(Path::new).and_then(Path::file_name)
        {
            self.target.joined.know(&name.to_string_lossy());
        }
        self.target.alive().into_iter().for_each(|pid| self.admit_like(pid));
        Ok(())
    }

    /// Returns the processes that come later. There is only one receiver.
    pub(crate) fn take_later(&mut self) -> Option<UnboundedReceiver<Pid>> {
        self.target.joined.found.take()
    }

    /// Traces a process that has come, and tells it.
    pub(crate) fn join(&mut self, pid: Pid) {
        if self.progress.finishing || self.kernel.traced().has(pid) {
            return;
        }
        let Ok(process) = Process::open(pid.0) else {
            self.target.joined.missed += 1;
            return;
        };
        let mut remarks = Vec::new();
        let traced = self.trace_newcomer(&process, &mut remarks);
        if traced == Ok(true) {
            self.join_children(pid, &mut remarks);
        }
        remarks.into_iter().for_each(|remark| self.note(remark));
        match traced {
            Err(_) if !Process::is_running(pid.0) => self.target.joined.missed += 1,
            Err(why) => self.note(why),
            // It was turned away, and that was told.
            Ok(false) => {}
            Ok(true) => {
                self.tell_joined(pid, "");
                self.admit_like(pid);
            }
        }
    }

    /// `name`: that of its program, as the kernel tells it.
    pub(super) fn tell_joined(&mut self, pid: Pid, name: &str) {
        let program = ProgramFacts::of(pid);
        let joined = &mut self.target.joined;
        joined.count += 1;
        joined.know(name);
        program.iter().for_each(|program| joined.know(program.file_name()));
        if joined.count <= MOST_TOLD {
            let program = program.map(|it| format!(": {}", it.exe));
            ui::say(&format!("process {} joins{}", pid.0, program.unwrap_or_default()));
        }
    }

    /// Has the kernel admit processes like this one, if it is one of those that are meant.
    fn admit_like(&mut self, pid: Pid) {
        let joined = &self.target.joined;
        if joined.admits != 0
            && joined.means(pid)
            && let Some(admission) = admission::like(pid, joined.admits)
            && let Err(error) = self.kernel.admit(admission)
        {
            tracing::info!("{error}");
            let is_news = !std::mem::replace(&mut self.target.joined.is_full, true);
            if is_news {
                let after = self.progress.seconds();
                self.notes.add_in_any_case(format!(
                    "from {after:.3} s after the start, ctrace finds some of the later processes only after \
                     their start: their first calls are missing"
                ));
            }
        }
    }

    /// Guards what the process has loaded, traces it, and arms what nobody had loaded before. Returns
    /// whether it is traced on: it may load meanwhile what stands against that.
    fn trace_newcomer(
        &mut self,
        process: &Process,
        remarks: &mut Vec<String>,
    ) -> Result<bool, String> {
        let pid = Pid(process.pid());
        let mut come = Vec::new();
        for _ in 0..ROUNDS {
            let objects = process.objects().unwrap_or_default();
            self.check_joining(pid, &objects)?;
            match self.guard_new(&objects) {
                Some(new) => come.push((pid, new)),
                None => break,
            }
        }
        self.try_to_trace(process, Standing::Joined, remarks)?;
        self.count_time_of(pid, None);
        self.arm_arrivals(&come);
        self.arm_new_objects(pid);
        if !self.is_of_ours(pid) {
            return Ok(false);
        }
        if let Some((_, mapped)) = self.mapped(pid)
            && !self.markers.is_empty()
        {
            self.adopt_buffers(pid, &mapped);
        }
        Ok(true)
    }

    /// Traces what a process had started before it was traced itself.
    fn join_children(&mut self, pid: Pid, remarks: &mut Vec<String>) {
        let (mut parents, mut room) = (vec![pid], MOST_CHILDREN);
        while let Some(parent) = parents.pop() {
            let Some(children) = Process::children_of(parent.0) else {
                remarks.push(format!("what process {} had started is not known", parent.0));
                continue;
            };
            for child in children.into_iter().map(Pid) {
                if self.kernel.traced().has(child) || self.target.joined.is_ours(child) {
                    continue;
                }
                let Ok(process) = Process::open(child.0) else { continue };
                if room == 0 {
                    remarks.push(format!(
                        "only {MOST_CHILDREN} of the processes that process {} had started are traced",
                        pid.0
                    ));
                    return;
                }
                room -= 1;
                match self.trace_newcomer(&process, remarks) {
                    Ok(true) => parents.push(child),
                    Ok(false) => {}
                    Err(why) if Process::is_running(child.0) => remarks.push(why),
                    Err(_) => {}
                }
            }
        }
    }

    /// Counts the CPU time of a process and its children, where time is counted: from now on, and what
    /// it has `used` as far as it was traced.
    pub(super) fn count_time_of(&mut self, pid: Pid, used: Option<Nanos>) {
        let clock = &mut self.target.clock;
        if clock.counters.is_some() {
            clock.joined.begin(pid, used.unwrap_or_default());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_counts_them() {
        let note = |joined: Joined| joined.note(0);
        assert_eq!(note(Joined::default()), None);
        let meant = || Some(Arc::new(Meant::new(Vec::new())));
        let awaited = Joined { meant: meant(), ..Joined::default() };
        assert_eq!(
            note(awaited).as_deref(),
            Some(
                "no process joined after the start (--later), besides children of traced processes"
            )
        );
        let some = Joined { meant: meant(), count: 3, missed: 2, ..Joined::default() };
        let expected = "3 processes joined after the start (--later), besides children of traced processes; 2 more ended before they could be traced";
        assert_eq!(note(some).as_deref(), Some(expected));
        let rest = Joined { meant: meant(), mistaken: 1, unclear: 2, ..Joined::default() };
        let expected = "no process joined after the start (--later), besides children of traced processes; 1 other was traced for a moment by \
                        mistake; 2 others ended before it was known whether they were meant; the CPU time of 1,004 processes is not counted, or not all of it";
        assert_eq!(rest.note(1_004).as_deref(), Some(expected));
    }

    /// The kernel cuts names.
    #[test]
    fn one_that_ended_has_joined_if_its_name_is_known() {
        let mut joined = Joined::default();
        joined.know("workers");
        joined.know("a-rather-long-name");
        for name in ["workers", "a-rather-long-n", "other", "a-rather-long-name"] {
            joined.count_ended(name);
        }
        assert_eq!((joined.count, joined.unclear), (2, 2));
    }
}
