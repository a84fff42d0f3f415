//! Every finished call of the present window, in 8 bytes: what exact percentiles, center values
//! and unions are computed from.
//!
//! Each thread has its own log, in order of completion. Backwards, a log is therefore in order of
//! descending end, parents before children, which is all that `unions` needs. An end is kept as
//! its distance from the end before; calls that do not fit (longer than 67 ms,
//! or more than 4 ms after the one before) are kept aside, and are few for that reason. Logs grow by chunks that double, so that thousands of short
//! threads cost little.

use std::slice::Iter;

/// Calls in a log's first chunk, and in its largest.
const CHUNK: std::ops::RangeInclusive<usize> = 8..=8192;

/// From this duration on, durations are not kept in 32 bits by a report.
pub(crate) const LONG: u32 = u32::MAX;

/// Of bytes a call, those a report needs besides: durations, grouped.
const REPORT_BYTES: usize = 4;

/// From the least significant: timed bit, path node, duration, distance from the end before.
const NODE_BITS: u32 = 15;
const DURATION_BITS: u32 = 26;
const DURATION_SHIFT: u32 = 1 + NODE_BITS;
const DISTANCE_SHIFT: u32 = DURATION_SHIFT + DURATION_BITS;
/// The call is in `Log::aside`.
const ASIDE: u64 = u64::MAX;

/// One finished call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) start: u64,
    pub(crate) duration: u64,
    pub(crate) node: u32,
    pub(crate) timed: bool,
}

impl Call {
    /// In one word, if it fits. `before`: the end of the call before.
    #[inline]
    fn pack(&self, before: u64) -> Option<u64> {
        let distance = self.start.wrapping_add(self.duration).wrapping_sub(before);
        let fits = distance >> (u64::BITS - DISTANCE_SHIFT) == 0
            && self.duration >> DURATION_BITS == 0
            && self.node >> NODE_BITS == 0;
        let tag = u64::from(self.node) << 1 | u64::from(self.timed);
        let word = distance << DISTANCE_SHIFT | self.duration << DURATION_SHIFT | tag;
        (fits && word != ASIDE).then_some(word)
    }
}

/// The calls of one thread.
#[derive(Debug, Default)]
pub(crate) struct Log {
    full: Vec<Vec<u64>>,
    tail: Vec<u64>,
    /// When the latest call ended.
    end: u64,
    /// Calls that do not fit, each with the end of the call before it.
    aside: Vec<(Call, u64)>,
}

impl Log {
    /// Latest first.
    pub(crate) fn backward(&self) -> Backward<'_> {
        let (chunk, earlier) = (self.tail.iter(), self.full.iter());
        Backward { chunk, earlier, end: self.end, aside: self.aside.iter() }
    }
}

/// The calls of a log, latest first.
#[derive(Clone, Debug, Default)]
pub(crate) struct Backward<'a> {
    chunk: Iter<'a, u64>,
    earlier: Iter<'a, Vec<u64>>,
    end: u64,
    aside: Iter<'a, (Call, u64)>,
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

/// A thread's log, while the spool is not cleared.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LogId {
    log: u32,
    /// Generation of the spool in which `log` is meant; 0 is none.
    generation: u32,
}

#[derive(Debug)]
pub(crate) struct Spool {
    logs: Vec<Log>,
    generation: u32,
    bytes: usize,
    max_bytes: usize,
}

