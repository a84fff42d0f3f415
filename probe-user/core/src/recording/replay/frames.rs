//! Compares the longest frames with typical ones, by what ran inside them. Here frames are the calls of a
//! function; `between_marks` has the others.

use super::calls;
use super::count::FirstPass;
use super::inside::inside;
use super::lens::Lens;
use super::select::{CallReader, each_part};
use super::slowest::{SlowCall, Slowest, each_timed};
use crate::calls::paths::{Node, functions_on};
use crate::recording::{ChunkEntry, Recording};
use crate::report::{CallReport, FramePart, FrameReport, FramesAsked, FramesReport};
use crate::units::{FuncId, Nanos, Pid, Tid};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// Frames on either side of the comparison, at most. Of fewer frames, it is a third.
const COMPARED: u64 = 10;

/// The findings of one pass over all calls.
struct Found {
    worst: Slowest,
    /// Frames by their distance from the median; the order of `SlowCall` makes it exact.
    typical: BTreeSet<(u64, SlowCall)>,
    frames: u64,
    over: u64,
}

/// A frame and what ran in it.
pub(super) struct Content {
    pub(super) start: u64,
    pub(super) duration: u64,
    pub(super) pid: Option<Pid>,
    pub(super) tid: Option<Tid>,
    pub(super) thread: Option<Arc<str>>,
    /// Functions with their calls and own time, the frame function first.
    pub(super) functions: Vec<(usize, u64, Nanos)>,
}

/// Returns how many of so many frames are compared with others.
pub(super) fn compared(frames: u64) -> usize {
    (frames / 3).clamp(1, COMPARED) as usize
}

/// Returns the frames of a report, if there are any. `timed` is the number of the function's timed
/// calls in it, and `median` their median.
pub(crate) fn frames(
    recording: &Recording,
    lens: &Lens<'_>,
    chunks: &[ChunkEntry],
    counted: &FirstPass,
    asked: FramesAsked,
    (timed, median): (u64, u64),
) -> Option<FramesReport> {
    let most = compared(timed);
    let found = find(recording, lens, chunks, counted, asked, median, most);
    if found.frames == 0 {
        return None;
    }
    // Calls within others are no frames.
    let compared = compared(found.frames);
    let (frames, over) = (found.frames, found.over);
    let mut both = found.worst.into_sorted();
    both.truncate(compared);
    let longest = both.len();
    let typical = found.typical.into_iter().map(|(_, frame)| frame);
    let typical = typical.filter(|frame| !both.contains(frame));
    let typical: Vec<SlowCall> = typical.take(compared).collect();
    both.extend(typical);
    let inside = inside(recording, lens, chunks, counted, &both);
    let calls = calls::reports(recording, lens, &both, &inside);
    let mut worst: Vec<Content> = calls.into_iter().map(Content::of_call).collect();
    let typical = worst.split_off(longest);
    Some(compare(asked, (frames, over), &worst, &typical))
}

/// Makes the report of so many frames, of which some are over the budget.
pub(super) fn compare(
    asked: FramesAsked,
    (frames, over): (u64, u64),
    worst: &[Content],
    typical: &[Content],
) -> FramesReport {
    let mut parts = BTreeMap::new();
    add(&mut parts, typical, |part| (&mut part.typical_calls, &mut part.typical_self_ns));
    add(&mut parts, worst, |part| (&mut part.worst_calls, &mut part.worst_self_ns));
    let each = typical.len().max(1) as u64;
    let usual = |function: usize| {
        let part: Option<&FramePart> = parts.get(&function);
        part.map_or(0, |part| part.typical_self_ns.0 / each)
    };
    let told = worst.iter().map(|content| frame(asked.function.index(), content, usual)).collect();
    let mut parts: Vec<FramePart> = parts.values().copied().collect();
    parts.sort_by_key(|part| (std::cmp::Reverse(part.more_ns()), part.function));
    FramesReport {
        function: asked.function.index(),
        frames,
        budget_ns: asked.budget,
        over_budget: asked.budget.map(|_| over),
        typical_frames: typical.len() as u64,
        worst: told,
        parts,
        marks: None,
    }
}

