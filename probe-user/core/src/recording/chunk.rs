//! A chunk: the calls of all threads that ended within a time window, and those open at its end.
//!
//! Calls are stored in three columns: distances between ends, durations, and path with a bit for
//! whether the duration is known. The calls of a thread come latest first, so parents precede their
//! children.

use super::RecordError;
use super::reused::ChunkCalls;
use super::varint::{take, take_count, take_u32};
use crate::units::{FuncId, Nanos, ThreadId};
use std::ops::Range;

/// A finished call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call(pub(crate) crate::calls::spool::Call);

impl Call {
    /// Returns when it began.
    pub fn start(&self) -> Nanos {
        Nanos(self.0.start)
    }

    /// Returns its duration, which is exact only if it [is timed](Self::is_timed).
    pub fn duration(&self) -> Nanos {
        Nanos(self.0.duration)
    }

    /// Returns when it ended.
    pub fn end(&self) -> Nanos {
        Nanos(self.0.start.saturating_add(self.0.duration))
    }

    /// Returns its node in the tree of call paths: see [`Recording::path`](super::Recording::path).
    pub fn path(&self) -> u32 {
        self.0.node
    }

    /// True if its end was seen. Otherwise its duration reaches to the last event seen inside it.
    pub fn is_timed(&self) -> bool {
        self.0.timed
    }
}

/// A call that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenCall {
    /// The time at which it began.
    pub start: Nanos,
    /// Its node in the tree of call paths: see [`Recording::path`](super::Recording::path).
    pub path: u32,
}

/// Losses and filtered calls within the chunk's time window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChunkLoss {
    /// Events that were dropped because a ring was full. Negative, modulo 2^64, if events counted
    /// as lost in an earlier chunk came after all: only the [sum](Self::lost_events) over all
    /// chunks counts.
    pub events: u64,
    /// Events that arrived after the hold time.
    pub late: u64,
    /// Records that could not be decoded.
    pub decode_errors: u64,
    /// Calls that a filter left out while recording.
    pub filtered: u64,
}

impl ChunkLoss {
    /// Returns the number of lost events if this is a sum over chunks (by wrapping additions).
    pub fn lost_events(&self) -> u64 {
        if i64::try_from(self.events).is_ok() { self.events } else { 0 }
    }
}

/// The calls of one thread in a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThreadCalls {
    /// The thread: see [`Recording::thread`](super::Recording::thread).
    pub thread: ThreadId,
    calls: Range<usize>,
    /// Calls that are open at the chunk's end, outermost first.
    pub open: Vec<OpenCall>,
}

/// The calls of all threads that ended within a time window, and those open at its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Chunk {
    /// The start of the window: calls that ended at this instant are in the preceding chunk.
    pub from: Nanos,
    /// The end of the window.
    pub to: Nanos,
    /// Losses and filtered calls.
    pub loss: ChunkLoss,
    /// Numbers of exits whose entries were before arming, by function.
    pub headless: Vec<(FuncId, u64)>,
    threads: Vec<ThreadCalls>,
    calls: ChunkCalls,
}

impl Chunk {
    pub(crate) fn new(window: Range<u64>) -> Self {
        Self { from: Nanos(window.start), to: Nanos(window.end), ..Self::default() }
    }

    /// Returns the threads that have calls in it.
    pub fn threads(&self) -> &[ThreadCalls] {
        &self.threads
    }

    /// Returns the calls of one of [`Self::threads`], latest first.
    pub fn calls(&self, thread: &ThreadCalls) -> &[Call] {
        &self.calls[thread.calls.clone()]
    }

    /// Returns the number of calls that ended in it.
    pub fn len(&self) -> usize {
        self.calls.len()
    }

    /// True if no call ended in it.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Adds a thread and its calls, latest first.
    pub(crate) fn push(
        &mut self,
        thread: ThreadId,
        calls: impl Iterator<Item = crate::calls::spool::Call>,
        open: Vec<OpenCall>,
    ) {
        let first = self.calls.len();
        self.calls.extend(calls.map(Call));
        let calls = first..self.calls.len();
        if !calls.is_empty() || !open.is_empty() {
            self.threads.push(ThreadCalls { thread, calls, open });
        }
    }

    /// Decodes a chunk. `paths` and `functions` are the numbers of known ids; others are refused.
    pub(crate) fn decode(
        mut bytes: &[u8],
        paths: usize,
        functions: usize,
    ) -> Result<Self, RecordError> {
        let bytes = &mut bytes;
        let from = take(bytes)?;
        let to = from.saturating_add(take(bytes)?);
        let mut chunk = Self::new(from..to);
        let mut next = || take(bytes);
        chunk.loss =
            ChunkLoss { events: next()?, late: next()?, decode_errors: next()?, filtered: next()? };
        for _ in 0..take_count(bytes, 2)? {
            let function = FuncId(take_u32(bytes)?);
            if function.index() >= functions {
                return Err(RecordError::Malformed("there is no such function"));
            }
            chunk.headless.push((function, take(bytes)?));
        }
        let mut calls = 0_usize;
        for _ in 0..take_count(bytes, 3)? {
            let thread = ThreadId(take_u32(bytes)?);
            // `decode_calls` checks this number against the lengths of the columns.
            let first = calls;
            calls = calls.saturating_add(take_count(bytes, 0)?);
            let open = (0..take_count(bytes, 2)?).map(|_| {
                let start = Nanos(to.wrapping_sub(take(bytes)?));
                Ok(OpenCall { start, path: check_path(take_u32(bytes)?, paths)? })
            });
            let open = open.collect::<Result<_, RecordError>>()?;
            chunk.threads.push(ThreadCalls { thread, calls: first..calls, open });
        }
        chunk.decode_calls(bytes, calls, paths)?;
        Ok(chunk)
    }

    fn decode_calls(
        &mut self,
        bytes: &mut &[u8],
        calls: usize,
        paths: usize,
    ) -> Result<(), RecordError> {
        let mut columns = [&[][..]; 3];
        for column in &mut columns {
            let length = take_count(bytes, 1)?;
            (*column, *bytes) = bytes.split_at(length);
            if calls > length {
                return Err(RecordError::Malformed("there are fewer calls than it says"));
            }
        }
        let [distances, durations, tags] = &mut columns;
        self.calls = ChunkCalls::with_capacity(calls);
        for thread in &self.threads {
            let mut end = self.to.0;
            for _ in thread.calls.clone() {
                end = end.wrapping_sub(take(distances)?);
                let duration = take(durations)?;
                let tag = take(tags)?;
                let node = check_path(u32::try_from(tag >> 1).unwrap_or(u32::MAX), paths)?;
                let start = end.wrapping_sub(duration);
                let call = crate::calls::spool::Call { start, duration, node, timed: tag & 1 == 1 };
                self.calls.push(Call(call));
            }
        }
        match bytes.is_empty() && columns.iter().all(|column| column.is_empty()) {
            true => Ok(()),
            false => Err(RecordError::Malformed("there are more calls than it says")),
        }
    }
}

#[inline]
fn check_path(path: u32, paths: usize) -> Result<u32, RecordError> {
    match (path as usize) < paths && path > 0 {
        true => Ok(path),
        false => Err(RecordError::Malformed("there is no such path")),
    }
}
