//! The programs that processes run. The name of a process's first thread does not tell: threads get
//! names of their own, and one that begins after its process has ended, as the last events arrive,
//! has none.

use crate::engine::by_process::ByProcess;
use crate::units::{Nanos, Pid};
use std::collections::HashMap;
use std::sync::Arc;

#[derive(Debug, Default)]
pub(crate) struct Programs {
    names: ByProcess,
    /// The full names of programs whose execution is still to be processed, by its time.
    expected: HashMap<(Pid, Nanos), Arc<str>>,
}

impl Programs {
    pub(crate) fn name(&mut self, pid: Pid, program: &str) {
        self.names.set(pid, program.into());
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
        self.names.inherit(parent, child);
    }

    pub(crate) fn end(&mut self, pid: Pid) {
        self.names.end(pid);
    }

    pub(crate) fn of(&self, pid: Pid) -> Option<Arc<str>> {
        self.names.of(pid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_full_name_counts_where_it_was_given() {
        let mut programs = Programs::default();
        // The kernel's record has a part of a name.
        programs.expect(Pid(3), Nanos(7), "a-shop-with-a-long-name");
        for (at, name) in [(7, "a-shop-with-a-long-name"), (8, "a-shop-with-a-l")] {
            programs.execute(Pid(3), Nanos(at), "a-shop-with-a-l");
            assert_eq!(programs.of(Pid(3)), Some(name.into()));
        }
    }
}
