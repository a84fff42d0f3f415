//! Collects the calls inside some calls from the chunks that these span: one by one while there is
//! room, and beyond that as sums by path.

use super::count::FirstPass;
use super::lens::Lens;
use super::select::{CallReader, each_part};
use super::slowest::SlowCall;
use super::walk::Frame;
use crate::calls::spool::Call;
use crate::recording::{Chunk, ChunkEntry, Recording};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Inner calls that are kept one by one, in total.
const KEPT: usize = 1 << 18;

/// A call inside another, with its place among its thread's calls, latest first.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlacedCall {
    pub(crate) call: Call,
    /// The query's node.
    pub(crate) node: u32,
    place: (Reverse<usize>, usize),
}

impl PlacedCall {
    /// `chunk` is a chunk's number, and `place` the call's place among its thread's calls there.
    pub(super) fn new(call: Call, node: u32, chunk: usize, place: usize) -> Self {
        Self { call, node, place: (Reverse(chunk), place) }
    }
}

/// The sum of calls of one path inside a call. It is no `Tally`, because a row of such calls has when
/// the first began, and its longest call is an untimed one if all are.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct InnerSum {
    pub(crate) calls: u64,
    pub(crate) start: u64,
    pub(crate) total: u64,
    /// Timed or not, and the duration of the longest: a timed call counts as longer than any other.
    longest: (bool, u64),
}

#[derive(Debug, Default)]
pub(crate) struct Inside {
    /// The calls, latest first, each before those inside it. Empty if there are sums.
    pub(crate) each: Vec<PlacedCall>,
    /// Sums by the query's node, once there is no room for single calls.
    pub(crate) sums: Option<BTreeMap<u32, InnerSum>>,
}

impl InnerSum {
    pub(crate) fn add(&mut self, other: &Self) {
        self.start = if self.calls == 0 { other.start } else { self.start.min(other.start) };
        self.calls += other.calls;
        self.total = self.total.saturating_add(other.total);
        self.longest = self.longest.max(other.longest);
    }

    pub(crate) fn of(call: &Call) -> Self {
        let longest = (call.timed, call.duration);
        Self { calls: 1, start: call.start, total: call.duration, longest }
    }

    pub(crate) fn max(&self) -> u64 {
        self.longest.1
    }
}

impl Inside {
    fn add(&mut self, kept: PlacedCall, room: usize) {
        if self.sums.is_none() && self.each.len() < room {
            self.each.push(kept);
        } else {
            self.sums().entry(kept.node).or_default().add(&InnerSum::of(&kept.call));
        }
    }

    fn sums(&mut self) -> &mut BTreeMap<u32, InnerSum> {
        let sums = self.sums.get_or_insert_default();
        for kept in std::mem::take(&mut self.each) {
            sums.entry(kept.node).or_default().add(&InnerSum::of(&kept.call));
        }
        sums
    }

    fn merge(&mut self, other: Self, room: usize) {
        other.each.into_iter().for_each(|kept| self.add(kept, room));
        for (node, sum) in other.sums.into_iter().flatten() {
            self.sums().entry(node).or_default().add(&sum);
        }
    }
}

/// Returns the calls inside each of these calls.
pub(crate) fn inside(
    recording: &Recording,
    lens: &Lens<'_>,
    chunks: &[ChunkEntry],
    counted: &FirstPass,
    found: &[SlowCall],
) -> Vec<Inside> {
    let room = KEPT / found.len().max(1);
    let spans = |found: &SlowCall, number: usize, entry: &ChunkEntry| {
        number <= found.chunk && entry.to.0 >= found.call.start
    };
    let numbered: Vec<_> = chunks
        .iter()
        .enumerate()
        .filter(|(number, entry)| found.iter().any(|found| spans(found, *number, entry)))
        .collect();
    let parts = each_part(&numbered, |entries| {
        let mut selected = CallReader::new(recording, lens, counted);
        let mut inside: Vec<_> = found.iter().map(|_| Inside::default()).collect();
        for &(number, entry) in entries {
            let Some(chunk) = selected.read(entry) else { continue };
            let asked = found.iter().zip(&mut inside);
            let mut asked: Vec<_> = asked.filter(|(f, _)| spans(f, number, entry)).collect();
            of_chunk(recording, &mut selected, (number, &chunk), &mut asked, room);
        }
        inside
    });
    let mut all: Vec<_> = found.iter().map(|_| Inside::default()).collect();
    for part in parts {
        all.iter_mut().zip(part).for_each(|(all, part)| all.merge(part, room));
    }
    for inside in &mut all {
        inside.each.sort_unstable_by_key(|kept| kept.place);
    }
    all
}

fn of_chunk(
    recording: &Recording,
    selected: &mut CallReader<'_>,
    (number, chunk): (usize, &Chunk),
    asked: &mut [(&SlowCall, &mut Inside)],
    room: usize,
) {
    let nodes = recording.nodes();
    for thread in chunk.threads() {
        // Each with the place of the first call that may be inside it.
        let mut of_thread: Vec<(Frame, usize, &mut Inside)> = Vec::new();
        for (found, inside) in asked.iter_mut().filter(|(f, _)| f.thread == thread.thread) {
            let Call { start, node, .. } = found.call;
            let is_open = || thread.open.iter().any(|o| (o.start.0, o.path) == (start, node));
            let first = match number == found.chunk {
                true => found.place + 1,
                false if is_open() => 0,
                false => continue,
            };
            let frame = Frame::new(start, found.call.end(), &nodes[node as usize]);
            of_thread.push((frame, first, inside));
        }
        if of_thread.is_empty() {
            continue;
        }
        selected.all_calls(chunk, thread, |place, call, node| {
            of_thread.retain_mut(|(frame, first, inside)| {
                if place < *first {
                    return true;
                }
                if !frame.encloses(&call, &nodes[call.node as usize]) {
                    return false;
                }
                if let Some(node) = node {
                    inside.add(PlacedCall::new(call, node, number, place), room);
                }
                true
            });
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(node: u32, start: u64, duration: u64) -> PlacedCall {
        let timed = duration != 8;
        PlacedCall::new(Call { start, duration, node, timed }, node, 0, start as usize)
    }

    #[test]
    fn what_has_no_room_is_summed_up_whatever_the_order() {
        let calls = [kept(1, 30, 5), kept(2, 31, 1), kept(1, 10, 8), kept(2, 12, 3)];
        for room in 0..=4 {
            for split in 0..=4 {
                let mut parts = [Inside::default(), Inside::default()];
                for (place, call) in calls.iter().enumerate() {
                    parts[usize::from(place >= split)].add(*call, room);
                }
                let [mut all, other] = parts;
                all.merge(other, room);
                assert_eq!(all.sums.is_some(), room < 4);
                let sums = all.sums().iter();
                let sums: Vec<_> =
                    sums.map(|(node, s)| (*node, s.calls, s.start, s.total, s.max())).collect();
                assert_eq!(sums, [(1, 2, 10, 13, 5), (2, 2, 12, 4, 3)]);
                assert!(all.each.is_empty());
            }
        }
    }
}
