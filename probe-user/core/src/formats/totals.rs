//! Sums by thread and call path, for formats without single calls.

use super::excerpt::{Ended, Excerpt, Row};
use super::{Coverage, ExportError};
use crate::hash::IntMap;
use crate::recording::ReadAt;
use crate::units::ThreadId;
use std::collections::BTreeMap;

/// Sums over the calls on one path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) calls: u64,
    pub(super) untimed: u64,
    pub(super) open: u64,
    pub(super) total: u64,
    pub(super) own: u64,
}

impl Sum {
    pub(super) fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.untimed += other.untimed;
        self.open += other.open;
        self.total = self.total.saturating_add(other.total);
        self.own = self.own.saturating_add(other.own);
    }

    fn count(&mut self, row: &Row) {
        self.calls += 1;
        self.untimed += u64::from(row.ended == Ended::Untimed);
        self.open += u64::from(row.ended == Ended::Open);
        self.total = self.total.saturating_add(row.duration);
        self.own = self.own.saturating_add(row.own);
    }
}

/// Sums by path.
type Sums = IntMap<Sum>;

#[derive(Debug, Default)]
pub(super) struct Totals {
    threads: BTreeMap<ThreadId, Sums>,
}

impl Totals {
    pub(super) fn of<R: ReadAt>(excerpt: &Excerpt<'_, R>) -> Result<(Self, Coverage), ExportError> {
        let mut totals = Self::default();
        let told = excerpt.chunks_with_own(|step| {
            for (thread, rows) in step.rows() {
                let sums = totals.threads.entry(thread).or_default();
                rows.for_each(|row| sums.entry(row.path.into()).or_default().count(&row));
            }
            Ok(())
        })?;
        Ok((totals, told))
    }

    /// Returns the threads in the order in which they began, with their sums by path.
    pub(super) fn threads(&self) -> impl Iterator<Item = (ThreadId, Vec<(u32, Sum)>)> {
        self.threads.iter().map(|(thread, sums)| (*thread, sorted(sums)))
    }

    /// Returns the sums of all threads together, by path.
    pub(super) fn paths(&self) -> Vec<(u32, Sum)> {
        let mut all = Sums::default();
        for (path, sum) in self.threads.values().flatten() {
            all.entry(*path).or_default().add(sum);
        }
        sorted(&all)
    }
}

fn sorted(sums: &Sums) -> Vec<(u32, Sum)> {
    let mut sorted: Vec<_> = sums.iter().map(|(path, sum)| (*path as u32, *sum)).collect();
    sorted.sort_unstable_by_key(|(path, _)| *path);
    sorted
}
