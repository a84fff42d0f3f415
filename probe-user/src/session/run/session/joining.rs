//! Processes that come after the start and are among those that the user chose. The kernel admits those
//! that are like others by itself. Nothing stops the rest, so what they do before they are found is not
//! seen.

use super::Session;
use crate::{
    bpf::CpuClock,
    session::run::{
        admission,
        later::{Later, Meant},
    },
    target::process::{Process, facts::ProgramFacts},
    ui::{self, text::units::counted},
};
use anyhow::ensure;
use ctrace_core::units::{Pid, Tid};
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedReceiver;

/// Rounds in which what a process loads meanwhile is guarded, before it is traced.
const ROUNDS: usize = 4;
/// Children that are traced along with one of these processes, if it has started them already.
const MOST_CHILDREN: usize = 1 << 10;
/// Processes that are told when they join.
const MOST_TOLD: u64 = 16;
/// Threads whose CPU time is counted, of all these processes: each costs a file descriptor.
const MOST_CLOCKS: usize = 512;

/// The processes that have joined.
#[derive(Default)]
pub(super) struct Joined {
    found: Option<UnboundedReceiver<Pid>>,
    /// None: none are awaited.
    meant: Option<Arc<Meant>>,
    /// What the kernel admits them by.
    admits: u32,
    count: u64,
    /// Those that ended before they could be traced.
    missed: u64,
    clocks: usize,
}

impl Joined {
    pub(super) fn is_awaited(&self) -> bool {
        self.meant.is_some()
    }

    fn means(&self, pid: Pid) -> bool {
        self.meant.as_ref().is_some_and(|meant| meant.has(pid))
    }

    /// Returns a note for a reader of the reports.
    pub(super) fn note(&self) -> Option<String> {
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
        self.is_awaited().then(|| format!("{joined} joined after the start (--later){missed}"))
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
        if traced.is_ok() {
            self.join_children(pid, &mut remarks);
        }
        remarks.into_iter().for_each(|remark| self.note(remark));
        match traced {
            Err(_) if !Process::is_running(pid.0) => self.target.joined.missed += 1,
            Err(why) => self.note(why),
            Ok(()) => {
                self.tell_joined(pid);
                self.admit_like(pid);
            }
        }
    }

    /// Takes note of a process that the kernel has admitted as it executed its program.
    pub(super) fn take_in(&mut self, pid: Pid) {
        let is_known = pid == self.target.pid || self.target.followed.contains(&pid);
        if is_known || !self.target.joined.is_awaited() {
            return;
        }
        // A file can have several names, and ctrace starts programs, too.
        if Process::is_running(pid.0) && !self.target.joined.means(pid) {
            self.kernel.forget_process(pid);
            return;
        }
        self.target.followed.insert(pid);
        self.count_time_of(pid);
        self.tell_joined(pid);
    }

    fn tell_joined(&mut self, pid: Pid) {
        self.target.joined.count += 1;
        if self.target.joined.count <= MOST_TOLD {
            let program = ProgramFacts::of(pid).map(|it| format!(": {}", it.exe));
            ui::say(&format!("process {} joins{}", pid.0, program.unwrap_or_default()));
        }
    }

    /// Has the kernel admit processes like this one, if it is one of those that are meant.
    fn admit_like(&self, pid: Pid) {
        let joined = &self.target.joined;
        if joined.admits != 0
            && joined.means(pid)
            && let Some(admission) = admission::like(pid, joined.admits)
            && let Err(error) = self.kernel.admit(admission)
        {
            tracing::info!("{error}");
        }
    }

    /// Guards what the process has loaded, traces it, and arms what nobody had loaded before.
    fn trace_newcomer(
        &mut self,
        process: &Process,
        remarks: &mut Vec<String>,
    ) -> Result<(), String> {
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
        self.try_to_trace(process, remarks)?;
        self.count_time_of(pid);
        self.arm_arrivals(&come);
        self.arm_new_objects(pid);
        if let Some((_, mapped)) = self.mapped(pid)
            && !self.markers.is_empty()
        {
            self.adopt_buffers(pid, &mapped);
        }
        Ok(())
    }

    /// Traces what a process had started before it was traced itself.
    fn join_children(&mut self, pid: Pid, remarks: &mut Vec<String>) {
        let (mut parents, mut room) = (vec![pid], MOST_CHILDREN);
        while let Some(parent) = parents.pop() {
            for child in Process::children_of(parent.0).into_iter().flatten() {
                let is_new = !self.kernel.traced().has(Pid(child)) && Process::is_running(child);
                if !is_new || room == 0 {
                    continue;
                }
                room -= 1;
                if let Ok(process) = Process::open(child)
                    && self.trace_newcomer(&process, remarks).is_ok()
                {
                    parents.push(Pid(child));
                }
            }
        }
    }

    /// Counts the CPU time of a process and its children from now on, where time is counted.
    fn count_time_of(&mut self, pid: Pid) {
        let room = MOST_CLOCKS.saturating_sub(self.target.joined.clocks);
        let threads: Vec<Tid> =
            Process::threads_of(pid.0).into_iter().take(room).map(|it| Tid(it.tid)).collect();
        if let Some(counters) = &mut self.target.clock.counters
            && let Ok(more) = CpuClock::start(threads.iter().copied(), true)
        {
            self.target.joined.clocks += threads.len();
            counters.add(more);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_counts_them() {
        let note = |joined: Joined| joined.note();
        assert_eq!(note(Joined::default()), None);
        let meant = || Some(Arc::new(Meant::new(Vec::new())));
        let awaited = Joined { meant: meant(), ..Joined::default() };
        assert_eq!(note(awaited).as_deref(), Some("no process joined after the start (--later)"));
        let some = Joined { meant: meant(), count: 3, missed: 2, ..Joined::default() };
        let expected = "3 processes joined after the start (--later); 2 more ended before they could be traced";
        assert_eq!(note(some).as_deref(), Some(expected));
    }
}
