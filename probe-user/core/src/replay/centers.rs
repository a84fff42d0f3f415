//! The third pass: unions over all threads, of all calls and of those in each function's center.

use super::count::{Counted, Crossed};
use super::lens::Lens;
use super::select::{Selected, each_part};
use super::spans::CallKey;
use crate::rank::Keep;
use crate::record::{ChunkEntry, ReadAt, Recording};
use crate::spool::Call;
use crate::unions::Unions;
use rayon::prelude::*;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashSet};

/// What a chunk has of calls that are as long as the longest or the shortest of their function's
/// center, of which only some are in it: the latest to end are cut, and kept.
#[derive(Default)]
struct AtEdges {
    /// By function, where there are any: as long as the longest, and as the shortest.
    counts: BTreeMap<usize, (u64, u64)>,
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
            let mut all = Unions::default();
            let mut selected = Selected::new(recording, lens, counted);
            for (entry, edges) in chunks.iter().zip(edges).rev() {
                all.add(&of_chunk(&mut selected, lens, entry, &keep, &kept));
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
        let mut of_chunk = |entry: &ChunkEntry| {
            let mut edges = AtEdges::default();
            let Some(chunk) = selected.read(entry) else { return edges };
            let mut each = |see: &mut dyn FnMut(Order, Call, usize, (u64, u64))| {
                for (number, thread) in chunk.threads().iter().enumerate() {
                    let mut place = 0;
                    selected.calls(&chunk, thread, |call, node| {
                        let function = nodes[node as usize].func.index();
                        let (longest, shortest) = keep[function].edges(call.duration);
                        place += 1;
                        if call.timed && (longest || shortest) {
                            let counts = (u64::from(longest), u64::from(shortest));
                            see((Reverse(call.end()), number, place), call, function, counts);
                        }
                    });
                }
            };
            let mut crossing = Vec::new();
            each(&mut |order, call, function, (longest, shortest)| {
                let counts = edges.counts.entry(function).or_default();
                (counts.0, counts.1) = (counts.0 + longest, counts.1 + shortest);
                if call.start < chunk.from.0 {
                    crossing.push((order, call, function));
                }
            });
            // Few, if any, are as long as an edge and cross one.
            for (of, call, function) in crossing {
                let mut before = (0, 0);
                each(&mut |order, _, other, (longest, shortest)| {
                    if other == function && order < of {
                        before = (before.0 + longest, before.1 + shortest);
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
) -> Unions {
    let Some(chunk) = selected.read(entry) else { return Unions::default() };
    let clipped = lens.clip(chunk.from, chunk.to);
    if clipped.is_empty() {
        return Unions::default();
    }
    let mut calls: Vec<Vec<Call>> = Vec::with_capacity(chunk.threads().len());
    for thread in chunk.threads() {
        let mut of_thread = Vec::with_capacity(chunk.calls(thread).len());
        selected.calls(&chunk, thread, |call, node| of_thread.push(Call { node, ..call }));
        calls.push(of_thread);
    }
    let calls = calls.iter().map(|calls| calls.iter().copied());
    selected.unions(&chunk, calls, clipped, keep, kept)
}
