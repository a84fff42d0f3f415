//! One call: the calls around it, those inside it, and its values.

use super::Timeline;
use super::cell::{RowKey, Span};
use super::picture::of_row;
use super::pyramid::Node;
use crate::calls::paths::ROOT;
use crate::recording::{ReadAt, Recording};
use crate::report::NamedValues;
use crate::units::{Nanos, ThreadId};
use std::ops::Range;

/// Calls directly inside a call that are listed.
const MOST_INSIDE: usize = 100;
/// Chunks that are read for them.
const MOST_CHUNKS: usize = 64;
/// Chunks before and after a time in which the call nearest to it is searched.
const CHUNKS_NEAR: usize = 4;
/// Calls around a call that are listed, the innermost ones.
const MOST_PARENTS: usize = 512;

/// A call and its surroundings.
#[derive(Clone, Debug)]
pub struct Near {
    /// The call.
    pub call: Span,
    /// Its row.
    pub row: RowKey,
    /// The calls around it, the outermost first.
    pub parents: Vec<Span>,
    /// The calls directly inside it.
    pub inside: Inside,
    /// Its arguments and its result.
    pub values: Option<NamedValues>,
}

/// The calls directly inside a call.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inside {
    /// The first of them.
    pub calls: Vec<Span>,
    /// How many there are.
    pub count: u64,
    /// The sum of their durations.
    pub total: u64,
    /// True if the call spans so much that not all of it was read.
    pub is_partial: bool,
}

impl Timeline {
    /// Finds the call of a row at a time: the last that began of those that go on, or the nearest
    /// within `slack` of it.
    pub fn near<R: ReadAt>(
        &self,
        recording: &Recording<R>,
        row: RowKey,
        time: Nanos,
        slack: u64,
    ) -> Option<Near> {
        let chunks = recording.chunks();
        let place = chunks.partition_point(|entry| entry.to < time);
        let first = chunks.get(place.saturating_sub(CHUNKS_NEAR)).map_or(0, |entry| entry.from.0);
        let last = chunks.get(place + CHUNKS_NEAR).map_or(u64::MAX, |entry| entry.to.0);
        let time = time.0;
        let from = time.saturating_sub(slack).max(first.min(time));
        let to = time.saturating_add(slack).min(last).max(time);
        let window = from..to.saturating_add(1);
        let mut best: Option<(u64, Span)> = None;
        self.each(recording, row, window, |span| {
            let distance = span.start.0.saturating_sub(time).max(time.saturating_sub(span.end().0));
            let is_better = best.is_none_or(|(least, other)| {
                (distance, std::cmp::Reverse(span.order()))
                    < (least, std::cmp::Reverse(other.order()))
            });
            if is_better {
                best = Some((distance, *span));
            }
        });
        let (_, call) = best?;
        let parents = self.parents(recording, row, &call);
        let inside = self.inside(recording, row, &call);
        let values = values(recording, row.thread, &call);
        Some(Near { call, row, parents, inside, values })
    }

    /// Returns the calls around a call, the outermost first. One that was not recorded is left out.
    fn parents<R: ReadAt>(&self, recording: &Recording<R>, row: RowKey, call: &Span) -> Vec<Span> {
        let nodes = recording.nodes();
        let mut parents = Vec::new();
        let mut path = nodes[call.path as usize].parent;
        let is_known = !nodes[call.path as usize].other;
        while is_known && path != ROOT && parents.len() < MOST_PARENTS {
            let node = nodes[path as usize];
            let key = RowKey { thread: row.thread, depth: node.depth.saturating_sub(1) };
            let at = call.start.0;
            let mut found: Option<Span> = None;
            self.each(recording, key, at..at.saturating_add(1), |span| {
                let encloses = span.path == path && span.start.0 <= at && span.end() >= call.end();
                if encloses && found.is_none_or(|found| found.order() < span.order()) {
                    found = Some(*span);
                }
            });
            parents.extend(found);
            path = node.parent;
        }
        parents.reverse();
        parents
    }

    fn inside<R: ReadAt>(&self, recording: &Recording<R>, row: RowKey, call: &Span) -> Inside {
        let key = RowKey { depth: row.depth.saturating_add(1), ..row };
        let (from, to) = (call.start.0, call.end().0);
        let first = recording.chunks().partition_point(|entry| entry.to.0 < from);
        let chunks = recording.chunks()[first..].partition_point(|entry| entry.from.0 < to);
        let is_partial = chunks > MOST_CHUNKS;
        let until = match recording.chunks().get(first + MOST_CHUNKS) {
            Some(entry) if is_partial => entry.from.0,
            _ => to.saturating_add(1),
        };
        let nodes = recording.nodes();
        let mut inside = Inside { is_partial, ..Inside::default() };
        self.each(recording, key, from..until, |span| {
            let is_child = nodes[span.path as usize].parent == call.path
                && !nodes[span.path as usize].other
                && span.start.0 >= from
                && span.end().0 <= to;
            if is_child {
                inside.count += 1;
                inside.total = inside.total.saturating_add(span.duration.0);
                inside.calls.push(*span);
                if inside.calls.len() >= 2 * MOST_INSIDE {
                    inside.calls.sort_by_key(Span::order);
                    inside.calls.truncate(MOST_INSIDE);
                }
            }
        });
        inside.calls.sort_by_key(Span::order);
        inside.calls.truncate(MOST_INSIDE);
        inside
    }

    /// Shows all calls of a row that touch a stretch of time, in no particular order.
    fn each<R: ReadAt>(
        &self,
        recording: &Recording<R>,
        row: RowKey,
        time: Range<u64>,
        mut show: impl FnMut(&Span),
    ) {
        let (from, to) = (time.start, time.end);
        let mut show_all = |kept: &[(RowKey, Span)]| {
            of_row(kept, row, from, to).for_each(&mut show);
        };
        show_all(&self.pyramid.loose);
        let mut leaves = Vec::new();
        let mut to_do: Vec<&Node> = self.pyramid.root.iter().collect();
        while let Some(node) = to_do.pop() {
            if node.touches(from, to) {
                show_all(&node.own);
                if node.children.is_empty() {
                    leaves.push(node.chunk);
                }
                to_do.extend(&node.children);
            }
        }
        for number in leaves {
            let leaf = self.leaves.get(recording, number, &recording.chunks()[number]);
            leaf.row(row, from, to).for_each(&mut show);
        }
    }
}

/// Returns the values of a call. They are beside the chunk in which it ended.
fn values<R: ReadAt>(
    recording: &Recording<R>,
    thread: ThreadId,
    call: &Span,
) -> Option<NamedValues> {
    let function = recording.path(call.path)?.function;
    let chunk = recording.chunks().partition_point(|entry| entry.to < call.end());
    let payloads = recording.payloads(recording.chunks().get(chunk)?).ok()?;
    let values = recording.values_by_call(&payloads).remove(&(thread, call.start.0, function))?;
    Some(values.named)
}
