//! What comes after the start: new programs, and libraries that are opened later.

use super::{Session, budgeted::Budgeted};
use crate::{
    bpf::{self, Attachment, Role},
    session::{
        plan::{Planned, identity},
        run::{groups::Group, launch},
    },
    target::{
        launch::libraries_of,
        maps::MappedObject,
        process::{AtStart, Process},
    },
};
use ctrace_common::Change;
use ctrace_core::{
    ingest::decode::ProcessEvent,
    units::{Nanos, Pid},
};
use std::{thread::sleep, time::Duration};

/// By then a process that the kernel has told to stop has stopped, and nobody else has continued it yet.
const STOP_IS_COMPLETE: Nanos = Nanos(1_000_000_000);

/// Whether calls can have come before the probes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Arrival {
    /// The program runs.
    Running,
    /// It is held before its first instruction.
    Held,
}

impl Session {
    /// A process that was stopped at the start of a new program goes on once that has its probes.
    pub(super) fn release_if_held(&mut self, event: &ProcessEvent) {
        let Change::Exec { held, .. } = event.change else { return };
        let ProcessEvent { pid, time, .. } = *event;
        if held && self.holding.found.take_if(|found| time < *found).is_some() {
            return;
        }
        let is_held = || {
            // While this process was stopped, the guard may have continued the command; while it waited for
            // its output, the releaser.
            bpf::now().since(time) < STOP_IS_COMPLETE
                || time < self.holding.released
                || Process::is_held_at_start(pid.0)
        };
        if held && is_held() {
            self.release(pid, time);
        } else if self.parts.launched && pid == self.parts.pid && time < self.holding.until {
            // The first one of all has its probes by then.
            self.holding.unheld = Some(self.holding.unheld.map_or(0, |count| count + 1));
        }
    }

    /// A look has found the process held: its record is still to come, or lost.
    pub(super) fn release_found(&mut self, pid: Pid) {
        let now = bpf::now();
        self.release(pid, now);
        self.holding.found = Some(now);
    }

    /// Since `time` the process stops, or has stopped.
    fn release(&mut self, pid: Pid, time: Nanos) {
        self.holding.released = bpf::now();
        let has_left = if self.finishing {
            // Nothing is armed any more. What is still to stop is no loss.
            Process::at_start(pid.0) == AtStart::Left
        } else {
            self.arm_new_program(pid);
            has_left_its_start(pid, time)
        };
        if has_left {
            self.holding.unheld = Some(self.holding.unheld.unwrap_or(0) + 1);
        }
        if let Err(error) = launch::go_on(pid) {
            self.note(format!("process {} could not be continued: {error}", pid.0));
        }
    }

    /// Functions of programs and libraries that came later. What cannot be read any more (the
    /// process may be gone) is left alone; what cannot be attached is a note in the report.
    pub(super) fn arm_new_objects(&mut self, pid: Pid) {
        if let Some((_, mapped)) = self.mapped(pid) {
            self.arm_new(pid, mapped, Arrival::Running);
        }
    }

    /// The same for a process that has just begun another program.
    pub(super) fn arm_executed(&mut self, pid: Pid) {
        match self.mapped(pid) {
            Some((_, mapped)) => self.arm_new(pid, mapped, Arrival::Running),
            None => self.note_unseen(pid),
        }
    }

    /// The session is over: what a process that is gone executed just before is not in it.
    pub(super) fn miss(&mut self, pid: Pid) {
        if Process::open(pid.0).is_err() {
            self.note_unseen(pid);
        }
    }

    fn note_unseen(&mut self, pid: Pid) {
        // Our own child was held until it had its probes.
        if !(self.parts.launched && pid == self.parts.pid) {
            let (first, count) = self.unseen.unwrap_or((pid, 0));
            self.unseen = Some((first, count + 1));
        }
    }

