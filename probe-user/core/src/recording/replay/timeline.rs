//! The timeline: for some threads, the time that each path was on the stack in each slice of time.
//!
//! The number of slices is that of a screen, which bounds memory to slices times paths. Cells add
//! up over chunks. The innermost function follows from them: a path's own time is its time minus
//! that of the paths one call longer.

use super::count::FirstPass;
use super::lens::Lens;
use super::select::{CallReader, each_part};
use crate::calls::paths::{Node, ROOT};
use crate::hash::{IntMap, pair};
use crate::recording::{ChunkEntry, Recording};
use crate::report::{LaneReport, TimelineCell, TimelineReport};
use crate::stats::slices::{SLICE_BITS, Slices};
use crate::units::{Nanos, ThreadId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

const MAX_LANES: usize = 1 << SLICE_BITS;

/// The lanes of some chunks.
struct Lanes<'a> {
    slices: Slices,
    nodes: &'a [Node],
    /// Time on the stack by node, lane and slice.
    cells: IntMap<u64>,
    /// The number and total time of calls shorter than a slice, by lane.
    short: Vec<(u64, u64)>,
}

impl<'a> Lanes<'a> {
    fn new(slices: Slices, nodes: &'a [Node], lanes: usize) -> Self {
        Self { slices, nodes, cells: IntMap::default(), short: vec![(0, 0); lanes] }
    }

    #[inline]
    fn add(&mut self, lane: usize, node: u32, start: u64, end: u64) {
        // Such a call's place in the tree is not known.
        if self.nodes[node as usize].other {
            return;
        }
        let (first, last) = (self.slices.of(start.saturating_add(1)), self.slices.of(end));
        for slice in first..=last {
            let from = start.max(self.slices.edge(slice));
            let within = end.min(self.slices.edge(slice + 1)).saturating_sub(from);
            if within > 0 {
                let key = pair(node, (lane << SLICE_BITS | slice) as u32);
                let sum = self.cells.entry(key).or_default();
                *sum = sum.saturating_add(within);
            }
        }
    }

    fn add_ended(&mut self, lane: usize, node: u32, start: u64, end: u64) {
        self.add(lane, node, start, end);
        let duration = end.saturating_sub(start);
        if duration < self.slices.shortest() {
            let short = &mut self.short[lane];
            *short = (short.0 + 1, short.1.saturating_add(duration));
        }
    }

    fn merge(&mut self, other: Self) {
        for (key, time) in other.cells {
            let sum = self.cells.entry(key).or_default();
            *sum = sum.saturating_add(time);
        }
        for (mine, other) in self.short.iter_mut().zip(other.short) {
            *mine = (mine.0 + other.0, mine.1.saturating_add(other.1));
        }
    }
}

/// Makes the timeline of the `lanes` threads with the most calls.
pub(crate) fn timeline(
    recording: &Recording,
    lens: &Lens<'_>,
    chunks: &[ChunkEntry],
    counted: &FirstPass,
    slices: Slices,
    lanes: usize,
) -> TimelineReport {
    let (threads, left_out) = threads(recording, counted, lanes);
    let places: HashMap<ThreadId, usize> =
        threads.iter().enumerate().map(|(lane, thread)| (*thread, lane)).collect();
    let new = || Lanes::new(slices, lens.paths.nodes(), threads.len());
    let parts = each_part(chunks, |entries| {
        let mut part = new();
        let mut selected = CallReader::new(recording, lens, counted);
        for entry in entries {
            let Some(chunk) = selected.read(entry) else { continue };
            for thread in chunk.threads() {
                let Some(&lane) = places.get(&thread.thread) else { continue };
                selected.calls(&chunk, thread, |call, node| {
                    part.add_ended(lane, node, call.start, call.end());
                });
            }
        }
        part
    });
    let mut all = parts.into_iter().fold(new(), |mut all, part| {
        all.merge(part);
        all
    });
    for ((thread, start, _), node) in &counted.open {
        if let Some(&lane) = places.get(thread) {
            all.add(lane, *node, *start, slices.edge(slices.len()));
        }
    }
    let lanes = lane_reports(recording, all, &threads);
    TimelineReport { slice_edges_ns: slices.edges(), lanes, lanes_left_out: left_out }
}

