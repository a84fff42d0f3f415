//! The programs that processes run. The name of a process's first thread does not tell: threads get
//! names of their own, and one that begins after its process has ended, as the last events arrive,
//! has none.

use crate::units::{Nanos, Pid};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// The ended processes that are remembered, as some of their events may be still to come.
const MOST_ENDED: usize = 1024;

#[derive(Debug, Default)]
pub(crate) struct Programs {
    names: HashMap<Pid, Arc<str>>,
    ended: VecDeque<Pid>,
    /// The full names of programs whose execution is still to be processed, by its time.
    expected: HashMap<(Pid, Nanos), Arc<str>>,
}

impl Programs {
    pub(crate) fn name(&mut self, pid: Pid, program: &str) {
        self.ended.retain(|ended| *ended != pid);
        self.names.insert(pid, program.into());
    }

    /// Gives the full name of the program that the process executed at this time.
    pub(crate) fn expect(&mut self, pid: Pid, at: Nanos, program: &str) {
        self.expected.insert((pid, at), program.into());
    }

    /// Notes that the process has executed a program. `name` is the beginning of its name, for one
    /// whose full name was not given.
    pub(crate) fn execute(&mut self, pid: Pid, at: Nanos, name: &str) {
        let expected = self.expected.remove(&(pid, at));
        self.name(pid, expected.as_deref().unwrap_or(name));
    }

    /// Notes that a new process runs the program of its parent.
    pub(crate) fn inherit(&mut self, parent: Pid, child: Pid) {
        match self.of(parent) {
            Some(program) => self.name(child, &program),
            None => drop(self.names.remove(&child)),
        }
    }

    pub(crate) fn end(&mut self, pid: Pid) {
        if !self.names.contains_key(&pid) || self.ended.contains(&pid) {
            return;
        }
        self.ended.push_back(pid);
        if self.ended.len() > MOST_ENDED
            && let Some(oldest) = self.ended.pop_front()
        {
            self.names.remove(&oldest);
        }
    }

    pub(crate) fn of(&self, pid: Pid) -> Option<Arc<str>> {
        self.names.get(&pid).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_processes_that_ended_are_remembered() {
        let mut programs = Programs::default();
        programs.name(Pid(1), "shop");
        for pid in 2..=MOST_ENDED as u32 + 2 {
            programs.inherit(Pid(1), Pid(pid));
            programs.end(Pid(pid));
        }
        let of = |pid| programs.of(Pid(pid));
        assert_eq!([of(1), of(3)], [Some("shop".into()), Some("shop".into())]);
        assert_eq!(of(2), None);
        assert_eq!((programs.names.len(), programs.ended.len()), (MOST_ENDED + 1, MOST_ENDED));
        // The kernel's record has a part of a name.
        programs.expect(Pid(3), Nanos(7), "a-shop-with-a-long-name");
        for (at, name) in [(7, "a-shop-with-a-long-name"), (8, "a-shop-with-a-l")] {
            programs.execute(Pid(3), Nanos(at), "a-shop-with-a-l");
            assert_eq!(programs.of(Pid(3)), Some(name.into()));
        }
        // An id that is used again is of a process that runs.
        programs.name(Pid(3), "cart");
        programs.inherit(Pid(1), Pid(4));
        assert_eq!(
            (programs.of(Pid(3)), programs.ended.len()),
            (Some("cart".into()), MOST_ENDED - 2)
        );
    }
}