fn find(
    recording: &Recording,
    lens: &Lens<'_>,
    chunks: &[ChunkEntry],
    counted: &FirstPass,
    asked: FramesAsked,
    median: u64,
    compared: usize,
) -> Found {
    let new =
        || Found { worst: Slowest::new(compared), typical: BTreeSet::new(), frames: 0, over: 0 };
    let frames = outermost(lens.paths.nodes(), asked.function);
    // Some of them may be among the longest.
    let kept = 2 * compared;
    let numbered: Vec<_> = chunks.iter().enumerate().collect();
    let parts = each_part(&numbered, |entries| {
        let mut found = new();
        let mut selected = CallReader::new(recording, lens, counted);
        each_timed(&mut selected, entries, |frame| {
            if frames.contains(&frame.node) {
                found.frames += 1;
                let is_over = |budget: Nanos| frame.call.duration > budget.0;
                found.over += u64::from(asked.budget.is_some_and(is_over));
                found.worst.offer(frame);
                found.keep_typical(frame, median, kept);
            }
        });
        found
    });
    let mut all = new();
    for part in parts {
        all.frames += part.frames;
        all.over += part.over;
        part.worst.into_sorted().into_iter().for_each(|frame| all.worst.offer(frame));
        part.typical.into_iter().for_each(|(_, frame)| all.keep_typical(frame, median, kept));
    }
    all
}

/// Returns the nodes of a function's calls that are in no other call of it.
pub(crate) fn outermost(nodes: &[Node], function: FuncId) -> HashSet<u32> {
    let of_function = |node: &u32| nodes[*node as usize].func == function;
    let is_in_none =
        |node: &u32| !functions_on(nodes[*node as usize].parent, nodes).contains(&function);
    (0..nodes.len() as u32).filter(of_function).filter(is_in_none).collect()
}

impl Found {
    fn keep_typical(&mut self, frame: SlowCall, median: u64, most: usize) {
        let distance = frame.call.duration.abs_diff(median);
        let is_full = self.typical.len() >= most;
        if is_full && self.typical.last().is_some_and(|(last, _)| *last < distance) {
            return;
        }
        self.typical.insert((distance, frame));
        if self.typical.len() > most {
            self.typical.pop_last();
        }
    }
}

impl Content {
    fn of_call(call: CallReport) -> Self {
        let inside = call.inside.iter().map(|row| (row.function, row.calls, row.self_ns));
        Self {
            start: call.start_ns.0,
            duration: call.duration_ns.0,
            pid: call.pid,
            tid: call.tid,
            functions: std::iter::once((call.function, 1, call.self_ns)).chain(inside).collect(),
            thread: call.thread,
        }
    }
}

/// Adds the calls and own times of each function in these frames.
fn add(
    parts: &mut BTreeMap<usize, FramePart>,
    frames: &[Content],
    side: impl Fn(&mut FramePart) -> (&mut u64, &mut Nanos),
) {
    for &(function, calls, own) in frames.iter().flat_map(|frame| &frame.functions) {
        let part = parts.entry(function).or_insert(FramePart {
            function,
            typical_calls: 0,
            typical_self_ns: Nanos::ZERO,
            worst_calls: 0,
            worst_self_ns: Nanos::ZERO,
        });
        let (sum, time) = side(part);
        *sum = sum.saturating_add(calls);
        *time = time.saturating_add(own);
    }
}

/// Describes a frame, with the function that took the most beyond what is usual.
fn frame(frame_function: usize, of: &Content, usual: impl Fn(usize) -> u64) -> FrameReport {
    let mut own = BTreeMap::<usize, Nanos>::new();
    for &(function, _, time) in &of.functions {
        let sum = own.entry(function).or_default();
        *sum = sum.saturating_add(time);
    }
    let beyond = |(function, time): &(usize, Nanos)| {
        (i128::from(time.0) - i128::from(usual(*function)), std::cmp::Reverse(*function))
    };
    let most = own.into_iter().max_by_key(beyond);
    let (function, self_ns) = most.unwrap_or((frame_function, Nanos(of.duration)));
    FrameReport {
        start_ns: Nanos(of.start),
        duration_ns: Nanos(of.duration),
        pid: of.pid,
        tid: of.tid,
        thread: of.thread.clone(),
        function,
        self_ns,
        typical_self_ns: Nanos(usual(function)),
    }
}
