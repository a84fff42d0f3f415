//! The third pass: unions over all threads, of all calls and of the calls in each center.
//!
//! Several calls may be exactly as long as the longest or the shortest in their function's center.
//! These are *ties*, and only some of them are in the center: of the ties with the longest, the
//! last to end are cut; of the ties with the shortest, the last to end are kept.

use super::count::{CrossingCall, FirstPass};
use super::lens::Lens;
use super::select::CallReader;
use super::spans::CallKey;
use crate::calls::spool::Call;
use crate::recording::{Chunk, ChunkCalls, ChunkEntry, Recording};
use crate::stats::rank::Keep;
use crate::stats::unions::Unions;
use rayon::prelude::*;
use std::cmp::Reverse;
use std::collections::HashSet;
use std::ops::Range;

/// Chunks that are unpacked at a time, unless there are more cores than this.
const AT_ONCE: usize = 4;

/// A chunk, unpacked.
struct Unpacked {
    chunk: Chunk,
    /// The calls that count, at the query's nodes: thread by thread, latest first.
    calls: ChunkCalls,
    threads: Vec<Range<usize>>,
    edges: AtEdges,
}

/// The ties of a chunk.
#[derive(Default)]
struct AtEdges {
    /// Functions with ties, and their numbers of ties with the longest and with the shortest.
    counts: Vec<(usize, (u64, u64))>,
    /// Ties that began in an earlier chunk, with function and numbers of preceding ties.
    crossing: Vec<(CallKey, usize, (u64, u64))>,
}

/// The order in which `unions` sees calls: by end, latest first, then by thread and place.
type Order = (Reverse<u64>, usize, usize);

pub(crate) fn unions_of(
    recording: &Recording,
    lens: &Lens<'_>,
    chunks: &[ChunkEntry],
    counted: &FirstPass,
    keep: &[Keep],
    events: bool,
) -> Unions {
    let mut kept = kept_crossing(recording, counted, keep);
    // Numbers of ties still to cut and to keep in earlier chunks.
    let mut left = keep.to_vec();
    let mut all = Unions::default();
    let selected = || CallReader::new(recording, lens, counted);
    for entries in chunks.rchunks(rayon::current_num_threads().max(AT_ONCE)) {
        let unpacked: Vec<Option<Unpacked>> = entries
            .par_iter()
            .map_init(selected, |selected, entry| unpack(selected, lens, entry, keep))
            .collect();
        let mut decided: Vec<(Unpacked, Vec<Keep>)> = Vec::with_capacity(unpacked.len());
        for unpacked in unpacked.into_iter().rev().flatten() {
            let here = left.clone();
            unpacked.edges.decide(counted, &mut left, &mut kept);
            decided.push((unpacked, here));
        }
        let parts: Vec<Unions> = decided
            .into_par_iter()
            .map_init(selected, |selected, (unpacked, keep)| {
                unpacked.unions(selected, &keep, &kept, events)
            })
            .collect();
        parts.iter().for_each(|part| all.add(part));
    }
    all
}

/// Returns the calls that cross the edge of a chunk and are surely in their function's center,
/// because they are no ties.
fn kept_crossing(recording: &Recording, counted: &FirstPass, keep: &[Keep]) -> HashSet<CallKey> {
    let crossing = counted.crossing.iter().filter(|((_, _, recorded), crossed)| {
        let CrossingCall { duration, timed, .. } = crossed;
        let mut keep = keep[recording.nodes()[*recorded as usize].func.index()];
        *timed && keep.edges(*duration) == (false, false) && keep.keeps(*duration)
    });
    crossing.map(|(key, _)| *key).collect()
}

fn unpack(
    selected: &mut CallReader<'_>,
    lens: &Lens<'_>,
    entry: &ChunkEntry,
    keep: &[Keep],
) -> Option<Unpacked> {
    let nodes = lens.paths.nodes();
    // The function of a tie, and 1 each if it ties with the longest and with the shortest.
    let at_edge = |call: &Call| {
        let function = nodes[call.node as usize].func.index();
        let (longest, shortest) = keep[function].edges(call.duration);
        let at = (u64::from(longest), u64::from(shortest));
        (call.timed && at != (0, 0)).then_some((function, at))
    };
    let chunk = selected.read(entry)?;
    let (mut calls, mut threads) = (ChunkCalls::with_capacity(chunk.len()), Vec::new());
    let mut counts = vec![(0, 0); keep.len()];
    let mut crossing = Vec::new();
    for (number, thread) in chunk.threads().iter().enumerate() {
        let first = calls.len();
        selected.calls(&chunk, thread, |call, node| {
            let seen = Call { node, ..call };
            if let Some((function, at)) = at_edge(&seen) {
                add(&mut counts[function], at);
                if call.start < chunk.from.0 {
                    let key = (thread.thread, call.start, call.node);
                    crossing.push((order(&call, number, calls.len()), key, function));
                }
            }
            calls.push(crate::recording::Call(seen));
        });
        threads.push(first..calls.len());
    }
    crossing.sort_unstable();
    let mut at_edges = Vec::new();
    // Few ties, if any, cross the edge of a chunk.
    if !crossing.is_empty() {
        for (number, places) in threads.iter().enumerate() {
            at_edges.extend(places.clone().filter_map(|place| {
                let call = &calls[place].0;
                at_edge(call).map(|(function, at)| (order(call, number, place), function, at))
            }));
        }
        at_edges.sort_unstable();
    }
    let (mut before, mut at_edges) = (vec![(0, 0); keep.len()], at_edges.into_iter().peekable());
    let crossing = crossing.into_iter().map(|(this, key, of)| {
        while let Some((_, function, at)) = at_edges.next_if(|(order, ..)| *order < this) {
            add(&mut before[function], at);
        }
        (key, of, before[of])
    });
    let found = counts.into_iter().enumerate().filter(|(_, counts)| *counts != (0, 0));
    let edges = AtEdges { counts: found.collect(), crossing: crossing.collect() };
    Some(Unpacked { chunk, calls, threads, edges })
}

fn order(call: &Call, thread: usize, place: usize) -> Order {
    (Reverse(call.end()), thread, place)
}

fn add(sum: &mut (u64, u64), other: (u64, u64)) {
    *sum = (sum.0 + other.0, sum.1 + other.1);
}

impl Unpacked {
    fn unions(
        &self,
        selected: &CallReader<'_>,
        keep: &[Keep],
        kept: &HashSet<CallKey>,
        events: bool,
    ) -> Unions {
        let window = selected.clip(self.chunk.from.0, self.chunk.to.0);
        if window.is_empty() {
            return Unions::default();
        }
        let calls =
            self.threads.iter().map(|places| self.calls[places.clone()].iter().map(|call| call.0));
        selected.unions(&self.chunk, calls, window, (keep, kept), events)
    }
}

impl AtEdges {
    /// Decides which ties that cross the edge of the chunk are kept, and counts down the ties left
    /// to cut and to keep in earlier chunks.
    fn decide(&self, counted: &FirstPass, left: &mut [Keep], kept: &mut HashSet<CallKey>) {
        for (key, function, (longest, shortest)) in &self.crossing {
            let mut keep = left[*function];
            keep.pass(*longest, *shortest);
            if counted.crossing.get(key).is_some_and(|call| keep.keeps(call.duration)) {
                kept.insert(*key);
            }
        }
        for (function, (longest, shortest)) in &self.counts {
            left[*function].pass(*longest, *shortest);
        }
    }
}
