//! The calls of a chunk by rows.

use super::cell::{RowKey, Span};
use crate::calls::paths::Node;
use crate::formats::Ended;
use crate::recording::{Call, Chunk, ThreadCalls};
use crate::units::{Nanos, ThreadId};
use std::cmp::Reverse;
use std::ops::Range;

/// Stands for no row.
const NONE: u32 = u32::MAX;

/// The calls that are entirely within a chunk, by rows. A hostile chunk has any number of rows, so
/// they share one list.
#[derive(Debug, Default)]
pub(super) struct Leaf {
    /// In order, each with the place of its calls.
    rows: Vec<(RowKey, Range<usize>)>,
    /// Those of a row: the latest to end first.
    calls: Vec<Span>,
}

impl Leaf {
    /// Takes a chunk apart. Returns also the calls that began before it.
    pub(super) fn of(chunk: &Chunk, nodes: &[Node]) -> (Self, Vec<(RowKey, Span)>) {
        let (mut leaf, mut crossing) = (Self::default(), Vec::new());
        leaf.calls.reserve_exact(chunk.len());
        // The row of each call of a thread, and that of each depth.
        let (mut rows, mut by_depth) = (Vec::<u32>::new(), Vec::<u32>::new());
        let window = (chunk.from.0, chunk.to.0);
        for of_thread in chunk.threads() {
            let (calls, thread) = (chunk.calls(of_thread), of_thread.thread);
            let first = leaf.rows.len();
            rows.clear();
            for call in calls {
                let span = span_of(call);
                let key = RowKey { thread, depth: depth_of(&span, nodes) };
                if !is_within(&span, window) {
                    crossing.push((key, span));
                    rows.push(NONE);
                    continue;
                }
                let depth = key.depth as usize;
                if by_depth.len() <= depth {
                    by_depth.resize(depth + 1, NONE);
                }
                if by_depth[depth] == NONE {
                    by_depth[depth] = leaf.rows.len() as u32;
                    leaf.rows.push((key, 0..0));
                }
                leaf.rows[by_depth[depth] as usize].1.end += 1;
                rows.push(by_depth[depth]);
            }
            leaf.place(calls, &rows, first);
            leaf.rows[first..].iter().for_each(|(key, _)| by_depth[key.depth as usize] = NONE);
        }
        leaf.sort();
        (leaf, crossing)
    }

    /// Puts the calls of a thread into its rows, which begin with the row `first` and know how many
    /// they will have.
    fn place(&mut self, calls: &[Call], rows: &[u32], first: usize) {
        let Some(any) = calls.first().map(span_of) else { return };
        let mut end = self.calls.len();
        for (_, place) in &mut self.rows[first..] {
            let count = place.end;
            *place = end..end;
            end += count;
        }
        self.calls.resize(end, any);
        for (call, row) in calls.iter().zip(rows).filter(|(_, row)| **row != NONE) {
            let place = &mut self.rows[*row as usize].1;
            self.calls[place.end] = span_of(call);
            place.end += 1;
        }
    }

    /// Puts the rows in order, and the calls of each.
    fn sort(&mut self) {
        self.rows.sort_by_key(|(key, _)| *key);
        // Only a hostile chunk names a thread twice.
        if self.rows.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            let mut joined = Self::default();
            joined.calls.reserve_exact(self.calls.len());
            for of_row in self.rows.chunk_by(|one, next| one.0 == next.0) {
                let first = joined.calls.len();
                let calls = of_row.iter().flat_map(|(_, place)| &self.calls[place.clone()]);
                joined.calls.extend(calls);
                joined.rows.push((of_row[0].0, first..joined.calls.len()));
            }
            *self = joined;
        }
        // Only such a chunk, or a damaged one, has calls in another order.
        for (_, place) in &self.rows {
            let calls = &mut self.calls[place.clone()];
            if !calls.is_sorted_by_key(|span| Reverse(span.end())) {
                calls.sort_by_key(|span| Reverse(span.end()));
            }
        }
    }

    /// Returns the number of rows.
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns the rows in order, with their calls.
    pub(super) fn rows(&self) -> impl Iterator<Item = (RowKey, &[Span])> {
        self.rows.iter().map(|(key, place)| (*key, &self.calls[place.clone()]))
    }

    /// Returns the calls of some rows of a thread that touch a stretch of time. Those of a row come latest first.
    pub(super) fn of_rows(
        &self,
        thread: ThreadId,
        depths: Range<u32>,
        (from, to): (u64, u64),
    ) -> impl DoubleEndedIterator<Item = (RowKey, &Span)> {
        let place =
            |depth| self.rows.partition_point(|(other, _)| *other < RowKey { thread, depth });
        let rows = self.rows[place(depths.start)..place(depths.end)].iter();
        rows.flat_map(move |(row, place)| {
            let calls = &self.calls[place.clone()];
            let last = calls.partition_point(|span| span.end().0 >= from);
            let touching = calls[..last].iter().filter(move |span| span.touches(from, to));
            touching.map(|span| (*row, span))
        })
    }

    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>()
            + self.rows.capacity() * size_of::<(RowKey, Range<usize>)>()
            + self.calls.capacity() * size_of::<Span>()
    }
}

/// Returns the calls that are entirely within a chunk, in its own order.
pub(super) fn calls_within<'a>(
    chunk: &'a Chunk,
    nodes: &'a [Node],
) -> impl Iterator<Item = (RowKey, Span)> + 'a {
    let window = (chunk.from.0, chunk.to.0);
    let calls = |of: &'a ThreadCalls| chunk.calls(of).iter().map(move |call| (of.thread, call));
    let spans =
        chunk.threads().iter().flat_map(calls).map(|(thread, call)| (thread, span_of(call)));
    let within = spans.filter(move |(_, span)| is_within(span, window));
    within.map(|(thread, span)| (RowKey { thread, depth: depth_of(&span, nodes) }, span))
}

fn span_of(call: &Call) -> Span {
    let ended = if call.is_timed() { Ended::Timed } else { Ended::Untimed };
    Span { start: call.start(), duration: call.duration(), path: call.path(), ended }
}

/// Returns the depth of a call's row.
pub(super) fn depth_of(span: &Span, nodes: &[Node]) -> u32 {
    nodes[span.path as usize].depth.saturating_sub(1)
}

/// True if a call is entirely within a stretch of time.
pub(super) fn is_within(span: &Span, (from, to): (u64, u64)) -> bool {
    from <= span.start.0 && span.end().0 <= to
}

/// Returns the calls that are open at the end of a recording, if this is its last chunk.
pub(super) fn open_calls(chunk: &Chunk, end: Nanos, nodes: &[Node]) -> Vec<(RowKey, Span)> {
    let threads = chunk.threads().iter();
    let open = threads.flat_map(|thread| thread.open.iter().map(|call| (thread.thread, call)));
    open.map(|(thread, call)| {
        let duration = end.since(call.start);
        let span = Span { start: call.start, duration, path: call.path, ended: Ended::Open };
        (RowKey { thread, depth: depth_of(&span, nodes) }, span)
    })
    .collect()
}