    /// What is to be said of those.
    pub(super) fn unseen_note(&self) -> Option<String> {
        let (Pid(first), count) = self.unseen?;
        let whose = match count {
            1 => format!("process {first} ended before the program that it executed"),
            _ => format!(
                "{count} processes (the first: {first}) ended before the programs that they executed"
            ),
        };
        Some(format!(
            "{whose} could be looked at: functions of those are not counted, unless they were traced \
             already"
        ))
    }

    /// The same before the first instruction: the loader has not mapped the libraries yet.
    fn arm_new_program(&mut self, pid: Pid) {
        let Some((process, mut objects)) = self.mapped(pid) else { return };
        objects.extend(libraries_of(&process));
        self.arm_new(pid, objects, Arrival::Held);
    }

    /// The process as it is mapped now; its stacks are noted on the way.
    fn mapped(&mut self, pid: Pid) -> Option<(Process, Vec<MappedObject>)> {
        let process = Process::open(pid.0).ok()?;
        self.map_stacks(&process);
        let objects = process.objects().ok()?;
        self.locate_markers(pid, &objects);
        Some((process, objects))
    }

    fn arm_new(&mut self, pid: Pid, objects: Vec<MappedObject>, arrival: Arrival) {
        let new: Vec<MappedObject> =
            objects.into_iter().filter(|o| !self.armed.contains(&identity(o))).collect();
        if new.is_empty() {
            return;
        }
        self.armed.extend(new.iter().map(identity));
        let planned = self.parts.planner.plan_more(&new);
        self.drop_return_probes_if_deadly();
        let plan = match planned {
            Ok(plan) => plan,
            Err(error) => {
                let why = format!("functions of {} are not traced: {error:#}", names(&new));
                return self.note(why);
            }
        };
        plan.notes.iter().for_each(|note| self.note(note.clone()));
        for object in &plan.objects {
            let first = self.costs.functions();
            let attached = self.attach(object);
            if attached.is_ok()
                && let Err(error) = self.arm_markers(pid, std::slice::from_ref(object), &new)
            {
                let scopes = |(_, planned): &(usize, &Planned)| planned.is_marker();
                let scopes = (first..).zip(&object.functions).filter(scopes);
                scopes.for_each(|(id, _)| self.unarmed.add(id..id + 1));
                self.note(format!("marker scopes of {} stay off: {error:#}", object.name));
            }
            if object.functions.is_empty() && attached.is_ok() {
                continue;
            }
            let after = bpf::now().since(self.start).0 as f64 / 1e9;
            let (count, name) = (object.functions.len(), &object.name);
            self.note(match attached {
                Ok(()) if arrival == Arrival::Held => format!(
                    "{count} functions of {name} were armed {after:.3} s after the start, before \
                     the program's first instruction"
                ),
                Ok(()) => format!(
                    "{count} functions of {name} were armed {after:.3} s after the start; earlier \
                     calls are not counted"
                ),
                Err(error) => format!("{count} functions of {name} are not traced: {error:#}"),
            });
        }
    }

    /// A library that unwinds or switches stacks came while return probes are in place: through
    /// them the target would die.
    fn drop_return_probes_if_deadly(&mut self) {
        if self.parts.planner.allows_return_probes() {
            return;
        }
        let deadly = |attachment: &mut Attachment| attachment.role() == Role::Function;
        let deadly: Vec<_> = self.attachments.extract_if(.., deadly).collect();
        let groups = self.budget.iter_mut().flat_map(Budgeted::groups_mut);
        let functions: usize = deadly.iter().map(Attachment::sites).sum::<usize>()
            + groups.map(Group::drop_return_probes).sum::<usize>();
        drop(deadly);
        if functions == 0 {
            return;
        }
        self.note(format!(
            "{functions} functions were traced up to {:.3} s after the start only: a library was \
             loaded that their return probes would have made crash (--returns ret-sites avoids it)",
            bpf::now().since(self.start).0 as f64 / 1e9,
        ));
    }
}

/// Whether somebody else has continued a process that was to be held. Its stop may take a moment.
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
