//! The third pass: unions over all threads, of all calls and of those in each function's center.

use super::count::{Counted, Crossed};
use super::lens::Lens;
use super::select::{Selected, each_part};
use super::spans::CallKey;
use crate::paths::Node;
use crate::rank::Keep;
use crate::record::{Chunk, ChunkEntry, ReadAt, Recording};
use crate::spool::Call;
use crate::unions::Unions;
use rayon::prelude::*;
use std::cmp::Reverse;
use std::collections::HashSet;

/// What a chunk has of calls that are as long as the longest or the shortest of their function's
/// center, of which only some are in it: the latest to end are cut, and kept.
#[derive(Default)]
struct AtEdges {
    /// By function, where there are any: as long as the longest, and as the shortest.
    counts: Vec<(usize, (u64, u64))>,
    /// Such calls that began in an earlier chunk: function, and how many come before it.
    crossing: Vec<(CallKey, usize, (u64, u64))>,
}

impl AtEdges {
    /// What is left to cut and to keep for the chunks before this one.
    fn pass(&self, keep: &mut [Keep]) {
        for (function, (longest, shortest)) in &self.counts {
            keep[*function].pass(*longest, *shortest);
        }
    }
}

/// In which order `unions` comes by calls: by their ends, the latest first, then by thread and place.
type Order = (Reverse<u64>, usize, usize);

pub(crate) fn unions_of<R: ReadAt>(
    recording: &Recording<R>,
    lens: &Lens<'_>,
    chunks: &[ChunkEntry],
    counted: &Counted,
    keep: &[Keep],
) -> Unions {
    let edges = at_edges(recording, lens, chunks, counted, keep);
    let size = chunks.len().div_ceil(rayon::current_num_threads().max(1)).max(1);
    let (kept, keeps) = kept_crossing(recording, counted, &edges, keep, size);
    let parts: Vec<Unions> = chunks
        .par_chunks(size)
        .zip(edges.par_chunks(size))
        .zip(keeps)
        .map(|((chunks, edges), mut keep)| {
            let (mut all, mut calls) = (Unions::default(), Vec::new());
            let mut selected = Selected::new(recording, lens, counted);
            for (entry, edges) in chunks.iter().zip(edges).rev() {
                all.add(&of_chunk(&mut selected, lens, entry, &keep, &kept, &mut calls));
                edges.pass(&mut keep);
            }
            all
        })
        .collect();
    parts.iter().fold(Unions::default(), |mut all, part| {
        all.add(part);
        all
    })
}

fn at_edges<R: ReadAt>(
    recording: &Recording<R>,
    lens: &Lens<'_>,
    chunks: &[ChunkEntry],
    counted: &Counted,
    keep: &[Keep],
) -> Vec<AtEdges> {
    let nodes = lens.paths.nodes();
    let parts = each_part(chunks, |entries| {
        let mut selected = Selected::new(recording, lens, counted);
        let mut counts = vec![(0, 0); keep.len()];
        let mut of_chunk = |entry: &ChunkEntry| {
            let mut edges = AtEdges::default();
            let Some(chunk) = selected.read(entry) else { return edges };
            let mut crossing = Vec::new();
            each_at_edges(&mut selected, &chunk, nodes, keep, |order, call, function, at| {
                let counts = &mut counts[function];
                (counts.0, counts.1) = (counts.0 + at.0, counts.1 + at.1);
                if call.start < chunk.from.0 {
                    crossing.push((order, call, function));
                }
            });
            let found = counts.iter().enumerate().filter(|(_, counts)| **counts != (0, 0));
            edges.counts = found.map(|(function, counts)| (function, *counts)).collect();
            edges.counts.iter().for_each(|(function, _)| counts[*function] = (0, 0));
            // Few, if any, are as long as an edge and cross one.
            for (of, call, function) in crossing {
                let mut before = (0, 0);
                each_at_edges(&mut selected, &chunk, nodes, keep, |order, _, other, at| {
                    if other == function && order < of {
                        before = (before.0 + at.0, before.1 + at.1);
                    }
                });
                let thread = chunk.threads()[of.1].thread;
                edges.crossing.push(((thread, call.start, call.node), function, before));
            }
            edges
        };
        entries.iter().map(&mut of_chunk).collect::<Vec<_>>()
    });
    parts.into_iter().flatten().collect()
}

/// Shows the calls of a chunk that are as long as an edge of their function's center: with the
/// function, and whether that is the longest and the shortest of the center (1) or not (0).
#[inline]
fn each_at_edges<R: ReadAt>(
    selected: &mut Selected<'_, R>,
    chunk: &Chunk,
    nodes: &[Node],
    keep: &[Keep],
    mut see: impl FnMut(Order, Call, usize, (u64, u64)),
) {
    for (number, thread) in chunk.threads().iter().enumerate() {
        let mut place = 0;
        selected.calls(chunk, thread, |call, node| {
            let function = nodes[node as usize].func.index();
            let (longest, shortest) = keep[function].edges(call.duration);
            place += 1;
            if call.timed && (longest || shortest) {
                let at = (u64::from(longest), u64::from(shortest));
                see((Reverse(call.end()), number, place), call, function, at);
            }
        });
    }
}

/// The calls that cross the edge of a chunk and are in their function's center; and for each part of
/// so many chunks, what is left to cut and to keep at its end. The last chunks come first.
fn kept_crossing<R: ReadAt>(
    recording: &Recording<R>,
    counted: &Counted,
    edges: &[AtEdges],
    keep: &[Keep],
    size: usize,
) -> (HashSet<CallKey>, Vec<Vec<Keep>>) {
    let mut kept: HashSet<CallKey> = counted
        .crossing
        .iter()
        .filter(|((_, _, recorded), Crossed { duration, timed, .. })| {
            let mut keep = keep[recording.nodes()[*recorded as usize].func.index()];
            *timed && keep.edges(*duration) == (false, false) && keep.keeps(*duration)
        })
        .map(|(key, _)| *key)
        .collect();
    let (mut left, mut keeps) = (keep.to_vec(), Vec::new());
    for part in edges.chunks(size).rev() {
        keeps.push(left.clone());
        for edges in part.iter().rev() {
            for (key, function, (longest, shortest)) in &edges.crossing {
                let mut keep = left[*function];
                keep.pass(*longest, *shortest);
                if counted.crossing.get(key).is_some_and(|call| keep.keeps(call.duration)) {
                    kept.insert(*key);
                }
            }
            edges.pass(&mut left);
        }
    }
    keeps.reverse();
    (kept, keeps)
}

fn of_chunk<R: ReadAt>(
    selected: &mut Selected<'_, R>,
    lens: &Lens<'_>,
    entry: &ChunkEntry,
    keep: &[Keep],
    kept: &HashSet<CallKey>,
    calls: &mut Vec<Call>,
) -> Unions {
    let Some(chunk) = selected.read(entry) else { return Unions::default() };
    let clipped = lens.clip(chunk.from, chunk.to);
    if clipped.is_empty() {
        return Unions::default();
    }
    calls.clear();
    let of_threads = chunk.threads().iter().map(|thread| {
        let first = calls.len();
        selected.calls(&chunk, thread, |call, node| calls.push(Call { node, ..call }));
        first..calls.len()
    });
    let of_threads: Vec<_> = of_threads.collect();
    let calls = of_threads.into_iter().map(|of_thread| calls[of_thread].iter().copied());
    selected.unions(&chunk, calls, clipped, keep, kept)
}
