//! Sums by thread and call path, for formats without single calls.
//!
//! A sum here is no `Tally`: the time of open calls counts, and there is one for each path of each
//! thread, so extremes and squares, which no format has, would double its size and cost every call.

use super::excerpt::{CallRow, Ended, Excerpt};
use super::{Coverage, ExportError};
use crate::hash::IntMap;
use crate::units::ThreadId;
use std::collections::BTreeMap;

/// Sums over the calls on one path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PathSum {
    pub(super) calls: u64,
    pub(super) untimed: u64,
    pub(super) open: u64,
    pub(super) total: u64,
    pub(super) own: u64,
}

impl PathSum {
    pub(super) fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.untimed += other.untimed;
        self.open += other.open;
        self.total = self.total.saturating_add(other.total);
        self.own = self.own.saturating_add(other.own);
    }

    fn count(&mut self, row: &CallRow) {
        self.calls += 1;
        self.untimed += u64::from(row.ended == Ended::Untimed);
        self.open += u64::from(row.ended == Ended::Open);
        self.total = self.total.saturating_add(row.duration);
        self.own = self.own.saturating_add(row.own);
    }
}

/// Sums by path.
type ByPath = IntMap<PathSum>;

#[derive(Debug, Default)]
pub(super) struct PathSums {
    threads: BTreeMap<ThreadId, ByPath>,
}

impl PathSums {
    pub(super) fn of(excerpt: &Excerpt<'_>) -> Result<(Self, Coverage), ExportError> {
        let mut all = Self::default();
        let told = excerpt.chunks_with_own(|step| {
            for (thread, rows) in step.rows() {
                let sums = all.threads.entry(thread).or_default();
                rows.for_each(|row| sums.entry(row.path.into()).or_default().count(&row));
            }
            Ok(())
        })?;
        Ok((all, told))
    }

    /// Returns the threads in the order in which they began, with their sums by path.
    pub(super) fn threads(&self) -> impl Iterator<Item = (ThreadId, Vec<(u32, PathSum)>)> {
        self.threads.iter().map(|(thread, sums)| (*thread, sorted(sums)))
    }

    /// Returns the sums of all threads together, by path.
    pub(super) fn paths(&self) -> Vec<(u32, PathSum)> {
        let mut all = ByPath::default();
        for (path, sum) in self.threads.values().flatten() {
            all.entry(*path).or_default().add(sum);
        }
        sorted(&all)
    }
}

fn sorted(sums: &ByPath) -> Vec<(u32, PathSum)> {
    let mut sorted: Vec<_> = sums.iter().map(|(path, sum)| (*path as u32, *sum)).collect();
    sorted.sort_unstable_by_key(|(path, _)| *path);
    sorted
}
