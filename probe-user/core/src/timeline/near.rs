//! One call: the calls around it, those inside it, and its values.

use super::Timeline;
use super::cell::{RowKey, Span};
use super::pyramid::{Node, of_rows};
use crate::calls::paths::ROOT;
use crate::formats::Ended;
use crate::recording::Recording;
use crate::report::NamedValues;
use crate::stop::Stop;
use crate::units::{Nanos, ThreadId};
use std::ops::Range;

/// Calls directly inside a call that are listed.
const MOST_INSIDE: usize = 100;
/// Chunks that are read for them.
const MOST_CHUNKS: usize = 64;
/// Chunks before and after a time in which the call nearest to it is searched.
const CHUNKS_NEAR: usize = 4;
/// Calls around a call that are listed, the innermost ones.
const MOST_PARENTS: u32 = 512;

/// A call and its surroundings.
#[derive(Clone, Debug)]
pub struct Near {
    /// The call.
    pub call: Span,
    /// Its row.
    pub row: RowKey,
    /// The calls around it with their rows, the outermost first.
    pub parents: Vec<(RowKey, Span)>,
    /// How many calls around it are known to exist, but were not found.
    pub missing_parents: u32,
    /// True if it lies beyond the bounds on paths: which calls are around it is not known.
    pub is_other: bool,
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
    /// The number of all of them.
    pub count: u64,
    /// The sum of their durations.
    pub total: u64,
    /// True if the call spans so much that not all of it was read.
    pub is_partial: bool,
    /// Why more of the time may be that of calls inside it.
    pub doubts: Doubts,
}

/// Why the time of calls inside a call may be more than the sum of those that are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Doubts {
    /// Events were lost while the call ran, or calls of that time cannot be read.
    pub lost: bool,
    /// The end of a call inside it was not seen.
    pub untimed: bool,
    /// The thread made calls beyond the bounds on paths meanwhile.
    pub others: bool,
}

impl Timeline {
    /// Finds the call of a row at a time: the last that began of those that go on, or the nearest
    /// within `slack` of it. Also `None` if it was stopped.
    pub fn near(
        &self,
        recording: &Recording,
        row: RowKey,
        time: Nanos,
        slack: u64,
        stop: &Stop,
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
        self.each(recording, row.thread, row.depths(), window, stop, |_, span| {
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
        let parents = self.parents(recording, row, &call, stop);
        let inside = self.inside(recording, row, &call, stop);
        let values = values(recording, row.thread, &call);
        let node = recording.nodes()[call.path as usize];
        let around = if node.other { 0 } else { node.depth.saturating_sub(1) };
        let missing_parents = around.min(MOST_PARENTS).saturating_sub(parents.len() as u32);
        let near =
            Near { call, row, parents, missing_parents, is_other: node.other, inside, values };
        Some(near).filter(|_| !stop.is_stopped())
    }

    /// Returns the calls around a call, the outermost first. One that was not recorded is left out.
    fn parents(
        &self,
        recording: &Recording,
        row: RowKey,
        call: &Span,
        stop: &Stop,
    ) -> Vec<(RowKey, Span)> {
        let nodes = recording.nodes();
        let mut parents = Vec::new();
        let mut path = nodes[call.path as usize].parent;
        let mut looked_for = 0;
        while !nodes[call.path as usize].other && path != ROOT && looked_for < MOST_PARENTS {
            looked_for += 1;
            let node = nodes[path as usize];
            let key = RowKey { thread: row.thread, depth: node.depth.saturating_sub(1) };
            let at = call.start.0;
            let mut found: Option<Span> = None;
            let time = at..at.saturating_add(1);
            self.each(recording, row.thread, key.depths(), time, stop, |_, span| {
                let encloses = span.path == path && span.start.0 <= at && span.end() >= call.end();
                if encloses && found.is_none_or(|found| found.order() < span.order()) {
                    found = Some(*span);
                }
            });
            parents.extend(found.map(|span| (key, span)));
            path = node.parent;
        }
        parents.reverse();
        parents
    }

    fn inside(&self, recording: &Recording, row: RowKey, call: &Span, stop: &Stop) -> Inside {
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
        inside.doubts.lost = self.pyramid.facts.loses(from, to);
        // Calls beyond the bounds on paths are in any row.
        let depths = match nodes.iter().any(|node| node.other) {
            true => 0..u32::MAX,
            false => RowKey { depth: row.depth.saturating_add(1), ..row }.depths(),
        };
        self.each(recording, row.thread, depths, from..until, stop, |_, span| {
            let node = nodes[span.path as usize];
            let is_within = span.start.0 >= from && span.end().0 <= to && span != call;
            inside.doubts.others |= is_within && node.other;
            if !is_within || node.other || node.parent != call.path {
                return;
            }
            inside.count += 1;
            inside.total = inside.total.saturating_add(span.duration.0);
            inside.doubts.untimed |= span.ended != Ended::Timed;
            inside.calls.push(*span);
            if inside.calls.len() >= 2 * MOST_INSIDE {
                inside.calls.sort_by_key(Span::order);
                inside.calls.truncate(MOST_INSIDE);
            }
        });
        inside.calls.sort_by_key(Span::order);
        inside.calls.truncate(MOST_INSIDE);
        inside
    }

    /// Shows all calls of some rows of a thread that touch a stretch of time, in no particular order.
    fn each(
        &self,
        recording: &Recording,
        thread: ThreadId,
        depths: Range<u32>,
        time: Range<u64>,
        stop: &Stop,
        mut show: impl FnMut(RowKey, &Span),
    ) {
        let time = (time.start, time.end);
        let mut show_all = |kept: &[(RowKey, Span)]| {
            of_rows(kept, thread, depths.clone(), time).for_each(|(row, span)| show(row, span));
        };
        show_all(&self.pyramid.loose);
        let mut leaves = Vec::new();
        let mut to_do: Vec<&Node> = self.pyramid.root.iter().collect();
        while let Some(node) = to_do.pop() {
            if node.touches(time.0, time.1) {
                show_all(&node.own);
                if node.children.is_empty() {
                    leaves.push(node.chunk);
                }
                to_do.extend(&node.children);
            }
        }
        for number in leaves {
            let leaf = self.leaves.get(recording, number, &recording.chunks()[number], stop);
            leaf.of_rows(thread, depths.clone(), time).for_each(|(row, span)| show(row, span));
        }
    }
}

/// Returns the values of a call. They are beside the chunk in which it ended.
fn values(recording: &Recording, thread: ThreadId, call: &Span) -> Option<NamedValues> {
    let function = recording.path(call.path)?.function;
    let chunk = recording.chunks().partition_point(|entry| entry.to < call.end());
    let payloads = recording.payloads(recording.chunks().get(chunk)?).ok()?;
    let values = recording.values_by_call(&payloads).remove(&(thread, call.start.0, function))?;
    Some(values.named)
}
