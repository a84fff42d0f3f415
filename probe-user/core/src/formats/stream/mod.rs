//! Calls as a stream of lines in order of time: of a recording ([`replay`]), or while they happen
//! ([`Live`]).
//!
//! A line needs the call's end, but belongs where the call began. So a line waits until everything
//! that began before it is known. In a recording everything is. Live, a call that stays open would
//! hold up all others: it is announced as begun, and gets a second line when it ends.

mod live;
mod messages;
mod order;
mod replay;
#[cfg(test)]
mod tests;

pub use live::Live;
pub use messages::{Message, Messages};
pub use replay::replay;

use super::excerpt::{CallRow, Ended};
use super::labels::frames;
use crate::calls::paths::Node;
use crate::recording::{ChunkLoss, Recording};
use crate::report::CallValues;
use crate::units::{FuncId, Nanos, ThreadId};
use std::cmp::Reverse;
use std::io;

/// Takes the lines of a stream.
pub trait Lines {
    /// Called before the first line, and again after names, threads or paths were added.
    fn define(&mut self, scene: &Scene<'_>);
    /// Returns whether calls of this function are wanted. Others have no lines, and hold up none.
    fn wants(&self, _: FuncId) -> bool {
        true
    }
    fn line(&mut self, scene: &Scene<'_>, line: &StreamLine<'_>) -> io::Result<()>;
    /// Called when the next line may take a while.
    fn flush(&mut self) -> io::Result<()>;
}

/// The meanings of the ids in lines.
pub struct Scene<'a> {
    pub recording: &'a Recording,
    pub(super) nodes: &'a [Node],
}

impl Scene<'_> {
    /// Returns the functions around a call, outermost first, and whether these are all.
    pub fn around(&self, call: &CallLine) -> (Vec<FuncId>, bool) {
        let (mut functions, is_whole) = frames(self.nodes, call.path);
        functions.pop();
        (functions, is_whole)
    }
}

/// A line of the stream.
#[derive(Clone, Copy, Debug)]
pub enum StreamLine<'a> {
    Call(&'a CallLine, Option<&'a CallValues>),
    Lost(&'a Lost),
}

/// The part of a call that a line shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CallPart {
    /// All of it, where it began.
    Whole,
    /// Its beginning: it has been open for long.
    Begun,
    /// Its end. Its beginning was announced, or there was no room to remember it.
    Resumed,
    /// Nothing more will come of a call that was announced: a filter left it out.
    Gone,
}

/// A call in a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallLine {
    pub part: CallPart,
    pub thread: ThreadId,
    pub function: FuncId,
    pub(super) path: u32,
    /// The number of calls around it.
    pub depth: u32,
    /// False if only its function is known, because there are too many paths.
    pub knows_path: bool,
    pub start: Nanos,
    pub duration: Nanos,
    /// The meaning of the duration.
    pub ended: Ended,
}

impl CallLine {
    fn new(part: CallPart, nodes: &[Node], thread: ThreadId, row: &CallRow) -> Self {
        let node = &nodes[row.path as usize];
        Self {
            part,
            thread,
            function: node.func,
            path: row.path,
            depth: node.depth.saturating_sub(1),
            knows_path: !node.other,
            start: Nanos(row.start),
            duration: Nanos(row.duration),
            ended: row.ended,
        }
    }

    /// Returns when it ended, as far as known.
    pub fn end(&self) -> Nanos {
        self.start.saturating_add(self.duration)
    }
}

/// Events that were lost in a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lost {
    pub from: Nanos,
    pub to: Nanos,
    pub events: u64,
    pub late: u64,
    pub decode_errors: u64,
    /// Calls whose values were lost.
    pub payloads: u64,
}

/// The sum of lost events, and how many of them lines have told. Events that were counted as lost may
/// still come: then the sum shrinks, and lines tell of no more until it is larger again.
#[derive(Debug, Default)]
struct LostSoFar {
    sum: ChunkLoss,
    told: u64,
}

impl LostSoFar {
    /// Adds what was lost in a stretch of time. Returns `None` if nothing was.
    fn add(&mut self, from: Nanos, to: Nanos, loss: &ChunkLoss, payloads: u64) -> Option<Lost> {
        self.sum.events = self.sum.events.wrapping_add(loss.events);
        let all = self.sum.lost_events().max(self.told);
        let events = all - std::mem::replace(&mut self.told, all);
        let ChunkLoss { late, decode_errors, .. } = *loss;
        let all = [events, late, decode_errors, payloads];
        let lost = Lost { from, to, events, late, decode_errors, payloads };
        all.iter().any(|lost| *lost > 0).then_some(lost)
    }
}

/// A line that waits for those before it. The order is that of time; calls of one thread that began
/// at the same time are in order of depth.
#[derive(Debug)]
struct Waiting {
    at: (Nanos, ThreadId, u32, Reverse<Nanos>),
    what: What,
}

#[derive(Debug)]
enum What {
    Call(CallLine, Option<Box<CallValues>>),
    Lost(Lost),
}

impl Waiting {
    fn call(call: CallLine, values: Option<Box<CallValues>>) -> Self {
        let time = match call.part {
            CallPart::Whole | CallPart::Begun => call.start,
            CallPart::Resumed | CallPart::Gone => call.end(),
        };
        let at = (time, call.thread, call.depth, Reverse(call.duration));
        Self { at, what: What::Call(call, values) }
    }

    fn lost(lost: Lost) -> Self {
        let at = (lost.to, ThreadId(u32::MAX), u32::MAX, Reverse(Nanos::ZERO));
        Self { at, what: What::Lost(lost) }
    }

    fn time(&self) -> Nanos {
        self.at.0
    }

    fn line(&self) -> StreamLine<'_> {
        match &self.what {
            What::Call(call, values) => StreamLine::Call(call, values.as_deref()),
            What::Lost(lost) => StreamLine::Lost(lost),
        }
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.at == other.at
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.at.cmp(&other.at)
    }
}
