//! Adds call paths up, for flame graphs.

use super::decode::PathSeen;
use std::collections::HashMap;
use std::sync::Arc;

/// Limit of paths. Rows of further ones are counted.
const MOST: usize = 1 << 20;

/// The sums of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathTotals {
    pub calls: u64,
    pub total_ns: u64,
    pub self_ns: u64,
}

/// All paths, outermost function first.
#[derive(Debug, Default)]
pub struct Paths {
    pub all: HashMap<Vec<Arc<str>>, PathTotals>,
    /// Rows that found no room.
    pub left_out: u64,
}

impl Paths {
    pub fn add(&mut self, row: &PathSeen<'_>) {
        let more = PathTotals { calls: row.calls, total_ns: row.total_ns, self_ns: row.self_ns };
        let room = self.all.len() < MOST;
        match self.all.get_mut(row.path) {
            Some(sums) => sums.add(&more),
            None if room => drop(self.all.insert(row.path.to_vec(), more)),
            None => self.left_out += 1,
        }
    }

    pub fn merge(mut self, other: Self) -> Self {
        self.left_out += other.left_out;
        for (path, sums) in other.all {
            match self.all.get_mut(&path) {
                Some(mine) => mine.add(&sums),
                None => drop(self.all.insert(path, sums)),
            }
        }
        self
    }
}

impl PathTotals {
    fn add(&mut self, other: &Self) {
        self.calls = self.calls.saturating_add(other.calls);
        self.total_ns = self.total_ns.saturating_add(other.total_ns);
        self.self_ns = self.self_ns.saturating_add(other.self_ns);
    }
}
