//! Probes for programs and libraries that come after the start.

use super::Session;
use crate::{
    bpf,
    session::{
        keep::counted_parts,
        plan::{Plan, Planned},
        run::{every_lock, launch},
    },
    target::{
        launch::libraries_of,
        process::{AtStart, Process, facts::ProgramFacts, maps::MappedObject},
    },
    ui::text::units::counted,
};
use ctrace_common::Change;
use ctrace_core::{
    ingest::change::ProcessEvent,
    units::{Nanos, Pid},
};
use std::{thread::sleep, time::Duration};

/// Within this time, a process that the kernel has told to stop has stopped, and nobody else has
/// continued it yet.
const STOP_IS_COMPLETE: Nanos = Nanos(1_000_000_000);

/// The state of a program when its probes are placed. Calls of a running one may have been missed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arrival {
    /// The program runs.
    Running,
    /// It is held before its first instruction.
    Held,
    /// It has just loaded a library, and the thread that did is held.
    Loads,
}

/// Objects that came later, which are guarded but not armed.
pub(super) struct Come {
    new: Vec<MappedObject>,
    plan: Plan,
}

impl Session {
    /// Names the program that a process has executed by its file, as those that run already are named,
    /// and its control group. For a program that has ended, the 15 bytes in the kernel's record must do.
    pub(super) fn name_executed(&mut self, event: &ProcessEvent) {
        let Change::Exec { .. } = event.change else { return };
        self.note_executed(event);
        self.name_group(event.pid);
        if let Some(program) = ProgramFacts::of(event.pid)
            && !program.file_name().is_empty()
        {
            self.engine.name_executed(event.pid, event.time, program.file_name());
        }
    }

    /// Lets a process that was stopped at the start of a new program go on once the program has its
    /// probes.
    pub(super) fn release_if_held(&mut self, event: &ProcessEvent) {
        let Change::Exec { held, .. } = event.change else { return };
        let ProcessEvent { pid, time, .. } = *event;
        if held && self.target.holding.found.take_if(|found| time < *found).is_some() {
            return;
        }
        let is_held = || {
            // The guard may have continued the command while ctrace was stopped, and the releaser
            // while ctrace waited for its output.
            bpf::now().since(time) < STOP_IS_COMPLETE
                || time < self.target.holding.released
                || Process::is_held_at_start(pid.0)
        };
        if held && is_held() {
            self.release(pid, time);
        } else if self.target.is_our_child(pid) && time < self.target.holding.until {
            // The first program has its probes by then.
            self.target.holding.unheld =
                Some(self.target.holding.unheld.map_or(0, |count| count + 1));
        }
    }

    /// Releases a process that a look has found held: its record is still to come, or lost.
    pub(super) fn release_found(&mut self, pid: Pid) {
        let now = bpf::now();
        self.release(pid, now);
        self.target.holding.found = Some(now);
    }

    /// Arms and continues a process that stops, or has stopped, since `time`.
    fn release(&mut self, pid: Pid, time: Nanos) {
        self.target.holding.released = bpf::now();
        let has_left = if self.progress.finishing {
            // Nothing is armed any more. A process that is still to stop loses nothing.
            Process::at_start(pid.0) == AtStart::Left
        } else {
            self.arm_new_program(pid);
            has_left_its_start(pid, time)
        };
        if has_left {
            self.target.holding.unheld = Some(self.target.holding.unheld.unwrap_or(0) + 1);
        }
        if let Err(error) = launch::go_on(pid) {
            self.note(format!("process {} could not be continued: {error}", pid.0));
        }
    }

    /// Arms functions of programs and libraries that came later. Objects that cannot be read any
    /// more (the process may be gone) are left alone. A failure to attach becomes a note in the
    /// report.
    pub(super) fn arm_new_objects(&mut self, pid: Pid) {
        if let Some((_, mapped)) = self.mapped(pid) {
            self.arm_new(pid, mapped, Arrival::Running);
        }
    }

    /// The same for a process in which a thread is held that has loaded a library. The record that it
    /// has come may be on its way. One that is not traced may have return addresses to put back.
    pub(crate) fn arm_loaded(&mut self, pid: Pid) {
        let now = bpf::now();
        if !self.kernel.traced().has(pid) {
            self.kernel.let_go(&[pid]);
        } else if (self.is_of_ours(pid) || !self.target.joined.is_awaited() || self.decide(pid, ""))
            && let Some((_, mapped)) = self.mapped(pid)
        {
            self.arm_new(pid, mapped, Arrival::Loads);
        }
        self.kernel.looked(pid, now);
    }

    /// The same for a process that has just executed another program.
    pub(super) fn arm_executed(&mut self, pid: Pid) {
        match self.mapped(pid) {
            Some((_, mapped)) => self.arm_new(pid, mapped, Arrival::Running),
            None => self.target.count_unseen(pid),
        }
    }

    /// Counts a process that is gone, when the session is over: the program that it executed last
    /// is not in the report.
    pub(super) fn miss(&mut self, pid: Pid) {
        if Process::open(pid.0).is_err() {
            self.target.count_unseen(pid);
        }
    }

    /// The same before the first instruction: the loader has not mapped the libraries yet.
    fn arm_new_program(&mut self, pid: Pid) {
        let Some((process, mut objects)) = self.mapped(pid) else { return };
        objects.extend(libraries_of(&process));
        self.arm_new(pid, objects, Arrival::Held);
    }

    /// Returns the process and its mapped objects, and notes its stacks on the way.
    pub(super) fn mapped(&mut self, pid: Pid) -> Option<(Process, Vec<MappedObject>)> {
        let process = Process::open(pid.0).ok()?;
        self.map_stacks(&process);
        let time = bpf::now();
        let objects = process.objects().ok()?;
        self.locate_markers(pid, &objects);
        self.learn_addresses(pid, time, &objects);
        self.locate_python(pid, &objects);
        Some((process, objects))
    }

