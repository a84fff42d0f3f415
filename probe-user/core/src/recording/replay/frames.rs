//! Compares the longest calls of a function with typical ones, by what ran inside them.

use super::calls;
use super::count::FirstPass;
use super::inside::inside;
use super::lens::Lens;
use super::select::{CallReader, each_part};
use super::slowest::{SlowCall, Slowest};
use crate::recording::{ChunkEntry, ReadAt, Recording};
use crate::report::{CallReport, FramePart, FrameReport, FramesAsked, FramesReport};
use crate::units::Nanos;
use std::collections::BTreeMap;

/// Frames on either side of the comparison, at most. Of fewer frames, it is a third.
const COMPARED: u64 = 10;

/// What one pass over all calls finds.
struct Found {
    worst: Slowest,
    /// Frames by their distance from the median; the order of `SlowCall` makes it exact.
    typical: BTreeMap<(u64, SlowCall), ()>,
    frames: u64,
    over: u64,
}

/// Returns the frames of a report. `timed` is the number of the function's timed calls in it, and
/// `median` their median.
pub(crate) fn frames<R: ReadAt>(
    recording: &Recording<R>,
    lens: &Lens<'_>,
    chunks: &[ChunkEntry],
    counted: &FirstPass,
    asked: FramesAsked,
    (timed, median): (u64, u64),
) -> FramesReport {
    let compared = (timed / 3).clamp(1, COMPARED) as usize;
    let found = find(recording, lens, chunks, counted, asked, median, compared);
    let (frames, over) = (found.frames, found.over);
    let worst = found.worst.into_sorted();
    let typical: Vec<SlowCall> = found.typical.into_keys().map(|(_, call)| call).collect();
    let of = |calls: &[SlowCall]| {
        let inside = inside(recording, lens, chunks, counted, calls);
        calls::reports(recording, lens, calls, &inside)
    };
    let (worst, typical) = (of(&worst), of(&typical));
    let mut parts = BTreeMap::new();
    add(&mut parts, &typical, |part| (&mut part.typical_calls, &mut part.typical_self_ns));
    add(&mut parts, &worst, |part| (&mut part.worst_calls, &mut part.worst_self_ns));
    let mut report = FramesReport {
        function: asked.function.index(),
        frames,
        budget_ns: asked.budget,
        over_budget: asked.budget.map(|_| over),
        typical_frames: typical.len() as u64,
        worst: Vec::with_capacity(worst.len()),
        parts: Vec::new(),
    };
    let each = typical.len().max(1) as u64;
    let usual = |function: usize| {
        let part: Option<&FramePart> = parts.get(&function);
        part.map_or(0, |part| part.typical_self_ns.0 / each)
    };
    report.worst = worst.iter().map(|call| frame(call, usual)).collect();
    report.parts = parts.into_values().collect();
    report.parts.sort_by_key(|part| (std::cmp::Reverse(part.more_ns()), part.function));
    report
}

fn find<R: ReadAt>(
    recording: &Recording<R>,
    lens: &Lens<'_>,
    chunks: &[ChunkEntry],
    counted: &FirstPass,
    asked: FramesAsked,
    median: u64,
    compared: usize,
) -> Found {
    let new =
        || Found { worst: Slowest::new(compared), typical: BTreeMap::new(), frames: 0, over: 0 };
    let nodes = lens.paths.nodes();
    let numbered: Vec<_> = chunks.iter().enumerate().collect();
    let parts = each_part(&numbered, |entries| {
        let mut found = new();
        let mut selected = CallReader::new(recording, lens, counted);
        for &(number, entry) in entries {
            let Some(chunk) = selected.read(entry) else { continue };
            for of_thread in chunk.threads() {
                let thread = of_thread.thread;
                selected.all_calls(&chunk, of_thread, |place, call, node| {
                    let node = node.filter(|node| nodes[*node as usize].func == asked.function);
                    let node = node.filter(|_| call.timed && lens.is_in_window(call.end()));
                    if let Some(node) = node {
                        found.frames += 1;
                        let is_over = |budget: Nanos| call.duration > budget.0;
                        found.over += u64::from(asked.budget.is_some_and(is_over));
                        let call = SlowCall { call, node, thread, chunk: number, place };
                        found.worst.offer(call);
                        found.keep_typical(call, median, compared);
                    }
                });
            }
        }
        found
    });
    let mut all = new();
    for part in parts {
        all.frames += part.frames;
        all.over += part.over;
        part.worst.into_sorted().into_iter().for_each(|call| all.worst.offer(call));
        part.typical.into_keys().for_each(|(_, call)| all.keep_typical(call, median, compared));
    }
    all
}

impl Found {
    fn keep_typical(&mut self, call: SlowCall, median: u64, most: usize) {
        let distance = call.call.duration.abs_diff(median);
        let is_full = self.typical.len() >= most;
        if is_full && self.typical.last_key_value().is_some_and(|((last, _), ())| *last < distance)
        {
            return;
        }
        self.typical.insert((distance, call), ());
        if self.typical.len() > most {
            self.typical.pop_last();
        }
    }
}

/// Adds the calls and own times of each function in these frames.
fn add(
    parts: &mut BTreeMap<usize, FramePart>,
    frames: &[CallReport],
    side: impl Fn(&mut FramePart) -> (&mut u64, &mut Nanos),
) {
    for (function, calls, own) in frames.iter().flat_map(functions_in) {
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

/// Returns each function of a frame with its calls and own time, the frame function first.
fn functions_in(frame: &CallReport) -> impl Iterator<Item = (usize, u64, Nanos)> {
    let inside = frame.inside.iter().map(|row| (row.function, row.calls, row.self_ns));
    std::iter::once((frame.function, 1, frame.self_ns)).chain(inside)
}

/// Describes a frame, with the function that took the most beyond what is usual.
fn frame(call: &CallReport, usual: impl Fn(usize) -> u64) -> FrameReport {
    let mut own = BTreeMap::<usize, Nanos>::new();
    for (function, _, time) in functions_in(call) {
        let sum = own.entry(function).or_default();
        *sum = sum.saturating_add(time);
    }
    let beyond = |(function, time): &(usize, Nanos)| {
        (i128::from(time.0) - i128::from(usual(*function)), std::cmp::Reverse(*function))
    };
    let (function, self_ns) =
        own.into_iter().max_by_key(beyond).unwrap_or((call.function, call.self_ns));
    FrameReport {
        start_ns: call.start_ns,
        duration_ns: call.duration_ns,
        pid: call.pid,
        tid: call.tid,
        thread: call.thread.clone(),
        function,
        self_ns,
        typical_self_ns: Nanos(usual(function)),
    }
}
