//! What is told when ctrace or its guard has died: where breakpoints may have been left.

use ctrace_core::units::Pid;
use std::collections::HashSet;

/// Where links were, or were about to be, when the process died that made or asked for them. All are
/// closed by now; but of those that were just being made or closed, breakpoints may be left.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// Of links that were bound to a process.
    pub pids: HashSet<Pid>,
    /// Of the files of those that were not: every process that maps one of them had probes.
    pub inodes: HashSet<u64>,
}

/// Where the probes of a link are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    /// `None`: in every process that maps the file.
    pub(super) pid: Option<u32>,
    pub(super) inode: u64,
    pub(super) count: usize,
}

impl Left {
    pub(super) fn of(places: impl IntoIterator<Item = Places>) -> Self {
        let mut left = Self::default();
        for Places { pid, inode, .. } in places {
            match pid {
                Some(pid) => left.pids.insert(Pid(pid)),
                None => left.inodes.insert(inode),
            };
        }
        left
    }

    pub(super) fn is_nothing(&self) -> bool {
        self.pids.is_empty() && self.inodes.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processes_and_files_are_told_once() {
        let places = [(Some(7), 1), (Some(7), 2), (Some(8), 3), (None, 4), (None, 4)];
        let places = places.map(|(pid, inode)| Places { pid, inode, count: 5 });
        let left = Left::of(places);
        assert_eq!(left.pids, HashSet::from([Pid(7), Pid(8)]));
        assert_eq!(left.inodes, HashSet::from([4]));
        assert!(!left.is_nothing() && Left::of([]).is_nothing());
    }
}
