//! Processes that the kernel has admitted by itself, as they are like others. It knows less of them than
//! ctrace does, so some are turned away.

use super::Session;
use crate::target::{
    launch::libraries_of,
    process::{
        Process,
        facts::{self, ProgramFacts},
    },
};
use ctrace_core::units::Pid;

/// Processes that are kept in mind when they were turned away, and that are turned away with their
/// parent.
const MOST: usize = 1 << 10;

impl Session {
    /// Takes note of a process that has executed a program, if the kernel has admitted it. Returns
    /// whether it is traced on.
    pub(super) fn take_in(&mut self, pid: Pid) -> bool {
        if self.is_of_ours(pid) || !self.target.joined.is_awaited() {
            return true;
        }
        let is_meant = self.target.joined.means(pid);
        // Nothing tells what one that has ended was, so it counts as meant.
        let is_there = ProgramFacts::of(pid).is_some();
        if is_there && !is_meant {
            // The record of its fork is lost.
            if facts::parent(pid).is_some_and(|parent| self.is_of_ours(parent)) {
                self.target.followed.insert(pid);
                return true;
            }
            // A file can have several names, and ctrace starts programs, too.
            self.turn_away(pid);
            self.target.joined.mistaken += 1;
            return false;
        }
        if is_there && let Err(why) = self.check_admitted(pid) {
            self.turn_away(pid);
            self.note(why);
            return false;
        }
        self.target.joined.turned_away.remove(&pid);
        self.target.followed.insert(pid);
        self.count_time_of(pid);
        self.tell_joined(pid);
        true
    }

    /// Follows a child, unless the kernel has admitted its parent by mistake.
    pub(super) fn take_child(&mut self, parent: Pid, child: Pid) {
        if !self.target.joined.turned_away.contains(&parent) {
            self.target.joined.turned_away.remove(&child);
            self.target.followed.insert(child);
            self.target.clock.joined.fork(parent, child);
        } else if !self.is_of_ours(child) {
            self.turn_away(child);
        }
    }

    fn is_of_ours(&self, pid: Pid) -> bool {
        pid == self.target.pid || self.target.followed.contains(&pid)
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
        match self.check_joining(pid, &objects) {
            Err(_) if ProgramFacts::of(pid).is_none() => Ok(()),
            checked => checked,
        }
    }

    /// Traces a process no more, nor what it has started since it was admitted.
    fn turn_away(&mut self, pid: Pid) {
        let (traced, mut room) = (self.kernel.traced(), MOST);
        let mut left = vec![pid];
        while let Some(pid) = left.pop() {
            self.kernel.forget_process(pid);
            let known = &mut self.target.joined.turned_away;
            if known.len() < MOST {
                known.insert(pid);
            }
            for child in Process::children_of(pid.0).into_iter().flatten().map(Pid) {
                let is_its = !self.is_of_ours(child) && traced.has(child);
                if is_its && room > 0 {
                    room -= 1;
                    left.push(child);
                }
            }
        }
    }
}
