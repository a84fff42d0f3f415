//! Finds the frames between marks: each goes from one mark to the next of the same function in its
//! process.
//!
//! A frame that a mark may be missing from would look longer than it was. So one that comes near a
//! loss, or a stretch of time that cannot be read, is counted as unknown.

use super::clip::clip;
use super::lens::Lens;
use super::select::each_part;
use crate::ranges::Ranges;
use crate::recording::{Chunk, ChunkEntry, ChunkLoss, Recording};
use crate::units::{FuncId, Pid, ThreadId};
use std::ops::{Range, RangeInclusive};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Marks of a recording, at most: 128 MiB.
const MOST_MARKS: usize = 1 << 22;

/// How far a loss may be from the chunk that counts it, in nanoseconds. The counts are read ahead of the
/// events and behind them, within the time for which events are held.
const NEAR: u64 = 1_000_000_000;

/// The reason why there are no frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there are more than {MOST_MARKS} frame marks; choose a part of the time (--time)")]
pub(crate) struct TooManyMarks;

/// A frame between two marks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MarkedFrame {
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// The thread of the mark that ends it.
    pub(crate) thread: ThreadId,
    pub(crate) pid: Pid,
    /// The query's node of that mark.
    pub(crate) node: u32,
    /// The numbers of the chunks that it is in.
    pub(crate) chunks: RangeInclusive<usize>,
}

/// The frames of a recording that count, in the order of their starts.
#[derive(Debug, Default)]
pub(crate) struct MarkedFrames {
    pub(crate) each: Vec<MarkedFrame>,
    /// The number of further ones that are unknown.
    pub(crate) unknown: u64,
}

#[derive(Clone, Copy)]
struct Mark {
    pid: Pid,
    time: u64,
    thread: ThreadId,
    /// The recorded node.
    path: u32,
    chunk: u32,
}

/// The marks in some chunks, and the times in which others may be missing.
#[derive(Default)]
struct Found {
    marks: Vec<Mark>,
    holes: Vec<Range<u64>>,
}

impl MarkedFrame {
    pub(crate) fn duration(&self) -> u64 {
        self.end.saturating_sub(self.start)
    }

    /// Returns the part of a call's time that is in the frame, and whether the call ends in it. A call that
    /// began before the frame and ends after it is not inside, nor is one that the frame does not touch.
    pub(crate) fn share(&self, start: u64, end: u64) -> Option<(u64, bool)> {
        let begins = self.start <= start && start < self.end;
        let ends = self.start < end && end <= self.end;
        let time = || end.min(self.end).saturating_sub(start.max(self.start));
        (begins || ends).then(|| (time(), ends))
    }
}

/// Returns the frames between the marks of this function. All marks end a frame and begin the next one. A
/// frame counts if the mark does that ends it.
pub(crate) fn marked_frames(
    recording: &Recording,
    lens: &Lens<'_>,
    chunks: &[ChunkEntry],
    function: FuncId,
) -> Result<MarkedFrames, TooManyMarks> {
    let is_mark: Vec<bool> = recording.nodes().iter().map(|node| node.func == function).collect();
    let numbered: Vec<_> = (0_u32..).zip(chunks).collect();
    let all_marks = AtomicUsize::new(0);
    let parts = each_part(&numbered, |entries| {
        let mut found = Found::default();
        for &(number, entry) in entries {
            let before = found.marks.len();
            match lens.read(recording, entry) {
                Ok(chunk) => {
                    found.add(recording, &is_mark, number, &clip(chunk, &lens.window));
                }
                Err(_) => found.holes.push(entry.from.0..entry.to.0),
            }
            let new = found.marks.len() - before;
            if all_marks.fetch_add(new, Relaxed) + new > MOST_MARKS {
                break;
            }
        }
        found
    });
    if all_marks.into_inner() > MOST_MARKS {
        return Err(TooManyMarks);
    }
    let missing = recording.missing().iter().map(|time| time.start.0..time.end.0);
    let apart = chunks.windows(2).map(|pair| pair[0].to.0..pair[1].from.0);
    let mut all = Found { marks: Vec::new(), holes: missing.chain(apart).collect() };
    for Found { marks, holes } in parts {
        all.marks.extend(marks);
        all.holes.extend(holes);
    }
    Ok(all.frames(recording, lens))
}

impl Found {
    fn add(&mut self, recording: &Recording, is_mark: &[bool], number: u32, chunk: &Chunk) {
        if has_losses(&chunk.loss) {
            self.holes.push(chunk.from.0.saturating_sub(NEAR)..chunk.to.0.saturating_add(NEAR));
        }
        for of_thread in chunk.threads() {
            let thread = of_thread.thread;
            let Some(pid) = recording.thread(thread).map(|thread| thread.pid) else { continue };
            let calls = chunk.calls(of_thread).iter();
            let marks = calls.filter(|call| is_mark[call.path() as usize]);
            self.marks.extend(marks.map(|call| {
                let (time, path) = (call.end().0, call.path());
                Mark { pid, time, thread, path, chunk: number }
            }));
        }
    }

    fn frames(mut self, recording: &Recording, lens: &Lens<'_>) -> MarkedFrames {
        self.marks.sort_unstable_by_key(|mark| (mark.pid, mark.time, mark.thread, mark.path));
        let holes = Ranges::new(self.holes);
        let tid = |mark: &Mark| recording.thread(mark.thread).map(|thread| thread.tid);
        let node = |mark: &Mark| {
            let is_in = lens.selects_thread(recording.thread(mark.thread))
                && lens.is_within(mark.thread, mark.time)
                && lens.is_in_window(mark.time);
            let node = lens.node(mark.path).filter(|_| is_in)?;
            (!lens.asks_for_callees() || lens.is_callee(Some(node))).then_some(node)
        };
        let mut frames = MarkedFrames::default();
        for pair in self.marks.windows(2) {
            let (first, last) = (&pair[0], &pair[1]);
            // Another thread of the same id: the system has given the ids of a process to another one.
            let is_reused = first.thread != last.thread && tid(first) == tid(last);
            if first.pid != last.pid || is_reused {
                continue;
            }
            let Some(node) = node(last) else { continue };
            if holes.overlap(&(first.time..last.time)) {
                frames.unknown += 1;
                continue;
            }
            frames.each.push(MarkedFrame {
                start: first.time,
                end: last.time,
                thread: last.thread,
                pid: last.pid,
                node,
                chunks: first.chunk as usize..=last.chunk as usize,
            });
        }
        frames.each.sort_by_key(|frame| (frame.start, frame.end, frame.pid));
        frames
    }
}

fn has_losses(loss: &ChunkLoss) -> bool {
    // It is below 0 where an earlier chunk counted what came after all.
    loss.lost_events() > 0 || loss.late > 0 || loss.decode_errors > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_inside_if_it_begins_or_ends_in_the_frame() {
        let frame = MarkedFrame {
            start: 100,
            end: 200,
            thread: ThreadId(1),
            pid: Pid(7),
            node: 1,
            chunks: 0..=0,
        };
        let expected = [
            ((110, 130), Some((20, true))),
            ((90, 130), Some((30, true))),
            ((170, 220), Some((30, false))),
            ((100, 200), Some((100, true))),
            ((90, 220), None),
            // What ends with the mark before belongs to the frame before.
            ((90, 100), None),
            ((200, 200), Some((0, true))),
            ((200, 230), None),
        ];
        for ((start, end), share) in expected {
            assert_eq!(frame.share(start, end), share, "{start} to {end}");
        }
    }
}
