//! Every finished call of the present window, in 16 bytes: what exact percentiles, center values
//! and unions are computed from.
//!
//! Each thread has its own log, in order of completion. Backwards, a log is therefore in order of
//! descending end, parents before children, which is all that `unions` needs. Logs grow by chunks
//! that double, so that thousands of short threads cost little.

use std::slice::Iter;

/// Calls in a log's first chunk, and in its largest.
const CHUNK: std::ops::RangeInclusive<usize> = 8..=4096;

/// In place of a duration that does not fit; the duration itself is in `Log::long`.
pub(crate) const LONG: u32 = u32::MAX;

/// Of bytes a call, those a report needs besides: durations, grouped.
const REPORT_BYTES: usize = 4;

#[derive(Clone, Copy, Debug)]
struct Entry {
    start: u64,
    duration: u32,
    /// Path node, shifted up by the timed bit.
    tag: u32,
}

/// One finished call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) start: u64,
    pub(crate) duration: u64,
    pub(crate) node: u32,
    pub(crate) timed: bool,
}

/// The calls of one thread.
#[derive(Debug, Default)]
pub(crate) struct Log {
    full: Vec<Vec<Entry>>,
    tail: Vec<Entry>,
    /// Durations that do not fit an entry, in order of completion.
    long: Vec<u64>,
}

impl Log {
    /// Latest first.
    pub(crate) fn backward(&self) -> Backward<'_> {
        Backward { chunk: self.tail.iter(), earlier: self.full.iter(), long: self.long.iter() }
    }
}

/// The calls of a log, latest first.
#[derive(Clone, Debug)]
pub(crate) struct Backward<'a> {
    chunk: Iter<'a, Entry>,
    earlier: Iter<'a, Vec<Entry>>,
    long: Iter<'a, u64>,
}

impl Backward<'_> {
    #[cold]
    fn next_chunk(&mut self) -> Option<&Entry> {
        self.chunk = self.earlier.next_back()?.iter();
        self.chunk.next_back()
    }
}

impl Iterator for Backward<'_> {
    type Item = Call;

    #[inline]
    fn next(&mut self) -> Option<Call> {
        let Entry { start, duration, tag } = match self.chunk.next_back() {
            Some(entry) => *entry,
            None => *self.next_chunk()?,
        };
        let duration = match duration {
            LONG => self.long.next_back().copied().unwrap_or(u64::from(LONG)),
            short => u64::from(short),
        };
        Some(Call { start, duration, node: tag >> 1, timed: tag & 1 == 1 })
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
            *id = self.open_log();
        }
        let log = &mut self.logs[id.log as usize];
        if log.tail.len() == log.tail.capacity() {
            self.bytes += Self::open_chunk(log);
        }
        let short = u32::try_from(call.duration).ok().filter(|&short| short != LONG);
        let tag = call.node << 1 | u32::from(call.timed);
        log.tail.push(Entry { start: call.start, duration: short.unwrap_or(LONG), tag });
        if short.is_none() {
            log.long.push(call.duration);
            self.bytes += size_of::<u64>();
        }
    }

    #[cold]
    fn open_log(&mut self) -> LogId {
        self.logs.push(Log::default());
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
        calls * (size_of::<Entry>() + REPORT_BYTES)
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
        let longs = [u64::from(LONG), u64::from(LONG) - 1, u64::from(LONG) + 1, u64::MAX];
        let calls = (0..20_000)
            .map(|i| call(i, if i % 1_000 == 0 { longs[i as usize / 1_000 % 4] } else { i * 3 }))
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
        assert!(spool.bytes < 100_000 + 4096 * 20, "{}", spool.bytes);
        assert!((2_000..=5_000).contains(&count), "{count} calls of 20 bytes in 100,000 bytes");
        assert_eq!(spool.index(ids[2]), Some(2));
        spool.clear();
        assert_eq!((spool.index(ids[2]), spool.is_full()), (None, false));
        spool.push(&mut ids[2], call(1, 1));
        assert_eq!(spool.index(ids[2]), Some(0));
    }
}
