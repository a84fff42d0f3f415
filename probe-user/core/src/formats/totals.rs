//! Sums by thread and call path: what the formats that show no single calls are made of.
//!
//! The own time of a path is the time of its calls less that of the calls they made. Those are the
//! calls on the paths that lead on from it, so two sums by path tell it, with no look at which call
//! made which. Only calls beyond the bounds on paths do not say on which path they were made: there
//! the calls of a thread are walked, latest first, and the caller is the one around them.

use super::pass::{self, Ended, Row, Step};
use super::{Export, ExportError, Told};
use crate::hash::IntMap;
use crate::paths::Node;
use crate::record::{ROOT_PATH, ReadAt};
use crate::units::ThreadId;
use std::collections::BTreeMap;

/// Sums over the calls on one path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) calls: u64,
    pub(super) untimed: u64,
    pub(super) open: u64,
    /// Of calls made by them; then subtracted.
    inside: u64,
    pub(super) total: u64,
    pub(super) own: u64,
}

impl Sum {
    pub(super) fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.untimed += other.untimed;
        self.open += other.open;
        self.inside = self.inside.saturating_add(other.inside);
        self.total = self.total.saturating_add(other.total);
        self.own = self.own.saturating_add(other.own);
    }

    fn count(&mut self, row: &Row) {
        self.calls += 1;
        self.untimed += u64::from(row.ended == Ended::Untimed);
        self.open += u64::from(row.ended == Ended::Open);
        self.total = self.total.saturating_add(row.duration);
    }
}

/// By path.
type Sums = IntMap<Sum>;

#[derive(Debug, Default)]
pub(super) struct Totals {
    threads: BTreeMap<ThreadId, Sums>,
}

impl Totals {
    pub(super) fn of<R: ReadAt>(export: &Export<'_, R>) -> Result<(Self, Told), ExportError> {
        let nodes = export.recording.nodes();
        let has_others = nodes.iter().any(|node| node.other);
        let mut totals = Self::default();
        let told = pass::chunks(export, |step| {
            for (thread, rows) in step.rows() {
                let sums = totals.threads.entry(thread).or_default();
                rows.for_each(|row| sums.entry(row.path.into()).or_default().count(&row));
            }
            if has_others {
                totals.add_others(nodes, &step);
            }
            Ok(())
        })?;
        for sums in totals.threads.values_mut() {
            settle(nodes, sums);
        }
        Ok((totals, told))
    }

    /// Finds who made the calls whose path does not tell.
    fn add_others(&mut self, nodes: &[Node], step: &Step<'_>) {
        let mut around: Vec<(u64, u32)> = Vec::new();
        for ((thread, rows), calls) in step.rows().zip(step.chunk.threads()) {
            let sums = self.threads.entry(thread).or_default();
            around.clear();
            if step.end.is_none() {
                around.extend(calls.open.iter().map(|open| (open.start.0, open.path)));
            }
            for row in rows {
                while around.last().is_some_and(|(start, _)| *start > row.start) {
                    around.pop();
                }
                if nodes[row.path as usize].other
                    && let Some((_, caller)) = around.last()
                {
                    let caller = sums.entry(u64::from(*caller)).or_default();
                    caller.inside = caller.inside.saturating_add(row.duration);
                }
                around.push((row.start, row.path));
            }
        }
    }

    /// Threads in the order in which they began, and their sums by path.
    pub(super) fn threads(&self) -> impl Iterator<Item = (ThreadId, Vec<(u32, Sum)>)> {
        self.threads.iter().map(|(thread, sums)| (*thread, sorted(sums)))
    }

    /// All threads together, by path.
    pub(super) fn paths(&self) -> Vec<(u32, Sum)> {
        let mut all = Sums::default();
        for (path, sum) in self.threads.values().flatten() {
            all.entry(*path).or_default().add(sum);
        }
        sorted(&all)
    }
}

fn sorted(sums: &Sums) -> Vec<(u32, Sum)> {
    let called = sums.iter().filter(|(_, sum)| sum.calls > 0);
    let mut sorted: Vec<_> = called.map(|(path, sum)| (*path as u32, *sum)).collect();
    sorted.sort_unstable_by_key(|(path, _)| *path);
    sorted
}

/// Computes the own times.
fn settle(nodes: &[Node], sums: &mut Sums) {
    let mut inside: Vec<(u32, u64)> = Vec::new();
    for (path, sum) in sums.iter() {
        let node = &nodes[*path as usize];
        if !node.other && node.parent != ROOT_PATH {
            inside.push((node.parent, sum.total));
        }
    }
    for (caller, total) in inside {
        let caller = sums.entry(caller.into()).or_default();
        caller.inside = caller.inside.saturating_add(total);
    }
    for sum in sums.values_mut() {
        sum.own = sum.total.saturating_sub(sum.inside);
    }
}