impl Spool {
    /// Bounded by `max_bytes`, the buffer that a report needs included.
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self { logs: Vec::new(), generation: 1, bytes: 0, max_bytes }
    }

    /// In order of the threads' first calls.
    pub(crate) fn logs(&self) -> &[Log] {
        &self.logs
    }

    /// The timed calls of all threads.
    pub(crate) fn timed(&self) -> impl Iterator<Item = Call> {
        self.logs.iter().flat_map(Log::backward).filter(|call| call.timed)
    }

    /// The index of `id` in [`Self::logs`].
    pub(crate) fn index(&self, id: LogId) -> Option<usize> {
        (id.generation == self.generation).then_some(id.log as usize)
    }

    /// Past its bound (by one chunk at most): to be cleared.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.bytes > self.max_bytes
    }

    #[inline]
    pub(crate) fn push(&mut self, id: &mut LogId, call: Call) {
        if id.generation != self.generation {
            *id = self.open_log(call);
        }
        let log = &mut self.logs[id.log as usize];
        if log.tail.len() == log.tail.capacity() {
            self.bytes += Self::open_chunk(log);
        }
        let word = call.pack(log.end).unwrap_or_else(|| {
            self.bytes += size_of::<(Call, u64)>();
            Self::put_aside(log, call)
        });
        log.tail.push(word);
        log.end = call.start.wrapping_add(call.duration);
    }

    #[cold]
    fn put_aside(log: &mut Log, call: Call) -> u64 {
        log.aside.push((call, log.end));
        ASIDE
    }

    #[cold]
    fn open_log(&mut self, first: Call) -> LogId {
        let end = first.start.wrapping_add(first.duration);
        self.logs.push(Log { end, ..Log::default() });
        self.bytes += size_of::<Log>();
        LogId { log: self.logs.len() as u32 - 1, generation: self.generation }
    }

    #[cold]
    fn open_chunk(log: &mut Log) -> usize {
        let calls = (log.tail.capacity() * 2).clamp(*CHUNK.start(), *CHUNK.end());
        let chunk = std::mem::replace(&mut log.tail, Vec::with_capacity(calls));
        if !chunk.is_empty() {
            log.full.push(chunk);
        }
        calls * (size_of::<u64>() + REPORT_BYTES)
    }

    pub(crate) fn clear(&mut self) {
        self.logs.clear();
        self.bytes = 0;
        self.generation = self.generation.wrapping_add(1).max(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(start: u64, duration: u64) -> Call {
        Call { start, duration, node: start as u32 % 7, timed: start.is_multiple_of(2) }
    }

    #[test]
    fn a_log_gives_back_its_calls_latest_first() {
        let (mut spool, mut id) = (Spool::new(usize::MAX), LogId::default());
        let long = 1 << DURATION_BITS;
        let durations = [long - 1, long, u64::from(LONG), u64::from(LONG) + 1, u64::MAX, 0];
        let steps = [1, 0, (1 << 22) - 1, 1 << 22, 1 << 40];
        let nodes = [1, (1 << NODE_BITS) - 1, 1 << NODE_BITS, u32::MAX];
        let mut end = 1u64 << 50;
        let calls = (0..20_000)
            .map(|i| {
                let odd = i % 100 == 0;
                end += if odd { steps[i / 100 % 5] } else { 700 };
                let duration = if odd { durations[i / 500 % 6] } else { i as u64 * 3 };
                let node = if odd { nodes[i / 300 % 4] } else { i as u32 % 7 };
                let start = end.saturating_sub(duration);
                Call { start, duration, node, timed: i % 2 == 0 }
            })
            .collect::<Vec<_>>();
        for &call in &calls {
            spool.push(&mut id, call);
        }
        let back = spool.logs()[0].backward().collect::<Vec<_>>();
        assert_eq!(back, calls.into_iter().rev().collect::<Vec<_>>());
    }

    #[test]
    fn the_bound_holds_within_a_chunk_and_a_cleared_spool_starts_anew() {
        let (mut spool, mut ids) = (Spool::new(100_000), [LogId::default(); 3]);
        let mut count = 0;
        while !spool.is_full() {
            spool.push(&mut ids[count % 3], call(count as u64, 1));
            count += 1;
        }
        assert!(spool.bytes < 100_000 + 8192 * 12, "{}", spool.bytes);
        assert!((3_000..=8_400).contains(&count), "{count} calls of 12 bytes in 100,000 bytes");
        assert_eq!(spool.index(ids[2]), Some(2));
        spool.clear();
        assert_eq!((spool.index(ids[2]), spool.is_full()), (None, false));
        spool.push(&mut ids[2], call(1, 1));
        assert_eq!(spool.index(ids[2]), Some(0));
    }
}
