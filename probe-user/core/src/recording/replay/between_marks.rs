//! The report of frames between marks: how long they are, and what ran in the longest and in typical ones,
//! in all threads of their process.
//!
//! A call that began before a frame and goes on behind it, such as a main loop, is not inside. Of a call
//! over an edge of the frame, the part in it counts.

use super::count::FirstPass;
use super::frame_marks::{MarkedFrame, TooManyMarks, marked_frames};
use super::frames::{Content, compare, compared};
use super::lens::Lens;
use super::select::{CallReader, each_part};
use crate::calls::paths::Node;
use crate::recording::{Chunk, ChunkEntry, Recording, ThreadCalls};
use crate::report::{FramesAsked, FramesReport, MarkedFramesReport};
use crate::stats::rank::nearest_rank;
use crate::units::{FuncId, Nanos, ThreadId};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Sums that one worker keeps, by frame, thread and path: 48 MiB.
const MOST_SUMS: usize = 1 << 20;

/// Calls of a path in a thread within a frame, and the part of their time that is in it.
#[derive(Clone, Copy, Default)]
struct Sum {
    calls: u64,
    total: u64,
}

/// The calls within one frame.
#[derive(Default)]
struct Sums {
    /// By thread and the query's node.
    each: HashMap<(ThreadId, u32), Sum>,
    /// The number of calls for which there was no room.
    left_out: u64,
}

/// Returns the frames of a report, if there are marks of them.
pub(super) fn between_marks(
    recording: &Recording,
    lens: &Lens<'_>,
    chunks: &[ChunkEntry],
    counted: &FirstPass,
    asked: FramesAsked,
) -> Result<Option<FramesReport>, TooManyMarks> {
    let found = marked_frames(recording, lens, chunks, asked.function)?;
    if found.each.is_empty() && found.unknown == 0 {
        return Ok(None);
    }
    let mut durations: Vec<u64> = found.each.iter().map(MarkedFrame::duration).collect();
    durations.sort_unstable();
    let count = durations.len() as u64;
    let at = |permille| durations.get(nearest_rank(count, permille) as usize).copied();
    let is_in_time = |budget: Nanos| durations.partition_point(|duration| *duration <= budget.0);
    let over = asked.budget.map_or(0, |budget| count - is_in_time(budget) as u64);
    let (worst, typical) = chosen(&found.each, at(500).unwrap_or_default());
    let longest = worst.len();
    let both: Vec<&MarkedFrame> = worst.into_iter().chain(typical).collect();
    let sums = sums(recording, lens, chunks, counted, &both, asked.function);
    let left_out = sums.iter().map(|sums| sums.left_out).fold(0, u64::saturating_add);
    let each = both.iter().zip(&sums);
    let mut worst: Vec<Content> =
        each.map(|(frame, sums)| content(recording, lens, asked.function, frame, sums)).collect();
    let typical = worst.split_off(longest);
    let sum: u128 = durations.iter().map(|duration| u128::from(*duration)).sum();
    let mean = (count > 0).then(|| Nanos((sum / u128::from(count.max(1))) as u64));
    let marks = MarkedFramesReport {
        mean_ns: mean,
        p50_ns: at(500).map(Nanos),
        p99_ns: at(990).map(Nanos),
        max_ns: durations.last().copied().map(Nanos),
        unknown: found.unknown,
        left_out_calls: left_out,
    };
    let report = compare(asked, (count, over), &worst, &typical);
    Ok(Some(FramesReport { marks: Some(marks), ..report }))
}

/// Returns the longest frames, the longest first, and as many others that are nearest to the median.
fn chosen(frames: &[MarkedFrame], median: u64) -> (Vec<&MarkedFrame>, Vec<&MarkedFrame>) {
    let most = compared(frames.len() as u64);
    let mut worst: Vec<&MarkedFrame> = frames.iter().collect();
    // Frames come in the order of their starts.
    worst.sort_by_key(|frame| Reverse(frame.duration()));
    let mut typical = worst.split_off(most.min(worst.len()));
    typical.sort_by_key(|frame| (frame.duration().abs_diff(median), frame.start));
    typical.truncate(most);
    (worst, typical)
}

