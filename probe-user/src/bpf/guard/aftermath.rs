//! Reports where breakpoints may be left after the death of ctrace or its guard.

use ctrace_core::units::Pid;
use std::collections::HashSet;

/// The places of links that existed, or were requested, when a process died. All links are closed
/// by now. Those in the making or closing may have left breakpoints.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// The processes that links were bound to.
    pub pids: HashSet<Pid>,
    /// The files of unbound links: every process that maps one had probes.
    pub inodes: HashSet<u64>,
}

/// The places of a link's probes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Places {
    /// `None` means every process that maps the file.
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
