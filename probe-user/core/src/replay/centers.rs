//! The third pass: unions over all threads, of all calls and of those in each function's center.

use super::count::Counted;
use super::lens::Lens;
use super::select::{Selected, each_part};
use super::spans::CallKey;
use crate::rank::Keep;
use crate::record::{ChunkEntry, ReadAt, Recording};
use crate::spool::Call;
use crate::unions::{ThreadCalls, Unions, Window, unions};
use rayon::prelude::*;
use std::cmp::Reverse;
use std::collections::HashSet;

/// What a chunk has of calls that are as long as the longest or the shortest of their function's
/// center, of which only some are in it: the latest to end are cut, and kept.
struct AtEdges {
    /// By function: as long as the longest, and as the shortest.
    counts: Vec<(u64, u64)>,
    /// Such calls that began in an earlier chunk: function, and how many come before it.
    crossing: Vec<(CallKey, usize, (u64, u64))>,
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
    let keeps = keep_by_chunk(&edges, keep);
    let kept = kept_crossing(recording, counted, &edges, &keeps, keep);
    let numbered: Vec<_> = chunks.iter().zip(&keeps).collect();
    let parts = rayon::current_num_threads().max(1);
    let parts: Vec<Unions> = numbered
        .par_chunks(numbered.len().div_ceil(parts).max(1))
        .map(|entries| {
            let mut all = Unions::default();
            let mut selected = Selected::new(recording, lens, counted);
            for (entry, keep) in entries {
                all.add(&of_chunk(&mut selected, lens, entry, keep, &kept));
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
            let mut edges = AtEdges { counts: vec![(0, 0); keep.len()], crossing: Vec::new() };
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
                let counts = &mut edges.counts[function];
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

/// What is left to cut and to keep for each chunk: the last ones come first.
fn keep_by_chunk(edges: &[AtEdges], keep: &[Keep]) -> Vec<Vec<Keep>> {
    let mut left = keep.to_vec();
    let mut keeps: Vec<_> = edges
        .iter()
        .rev()
        .map(|edges| {
            let here = left.clone();
            left.iter_mut().zip(&edges.counts).for_each(|(keep, (longest, shortest))| {
                keep.pass(*longest, *shortest);
            });
            here
        })
        .collect();
    keeps.reverse();
    keeps
}

/// The calls that cross the edge of a chunk and are in their function's center.
fn kept_crossing<R: ReadAt>(
    recording: &Recording<R>,
    counted: &Counted,
    edges: &[AtEdges],
    keeps: &[Vec<Keep>],
    keep: &[Keep],
) -> HashSet<CallKey> {
    let mut kept: HashSet<CallKey> = counted
        .crossing
        .iter()
        .filter(|((_, _, recorded), (duration, timed))| {
            let mut keep = keep[recording.nodes()[*recorded as usize].func.index()];
            *timed && keep.edges(*duration) == (false, false) && keep.keeps(*duration)
        })
        .map(|(key, _)| *key)
        .collect();
    for (edges, keeps) in edges.iter().zip(keeps) {
        for (key, function, (longest, shortest)) in &edges.crossing {
            let mut keep = keeps[*function];
            keep.pass(*longest, *shortest);
            if counted.crossing.get(key).is_some_and(|(duration, _)| keep.keeps(*duration)) {
                kept.insert(*key);
            }
        }
    }
    kept
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
    let threads = chunk.threads().iter().zip(&calls).map(|(thread, calls)| ThreadCalls {
        finished: calls.iter().copied(),
        open: selected.open(&chunk, thread, kept),
    });
    let window = Window { start: clipped.start, end: clipped.end };
    unions(window, threads.collect(), lens.paths.nodes(), keep)
}