/// Sums up the calls within each of these frames, without the marks themselves.
fn sums(
    recording: &Recording,
    lens: &Lens<'_>,
    chunks: &[ChunkEntry],
    counted: &FirstPass,
    frames: &[&MarkedFrame],
    mark: FuncId,
) -> Vec<Sums> {
    let room = MOST_SUMS / frames.len().max(1);
    let new = || frames.iter().map(|_| Sums::default()).collect::<Vec<_>>();
    let has_some = |number: &usize| frames.iter().any(|frame| frame.chunks.contains(number));
    let numbered: Vec<_> = chunks.iter().enumerate().filter(|(nth, _)| has_some(nth)).collect();
    let parts = each_part(&numbered, |entries| {
        let mut sums = new();
        let mut selected = CallReader::new(recording, lens, counted);
        for &(number, entry) in entries {
            // There are no frames in chunks that cannot be read.
            let Some(chunk) = selected.read(entry) else { continue };
            for thread in chunk.threads() {
                let pid = recording.thread(thread.thread).map(|thread| thread.pid);
                let is_in =
                    |frame: &MarkedFrame| Some(frame.pid) == pid && frame.chunks.contains(&number);
                let asked = frames.iter().copied().zip(&mut sums);
                let frames: Vec<_> = asked.filter(|(frame, _)| is_in(frame)).collect();
                if !frames.is_empty() {
                    let mut asked = Asked { frames, mark, room };
                    asked.of_thread(&mut selected, counted, (number, &chunk), thread);
                }
            }
        }
        sums
    });
    let mut all = new();
    for part in parts {
        for (all, part) in all.iter_mut().zip(part) {
            all.left_out = all.left_out.saturating_add(part.left_out);
            part.each.into_iter().for_each(|(place, sum)| all.add(place, sum, room));
        }
    }
    all
}

/// The frames whose calls are summed up in a thread's part of a chunk.
struct Asked<'a> {
    frames: Vec<(&'a MarkedFrame, &'a mut Sums)>,
    mark: FuncId,
    room: usize,
}

impl Asked<'_> {
    fn of_thread(
        &mut self,
        selected: &mut CallReader<'_>,
        counted: &FirstPass,
        (number, chunk): (usize, &Chunk),
        thread: &ThreadCalls,
    ) {
        let nodes = selected.lens.paths.nodes();
        let mut add = |is_asked: &dyn Fn(&MarkedFrame) -> bool, node: u32, start: u64, end: u64| {
            if nodes[node as usize].func == self.mark {
                return;
            }
            for (frame, sums) in self.frames.iter_mut().filter(|(frame, _)| is_asked(frame)) {
                if let Some((total, ends)) = frame.share(start, end) {
                    let more = Sum { calls: ends.into(), total };
                    sums.add((thread.thread, node), more, self.room);
                }
            }
        };
        selected.all_calls(chunk, thread, |_, call, node| {
            if let Some(node) = node {
                add(&|_| true, node, call.start, call.end());
            }
        });
        // Calls that are in later chunks, behind the frame's last one.
        for (key, node) in selected.open(thread) {
            let start = key.1;
            let ended = counted.crossing.get(&key);
            let end = ended.map_or(u64::MAX, |call| start.saturating_add(call.duration));
            add(&|frame| *frame.chunks.end() == number, node, start, end);
        }
    }
}

impl Sums {
    fn add(&mut self, place: (ThreadId, u32), more: Sum, room: usize) {
        if more.calls == 0 && more.total == 0 {
            return;
        }
        let is_full = self.each.len() >= room;
        if is_full && !self.each.contains_key(&place) {
            self.left_out = self.left_out.saturating_add(more.calls.max(1));
            return;
        }
        let sum = self.each.entry(place).or_default();
        sum.calls = sum.calls.saturating_add(more.calls);
        sum.total = sum.total.saturating_add(more.total);
    }

    /// Returns the own times. A call around these is either inside, too, or around the whole frame: then
    /// no call of its path is inside in this thread.
    fn own(&self, nodes: &[Node]) -> HashMap<(ThreadId, u32), u64> {
        let totals = self.each.iter().map(|(place, sum)| (*place, sum.total));
        let mut own: HashMap<_, u64> = totals.collect();
        for ((thread, node), sum) in &self.each {
            if let Some(outer) = own.get_mut(&(*thread, nodes[*node as usize].parent)) {
                *outer = outer.saturating_sub(sum.total);
            }
        }
        own
    }
}

/// Returns a frame with its functions. The mark has the time in which its thread was in none of the calls.
fn content(
    recording: &Recording,
    lens: &Lens<'_>,
    mark: FuncId,
    frame: &MarkedFrame,
    sums: &Sums,
) -> Content {
    let nodes = lens.paths.nodes();
    let mut rest = frame.duration();
    let mut functions: BTreeMap<usize, (u64, u64)> = BTreeMap::new();
    for (place, own) in sums.own(nodes) {
        let (thread, node) = place;
        if thread == frame.thread {
            rest = rest.saturating_sub(own);
        }
        let calls = sums.each.get(&place).map_or(0, |sum| sum.calls);
        let of = functions.entry(nodes[node as usize].func.index()).or_default();
        *of = (of.0.saturating_add(calls), of.1.saturating_add(own));
    }
    let inside = functions.into_iter().map(|(of, (calls, own))| (of, calls, Nanos(own)));
    let thread = recording.thread(frame.thread);
    Content {
        start: frame.start,
        duration: frame.duration(),
        pid: thread.map(|thread| thread.pid),
        tid: thread.map(|thread| thread.tid),
        thread: thread.map(|thread| thread.name.clone()),
        functions: std::iter::once((mark.index(), 1, Nanos(rest))).chain(inside).collect(),
    }
}
