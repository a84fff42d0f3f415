//! The calls of one thread, in chunks of doubling size: thousands of short threads cost little
//! memory.

use super::{ASIDE, Call, DISTANCE_SHIFT, DURATION_BITS, DURATION_SHIFT, REPORT_BYTES};
use crate::units::ThreadId;
use std::collections::{VecDeque, vec_deque};
use std::slice::Iter;

/// The numbers of calls in a log's first and largest chunk.
const CHUNK: std::ops::RangeInclusive<usize> = 8..=8192;

/// The calls of one thread.
#[derive(Debug, Default)]
pub(crate) struct Log {
    full: VecDeque<Vec<u64>>,
    tail: Vec<u64>,
    /// The end of the latest call.
    end: u64,
    /// Calls that do not fit, each with the end of the previous call.
    aside: VecDeque<(Call, u64)>,
    /// 0 if nobody owns the log.
    pub(super) generation: u32,
    owner: ThreadId,
    /// The numbers of forgotten chunks and of forgotten calls aside.
    forgotten: [usize; 2],
}

/// The end of a log at some moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct LogCut {
    generation: u32,
    end: u64,
    /// The numbers of chunks and of calls aside before it, including forgotten ones.
    before: [usize; 2],
}

/// Returns the number of bytes that a chunk counts as.
fn bytes_of(chunk: &Vec<u64>) -> usize {
    chunk.capacity() * (size_of::<u64>() + REPORT_BYTES)
}

impl Log {
    /// Returns the end of the latest call.
    pub(crate) fn end(&self) -> u64 {
        self.end
    }

    /// Returns the thread that made the calls.
    pub(crate) fn owner(&self) -> ThreadId {
        self.owner
    }

    pub(super) fn new(generation: u32, owner: ThreadId, end: u64) -> Self {
        Self { generation, owner, end, ..Self::default() }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.full.is_empty() && self.tail.is_empty()
    }

    /// Returns the calls, latest first.
    pub(crate) fn backward(&self) -> Backward<'_> {
        let (chunk, earlier) = (self.tail.iter(), self.full.iter());
        Backward { chunk, earlier, end: self.end, aside: self.aside.iter() }
    }

    /// Adds a call; returns the number of added bytes.
    #[inline]
    pub(super) fn push(&mut self, call: Call) -> usize {
        let mut bytes = 0;
        if self.tail.len() == self.tail.capacity() {
            bytes += self.open_chunk();
        }
        let word = call.pack(self.end).unwrap_or_else(|| {
            bytes += size_of::<(Call, u64)>();
            self.put_aside(call)
        });
        self.tail.push(word);
        self.end = call.start.wrapping_add(call.duration);
        bytes
    }

    #[cold]
    fn put_aside(&mut self, call: Call) -> u64 {
        self.aside.push_back((call, self.end));
        ASIDE
    }

    #[cold]
    fn open_chunk(&mut self) -> usize {
        let calls = (self.tail.capacity() * 2).clamp(*CHUNK.start(), *CHUNK.end());
        let chunk = std::mem::replace(&mut self.tail, Vec::with_capacity(calls));
        if !chunk.is_empty() {
            self.full.push_back(chunk);
        }
        bytes_of(&self.tail)
    }

    /// Cuts here, at the end of a chunk; returns the number of saved bytes.
    pub(super) fn cut(&mut self) -> (LogCut, usize) {
        let mut chunk = std::mem::take(&mut self.tail);
        let mut saved = bytes_of(&chunk);
        if !chunk.is_empty() {
            chunk.shrink_to_fit();
            saved -= bytes_of(&chunk);
            self.full.push_back(chunk);
        }
        let [chunks, aside] = self.forgotten;
        let before = [chunks + self.full.len(), aside + self.aside.len()];
        (LogCut { generation: self.generation, end: self.end, before }, saved)
    }

    /// Returns the numbers of chunks and of calls aside before a cut, if it is one of this log.
    fn places_before(&self, cut: &LogCut) -> Option<[usize; 2]> {
        let places = || [0, 1].map(|i| cut.before[i].saturating_sub(self.forgotten[i]));
        (cut.generation == self.generation && self.generation != 0).then(places)
    }

    /// Returns the calls before a cut, if it is one of this log.
    pub(super) fn before(&self, cut: &LogCut) -> Option<Backward<'_>> {
        let [chunks, aside] = self.places_before(cut)?;
        let (chunk, earlier) = (Iter::default(), self.full.range(..chunks));
        Some(Backward { chunk, earlier, end: cut.end, aside: self.aside.range(..aside) })
    }

    /// Removes and returns the calls before a cut, if it is one of this log.
    pub(super) fn take_before(&mut self, cut: &LogCut) -> Option<Taken> {
        let [chunks, aside] = self.places_before(cut)?;
        self.forgotten = [0, 1].map(|i| self.forgotten[i].max(cut.before[i]));
        Some(Taken {
            owner: self.owner,
            chunks: self.full.drain(..chunks).collect(),
            aside: self.aside.drain(..aside).collect(),
            end: cut.end,
        })
    }
}

/// Calls of one thread that were taken out of its log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Taken {
    owner: ThreadId,
    chunks: VecDeque<Vec<u64>>,
    aside: VecDeque<(Call, u64)>,
    end: u64,
}

impl Taken {
    /// Returns the thread that made the calls.
    pub(crate) fn owner(&self) -> ThreadId {
        self.owner
    }

    /// Returns the number of calls.
    pub(crate) fn len(&self) -> usize {
        self.chunks.iter().map(Vec::len).sum()
    }

    /// Returns the number of bytes that they counted as in the spool.
    pub(super) fn bytes(&self) -> usize {
        let chunks: usize = self.chunks.iter().map(bytes_of).sum();
        chunks + self.aside.len() * size_of::<(Call, u64)>()
    }

    /// Returns the calls, latest first.
    pub(crate) fn backward(&self) -> Backward<'_> {
        let (chunk, earlier) = (Iter::default(), self.chunks.iter());
        Backward { chunk, earlier, end: self.end, aside: self.aside.iter() }
    }
}

/// The calls of a log, latest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backward<'a> {
    chunk: Iter<'a, u64>,
    earlier: vec_deque::Iter<'a, Vec<u64>>,
    end: u64,
    aside: vec_deque::Iter<'a, (Call, u64)>,
}

impl Backward<'_> {
    #[cold]
    fn next_chunk(&mut self) -> Option<&u64> {
        self.chunk = self.earlier.next_back()?.iter();
        self.chunk.next_back()
    }

    #[cold]
    fn next_aside(&mut self) -> Option<Call> {
        let (call, before) = *self.aside.next_back()?;
        self.end = before;
        Some(call)
    }
}

impl Iterator for Backward<'_> {
    type Item = Call;

    #[inline]
    fn next(&mut self) -> Option<Call> {
        let word = match self.chunk.next_back() {
            Some(word) => *word,
            None => *self.next_chunk()?,
        };
        if word == ASIDE {
            return self.next_aside();
        }
        let duration = word >> DURATION_SHIFT & ((1 << DURATION_BITS) - 1);
        let node = (word as u32 & ((1 << DURATION_SHIFT) - 1)) >> 1;
        let start = self.end.wrapping_sub(duration);
        self.end = self.end.wrapping_sub(word >> DISTANCE_SHIFT);
        Some(Call { start, duration, node, timed: word & 1 == 1 })
    }
}
