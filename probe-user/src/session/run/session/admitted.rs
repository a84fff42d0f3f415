//! Processes that the kernel has admitted by itself, as they are like others. It knows less of them than
//! ctrace does, so some are turned away.

use super::{Session, processes::Standing};
use crate::{
    bpf,
    target::{
        launch::libraries_of,
        process::{
            Process,
            facts::{self, ProgramFacts},
            maps::MappedObject,
        },
    },
    ui::text::units::counted,
};
use ctrace_common::Change;
use ctrace_core::{
    ingest::change::ProcessEvent,
    units::{Nanos, Pid, Tid},
};

/// Processes that are turned away with the one that has started them.
const MOST: usize = 1 << 10;

impl Session {
    /// Decides on a process that has executed a program of this name. Returns whether it is traced on.
    pub(super) fn take_in(&mut self, pid: Pid, name: &str) -> bool {
        if self.is_of_ours(pid) || !self.target.joined.is_awaited() {
            return true;
        }
        if ProgramFacts::of(pid).is_some() {
            return self.decide(pid, name);
        }
        self.target.joined.count_ended(name);
        true
    }

    /// Decides on a process that runs and that the kernel has put into its set, which is told now or
    /// soon. Returns whether it is traced on.
    pub(super) fn decide(&mut self, pid: Pid, name: &str) -> bool {
        if let Some(standing) = self.standing_away(pid) {
            // It may have executed what is meant just before it was turned away.
            if standing == Standing::Mistaken && self.target.joined.means(pid) {
                self.join(pid);
            }
            return self.is_of_ours(pid);
        }
        // The record of its fork is lost, or still to come.
        if let Some(standing) = facts::parent(pid).and_then(|parent| self.standing_of_child(parent))
        {
            self.follow(pid, standing);
            return true;
        }
        if !self.target.joined.means(pid) {
            // A file can have several names, and ctrace starts programs, too.
            self.turn_away(pid, Standing::Mistaken);
            self.target.joined.mistaken += 1;
            return false;
        }
        if let Err(why) = self.check_admitted(pid) {
            self.turn_away(pid, Standing::Refused);
            self.note(why);
            return false;
        }
        self.follow(pid, Standing::Joined);
        // It is traced since its start.
        self.count_time_of(pid, Process::cpu_time(pid.0));
        self.tell_joined(pid, name);
        true
    }

    /// Decides on a process that a traced one has started.
    pub(super) fn take_child(&mut self, parent: Pid, child: Pid, at: Nanos) {
        if self.standing_away(child).is_some() {
            return;
        }
        match self.target.processes.standing(parent) {
            // The kernel has traced it because it did so with its parent.
            Some(why) if !why.is_traced() => match self.target.joined.means(child) {
                true => _ = self.decide(child, ""),
                false => self.turn_away(child, why),
            },
            // If there is none, it is the target's child, or the record of its parent is lost.
            standing => {
                self.note_forked(parent, child);
                self.follow(child, standing.unwrap_or(Standing::Followed));
                self.target.clock.joined.fork(parent, child, at);
            }
        }
    }

    /// Returns the standing of a process that was turned away, and that the kernel has not admitted
    /// again.
    fn standing_away(&self, pid: Pid) -> Option<Standing> {
        let standing = self.target.processes.standing(pid).filter(|it| !it.is_traced());
        standing.filter(|_| !self.kernel.traced().has(pid))
    }

    /// Returns the standing of what a process starts, if it is traced.
    fn standing_of_child(&self, parent: Pid) -> Option<Standing> {
        let standing = self.target.processes.standing(parent).filter(|it| it.is_traced());
        standing.or_else(|| self.is_of_ours(parent).then_some(Standing::Followed))
    }

    fn follow(&mut self, pid: Pid, standing: Standing) {
        self.target.processes.set(pid, standing);
    }

    pub(super) fn is_of_ours(&self, pid: Pid) -> bool {
        self.target.is_alive(pid) || self.target.processes.is_traced(pid)
    }

    /// Refuses a process if what it has loaded, or is about to load, stands against tracing it.
    fn check_admitted(&mut self, pid: Pid) -> Result<(), String> {
        let Ok(process) = Process::open(pid.0) else { return Ok(()) };
        let mut objects = process.objects().unwrap_or_default();
        let new = self.arming.unknown(&objects);
        // The loader may have mapped nothing yet.
        if new.iter().any(|object| object.is_main) {
            objects.extend(libraries_of(&process));
        }
        // Files cannot be read any more once it has ended.
        match self.check_staying(pid, &objects) {
            Err(_) if ProgramFacts::of(pid).is_none() => Ok(()),
            checked => checked,
        }
    }

    /// Refuses a process that came later if what it has loaded by now stands against tracing it.
    fn check_staying(&mut self, pid: Pid, objects: &[MappedObject]) -> Result<(), String> {
        self.check_restorable(pid)?;
        self.check_joining(pid, objects)
    }

    fn check_restorable(&self, pid: Pid) -> Result<(), String> {
        let refused = |why: bpf::BpfError| format!("process {} is not traced: {why}", pid.0);
        self.kernel.check_restorable(pid).map_err(refused)
    }

    /// Returns whether a process is traced on with what it has loaded by now. If it came later, what
    /// stands against that costs it alone: it is turned away.
    pub(super) fn stays(&mut self, pid: Pid, objects: &[MappedObject]) -> bool {
        let checked = match self.target.processes.standing(pid) {
            Some(Standing::Joined) => self.check_staying(pid, objects),
            Some(Standing::Followed) => self.check_restorable(pid),
            _ => Ok(()),
        };
        let Err(why) = checked else { return true };
        self.turn_away(pid, Standing::Refused);
        let after = self.progress.seconds();
        self.note(format!("{why} (from {after:.3} s after the start on)"));
        false
    }

    /// Traces a process no more, nor what it has started since it was admitted and is not meant itself.
    /// Nothing of return probes stays on their stacks.
    fn turn_away(&mut self, pid: Pid, why: Standing) {
        let (traced, mut room) = (self.kernel.traced(), MOST);
        let (mut left, mut gone) = (vec![pid], Vec::new());
        while let Some(pid) = left.pop() {
            self.kernel.forget_process(pid);
            gone.push(pid);
            self.target.processes.set(pid, why);
            self.target.clock.joined.end(pid);
            self.end_calls(pid);
            for child in Process::children_of(pid.0).into_iter().flatten().map(Pid) {
                let is_its = !self.is_of_ours(child) && traced.has(child);
                if is_its && !self.target.joined.means(child) && room > 0 {
                    room -= 1;
                    left.push(child);
                }
            }
        }
        self.kernel.let_go(&gone);
    }

    /// Tells which processes that are traced no more keep replaced return addresses.
    pub(super) fn note_left(&mut self) {
        for (pid, left) in self.kernel.take_left() {
            let addresses = counted(left as u64, "return address", "return addresses");
            self.note(format!("{addresses} of process {} could not be put back", pid.0));
        }
    }

    /// Has no call of a process go on in the reports.
    fn end_calls(&mut self, pid: Pid) {
        self.engine.push_change(ProcessEvent {
            time: bpf::now(),
            pid,
            tid: Tid(pid.0),
            lost_before: 0,
            change: Change::ProcessExit { comm: [0; 16], status: 0 },
        });
    }
}