/// Returns the threads with a lane, in the order of their first events, and the number of threads
/// without one.
fn threads(recording: &Recording, counted: &FirstPass, lanes: usize) -> (Vec<ThreadId>, u64) {
    let all = counted
        .counts
        .threads
        .iter()
        .filter(|(id, thread)| thread.calls > 0 && recording.thread(**id).is_some());
    let mut all: Vec<_> = all.collect();
    all.sort_by_key(|(id, thread)| (Reverse(thread.calls), **id));
    let left_out = all.len().saturating_sub(lanes.min(MAX_LANES));
    all.truncate(lanes.min(MAX_LANES));
    all.sort_by_key(|(id, thread)| (thread.first, **id));
    (all.into_iter().map(|(id, _)| *id).collect(), left_out as u64)
}

fn lane_reports(recording: &Recording, lanes: Lanes<'_>, threads: &[ThreadId]) -> Vec<LaneReport> {
    let Lanes { nodes, cells, short, slices } = lanes;
    let mut by_lane: Vec<BTreeMap<(usize, u32), u64>> = vec![BTreeMap::new(); threads.len()];
    for (key, time) in cells {
        let (node, place) = ((key >> 32) as u32, key as u32 as usize);
        let (lane, slice) = (place >> SLICE_BITS, place & ((1 << SLICE_BITS) - 1));
        // Folded recursion puts a path on the stack several times over.
        let length = slices.edge(slice + 1) - slices.edge(slice);
        by_lane[lane].insert((slice, node), time.min(length));
    }
    let reports = threads.iter().zip(by_lane).zip(short).map(|((thread, cells), short)| {
        let record = recording.thread(*thread);
        LaneReport {
            pid: record.map_or_else(Default::default, |record| record.pid),
            tid: record.map_or_else(Default::default, |record| record.tid),
            name: record.map_or_else(|| "".into(), |record| record.name.clone()),
            short_calls: short.0,
            short_ns: Nanos(short.1),
            innermost: dominant(&innermost(&cells, nodes), nodes),
            depths: depths(&cells, nodes),
        }
    });
    reports.collect()
}

type Cells = BTreeMap<(usize, u32), u64>;

fn innermost(cells: &Cells, nodes: &[Node]) -> Cells {
    let mut own = cells.clone();
    for (&(slice, node), time) in cells {
        let parent = nodes[node as usize].parent;
        if let Some(above) = own.get_mut(&(slice, parent)).filter(|_| parent != ROOT) {
            *above = above.saturating_sub(*time);
        }
    }
    own.retain(|_, time| *time > 0);
    own
}

fn depths(cells: &Cells, nodes: &[Node]) -> Vec<Vec<TimelineCell>> {
    let deepest = cells.keys().map(|(_, node)| nodes[*node as usize].depth).max().unwrap_or(0);
    let mut of_depth = vec![Cells::new(); deepest as usize];
    for (&key, &time) in cells {
        if let Some(of) = of_depth.get_mut((nodes[key.1 as usize].depth as usize).wrapping_sub(1)) {
            of.insert(key, time);
        }
    }
    of_depth.iter().map(|cells| dominant(cells, nodes)).collect()
}

/// Returns the function with the most time in each slice; among equals, the first.
fn dominant(cells: &Cells, nodes: &[Node]) -> Vec<TimelineCell> {
    let cells: Vec<((usize, u32), u64)> = cells.iter().map(|(key, time)| (*key, *time)).collect();
    let slices = cells.chunk_by(|((a, _), _), ((b, _), _)| a == b);
    let cell = |slice: &[((usize, u32), u64)]| {
        let mut by_function = BTreeMap::<usize, u64>::new();
        for ((_, node), time) in slice {
            let sum = by_function.entry(nodes[*node as usize].func.index()).or_default();
            *sum = sum.saturating_add(*time);
        }
        let busy = by_function.values().fold(0_u64, |sum, time| sum.saturating_add(*time));
        let most =
            by_function.into_iter().max_by_key(|(function, time)| (*time, Reverse(*function)));
        let (function, time) = most?;
        Some(TimelineCell {
            slice: slice[0].0.0,
            function,
            function_ns: Nanos(time),
            busy_ns: Nanos(busy),
        })
    };
    slices.filter_map(cell).collect()
}