    fn arm_new(&mut self, pid: Pid, objects: Vec<MappedObject>, arrival: Arrival) {
        if !self.stays(pid, &objects) {
            return;
        }
        let come = self.guard_new(&objects);
        // An interpreter among them is known from now on.
        self.locate_python(pid, &objects);
        if let Some(come) = come {
            self.attach_new(pid, &come, arrival);
        }
    }

    /// Guards what running processes have loaded since the target was looked at, and what only the
    /// others have. Returns what is still to be armed.
    pub(super) fn guard_arrivals(&mut self) -> Vec<(Pid, Come)> {
        let mut come = Vec::new();
        for pid in self.running() {
            if let Some((_, mapped)) = self.mapped(pid)
                && let Some(new) = self.guard_new(&mapped)
            {
                self.locate_python(pid, &mapped);
                come.push((pid, new));
            }
        }
        come
    }

    /// Arms what has come before the start. If it cannot be guarded, return probes go again.
    pub(super) fn arm_arrivals(&mut self, come: &[(Pid, Come)]) {
        if !self.arming.planner.allows_return_probes() {
            for pid in self.running() {
                if let Some((_, mapped)) = self.mapped(pid) {
                    self.replace_return_probes_if_deadly(&mapped);
                }
            }
        }
        for (pid, come) in come {
            self.attach_new(*pid, come, Arrival::Running);
        }
    }

    /// Takes over the marker buffers that the processes beside the target have already.
    pub(super) fn adopt_others(&mut self) {
        let target = self.target.pid;
        for pid in self.running().into_iter().filter(|pid| *pid != target) {
            if let Some((_, mapped)) = self.mapped(pid) {
                self.adopt_buffers(pid, &mapped);
            }
        }
    }

    /// Returns the traced processes, but no command that is to be launched: it still runs ctrace.
    fn running(&self) -> Vec<Pid> {
        let is_command = |pid: &Pid| self.target.launched && *pid == self.target.pid;
        self.target.alive().into_iter().filter(|pid| !is_command(pid)).collect()
    }

    /// Plans objects that are new among these, and places their guards. A failure becomes a note.
    pub(super) fn guard_new(&mut self, objects: &[MappedObject]) -> Option<Come> {
        let new = self.arming.take_new(objects);
        if new.is_empty() {
            return None;
        }
        let opened = self.arming.planner.open(&new);
        // Before the plan, which takes seconds for a large library.
        self.replace_return_probes_if_deadly(objects);
        let planned = opened.and_then(|opened| self.arming.planner.plan_more(&opened));
        let planned = planned.and_then(|plan| {
            self.guard(&plan.guards)?;
            Ok(plan)
        });
        match planned {
            Ok(mut plan) => {
                if let Some(by) =
                    self.delivery.output.by().filter(|_| self.kernel.counts().is_some())
                {
                    let note = counted_parts::leave_out_others(by, plan.planned_mut());
                    plan.notes.extend(note);
                }
                Some(Come { new, plan })
            }
            Err(error) => {
                if self.arming.guarding.is_in_place() {
                    let why = format!("{} cannot be guarded", names(&new));
                    self.arming.planner.give_up_return_probes(&why);
                    self.replace_return_probes_if_deadly(objects);
                }
                self.note(format!("functions of {} are not traced: {error:#}", names(&new)));
                None
            }
        }
    }

    fn attach_new(&mut self, pid: Pid, Come { new, plan }: &Come, arrival: Arrival) {
        plan.notes.iter().for_each(|note| self.note(note.clone()));
        if self.engine.follows_locks() {
            every_lock::notes(plan).for_each(|note| self.note(note));
        }
        for object in &plan.objects {
            let first = self.engine.functions().len();
            let attached = self.attach(object);
            if attached.is_ok()
                && let Err(error) = self.arm_markers(pid, std::slice::from_ref(object), new)
            {
                let scopes = |(_, planned): &(usize, &Planned)| planned.is_marker();
                let scopes = (first..).zip(&object.functions).filter(scopes);
                scopes.for_each(|(id, _)| self.arming.unarmed.add(id..id + 1));
                self.note(format!("marker scopes of {} stay off: {error:#}", object.name));
            }
            if object.functions.is_empty() && attached.is_ok() {
                continue;
            }
            let after = self.progress.seconds();
            let (count, name) = (object.functions.len(), &object.name);
            let functions = counted(count as u64, "function", "functions");
            let since = match arrival {
                Arrival::Running => "; earlier calls are not counted",
                Arrival::Held => ", before the program's first instruction",
                Arrival::Loads => ", when it was loaded",
            };
            self.note(match attached {
                Ok(()) => {
                    let were = if count == 1 { "was" } else { "were" };
                    format!(
                        "{functions} of {name} {were} armed {after:.3} s after the start{since}"
                    )
                }
                Err(error) => {
                    let are = if count == 1 { "is" } else { "are" };
                    format!("{functions} of {name} {are} not traced: {error:#}")
                }
            });
        }
    }
}

/// True if somebody else has continued a process that was to be held. Its stop may take a moment.
fn has_left_its_start(pid: Pid, time: Nanos) -> bool {
    loop {
        match Process::at_start(pid.0) {
            AtStart::Held => return false,
            AtStart::Left => return true,
            AtStart::Runs if bpf::now().since(time) >= STOP_IS_COMPLETE => return true,
            AtStart::Runs => sleep(Duration::from_millis(1)),
        }
    }
}

fn names(objects: &[MappedObject]) -> String {
    objects.iter().map(|object| object.name.as_str()).collect::<Vec<_>>().join(", ")
}
