//! The durations of frames over time: the same frames that a report compares.

use super::Query;
use super::count::count;
use super::frame_marks::{TooManyMarks, marked_frames};
use super::frames::outermost;
use super::lens::Lens;
use super::report::period;
use super::select::{CallReader, each_part};
use super::slowest::each_timed;
use crate::function::FunctionInfo;
use crate::recording::Recording;
use crate::report::FramesAsked;
use crate::stats::rank::nearest_rank;
use crate::units::{Nanos, ThreadId};
use serde::Serialize;
use std::cmp::Reverse;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Frames that are calls, at most: 96 MiB, and as much again while they are put together.
const MOST_FRAMES: usize = 1 << 22;
/// Columns, at most.
const MOST_COLUMNS: usize = 8_192;
/// The longest frames that are listed.
const MOST_LISTED: usize = 10;

/// There are too many frames to keep them in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there are more than {MOST_FRAMES} frames: `ctrace report --view frames --time` compares those of a part"
)]
pub struct TooManyFrames;

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FrameTime {
    /// The time at which it began, since the start of the recording.
    pub start_ns: i64,
    /// Its duration.
    pub duration_ns: Nanos,
    /// The thread of its call, or of the mark that ended it.
    pub thread: ThreadId,
}

/// The frames that began in a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct FrameColumn {
    /// The number of the column.
    pub place: usize,
    /// The number of frames.
    pub count: u64,
    /// The median of their durations.
    pub median_ns: Nanos,
    /// The longest of them.
    pub worst: FrameTime,
}

/// The durations of frames.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FrameTimes {
    /// The number of frames whose durations are known.
    pub frames: u64,
    /// The number of those between marks that are unknown: a mark may be missing.
    pub unknown: u64,
    /// The number of frames that took longer than the budget.
    pub over_budget: Option<u64>,
    /// The median of all durations.
    pub median_ns: Option<Nanos>,
    /// Columns with frames. All columns are equal parts of the recording's time.
    pub columns: Vec<FrameColumn>,
    /// The longest frames, longest first.
    pub worst: Vec<FrameTime>,
}

/// Returns the durations of frames in so many columns. What it returns for a query that was stopped is worth
/// nothing.
pub fn frame_times(
    recording: &Recording,
    query: &Query,
    asked: FramesAsked,
    columns: usize,
) -> Result<FrameTimes, TooManyFrames> {
    let lens = Lens::new(query, recording.nodes(), recording.functions());
    let (start, end) = period(recording, &lens);
    let function = recording.functions().get(asked.function.index());
    let (mut frames, unknown) = if function.is_some_and(FunctionInfo::is_edge_of_frames) {
        of_marks(recording, &lens, asked, start)?
    } else {
        (of_calls(recording, &lens, asked, start)?, 0)
    };
    frames.sort_unstable_by_key(|frame| (frame.start_ns, frame.thread, frame.duration_ns));
    let columns = columns.clamp(1, MOST_COLUMNS);
    let length = u128::from(end.since(start).0.max(1));
    let place = |frame: &FrameTime| {
        // A call may have begun before the recording did.
        let at = u128::from(frame.start_ns.max(0) as u64);
        ((at * columns as u128 / length) as usize).min(columns - 1)
    };
    let of_columns = frames.chunk_by(|one, next| place(one) == place(next));
    let of_columns = of_columns.filter_map(|each| {
        let worst = *each.iter().max_by_key(|frame| rank(frame))?;
        let median_ns = median(each)?;
        Some(FrameColumn { place: place(&worst), count: each.len() as u64, median_ns, worst })
    });
    let columns = of_columns.collect();
    let is_over = |budget: Nanos| frames.iter().filter(|frame| frame.duration_ns > budget).count();
    let over_budget = asked.budget.map(|budget| is_over(budget) as u64);
    let (count, median_ns) = (frames.len() as u64, median(&frames));
    frames.sort_unstable_by_key(|frame| Reverse(rank(frame)));
    frames.truncate(MOST_LISTED);
    Ok(FrameTimes { frames: count, unknown, over_budget, median_ns, columns, worst: frames })
}

/// Returns a key that orders frames from the shortest to the longest. Of equal ones the first is the longest.
fn rank(frame: &FrameTime) -> impl Ord + use<> {
    (frame.duration_ns, Reverse(frame.start_ns), Reverse(frame.thread))
}

fn median(frames: &[FrameTime]) -> Option<Nanos> {
    let mut durations: Vec<Nanos> = frames.iter().map(|frame| frame.duration_ns).collect();
    let place = nearest_rank(durations.len() as u64, 500) as usize;
    (place < durations.len()).then(|| *durations.select_nth_unstable(place).1)
}

fn since(time: u64, start: Nanos) -> i64 {
    time.wrapping_sub(start.0) as i64
}

fn of_marks(
    recording: &Recording,
    lens: &Lens<'_>,
    asked: FramesAsked,
    start: Nanos,
) -> Result<(Vec<FrameTime>, u64), TooManyFrames> {
    let chunks = lens.chunks(recording.chunks());
    let found = marked_frames(recording, lens, chunks, asked.function)
        .map_err(|TooManyMarks| TooManyFrames)?;
    let frames = found.each.iter().map(|frame| FrameTime {
        start_ns: since(frame.start, start),
        duration_ns: Nanos(frame.duration()),
        thread: frame.thread,
    });
    Ok((frames.collect(), found.unknown))
}

fn of_calls(
    recording: &Recording,
    lens: &Lens<'_>,
    asked: FramesAsked,
    start: Nanos,
) -> Result<Vec<FrameTime>, TooManyFrames> {
    let chunks = lens.chunks(recording.chunks());
    let counted = count(recording, lens, chunks);
    let nodes = outermost(lens.paths.nodes(), asked.function);
    let numbered: Vec<_> = chunks.iter().enumerate().collect();
    let found = AtomicUsize::new(0);
    let parts = each_part(&numbered, |entries| {
        let mut frames = Vec::new();
        let mut selected = CallReader::new(recording, lens, &counted);
        each_timed(&mut selected, entries, |frame| {
            // All parts share the room.
            if nodes.contains(&frame.node) && found.fetch_add(1, Relaxed) < MOST_FRAMES {
                frames.push(FrameTime {
                    start_ns: since(frame.call.start, start),
                    duration_ns: Nanos(frame.call.duration),
                    thread: frame.thread,
                });
            }
        });
        frames
    });
    match found.into_inner() {
        0..=MOST_FRAMES => Ok(parts.concat()),
        _ => Err(TooManyFrames),
    }
}
