//! Every finished call of the current window, in 8 bytes. Exact percentiles, center values and
//! unions are computed from these calls.
//!
//! Each thread has its own log, in order of completion. Read backwards, a log is in order of
//! descending end, parents before children, which is all that `unions` needs. An end is kept as its
//! distance from the previous end. Calls that do not fit (longer than 67 ms, or more than 4 ms
//! after the previous one) are kept aside; their own length makes them rare.
//!
//! A full spool is emptied from its oldest calls, up to a [`Cut`] that was made earlier; see
//! `fold`.

mod log;

pub(crate) use log::{Backward, Log, Taken};

use crate::units::ThreadId;
use log::LogCut;

/// Reports do not keep durations in 32 bits from this one on.
pub(crate) const LONG: u32 = u32::MAX;

/// Bytes of each call that a report needs in addition, for grouped durations.
const REPORT_BYTES: usize = 4;

/// From the least significant bits: timed bit, path node, duration, distance from the previous end.
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
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(self.duration)
    }

    /// Packs the call into one word, if it fits. `before`: the end of the previous call.
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

/// A reference to a thread's log, valid while the log has calls.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LogId {
    log: u32,
    /// Distinguishes the logs that were at this index one after another; 0 is none.
    generation: u32,
    /// The thread that made the calls.
    owner: ThreadId,
}

impl LogId {
    pub(crate) fn of(owner: ThreadId) -> Self {
        Self { owner, ..Self::default() }
    }

    pub(crate) fn owner(self) -> ThreadId {
        self.owner
    }
}

/// The ends of all logs at some moment.
#[derive(Clone, Debug)]
pub(crate) struct Cut {
    logs: Vec<LogCut>,
    /// The size of other data kept for each cut; it counts toward the spool.
    bytes: usize,
}

#[derive(Debug)]
pub(crate) struct Spool {
    logs: Vec<Log>,
    /// Indices of logs that are gone.
    free: Vec<u32>,
    /// The generation of the latest log.
    generation: u32,
    bytes: usize,
    /// At most the number of bytes at the latest cut.
    bytes_at_cut: usize,
    max_bytes: usize,
}

impl Spool {
    /// Makes a spool of at most `max_bytes`, including the buffer that a report needs.
    pub(crate) fn new(max_bytes: usize) -> Self {
        let (logs, free) = (Vec::new(), Vec::new());
        Self { logs, free, generation: 0, bytes: 0, bytes_at_cut: 0, max_bytes }
    }

    /// Returns all logs by index; some are empty.
    pub(crate) fn logs(&self) -> &[Log] {
        &self.logs
    }

    /// Returns the timed calls of all threads.
    pub(crate) fn timed(&self) -> impl Iterator<Item = Call> {
        self.logs.iter().flat_map(Log::backward).filter(|call| call.timed)
    }

    /// Returns the index of a log in [`Self::logs`].
    pub(crate) fn index(&self, id: LogId) -> Option<usize> {
        let log = self.logs.get(id.log as usize)?;
        (id.generation == log.generation && id.generation != 0).then_some(id.log as usize)
    }

    /// Returns true if it is past its bound (by one chunk at most) and must be emptied.
    #[inline]
    pub(crate) fn is_full(&self) -> bool {
        self.bytes > self.max_bytes
    }

    /// Returns true if a full spool's `1 / parts` was added since the latest cut.
    #[inline]
    pub(crate) fn is_due(&self, parts: usize) -> bool {
        self.bytes - self.bytes_at_cut > self.max_bytes / parts
    }

    #[inline]
    pub(crate) fn push(&mut self, id: &mut LogId, call: Call) {
        let index = match self.index(*id) {
            Some(index) => index,
            None => self.open_log(id, call),
        };
        let log = &mut self.logs[index];
        self.bytes += log.push(call);
    }

    #[cold]
    fn open_log(&mut self, id: &mut LogId, first: Call) -> usize {
        self.generation = self.generation.wrapping_add(1).max(1);
        let log = Log::new(self.generation, id.owner, first.start.wrapping_add(first.duration));
        self.bytes += size_of::<Log>();
        let index = match self.free.pop() {
            Some(place) => {
                self.logs[place as usize] = log;
                place as usize
            }
            None => {
                self.logs.push(log);
                self.logs.len() - 1
            }
        };
        *id = LogId { log: index as u32, generation: self.generation, ..*id };
        index
    }

    /// Cuts here. `bytes`: the size of other data kept for this cut.
    pub(crate) fn cut(&mut self, bytes: usize) -> Cut {
        let mut logs = Vec::with_capacity(self.logs.len());
        for log in &mut self.logs {
            let (cut, saved) = log.cut();
            logs.push(cut);
            self.bytes -= saved;
        }
        let bytes = bytes + logs.len() * size_of::<LogCut>();
        self.bytes += bytes;
        self.bytes_at_cut = self.bytes;
        Cut { logs, bytes }
    }

    /// Returns the calls of each log before the cut, by the log's index at the time of the cut.
    pub(crate) fn before<'a>(&'a self, cut: &'a Cut) -> impl Iterator<Item = Backward<'a>> {
        let logs = cut.logs.iter().zip(&self.logs);
        logs.map(|(cut, log)| log.before(cut).unwrap_or_default())
    }

    /// Removes and returns the calls before the cut.
    pub(crate) fn take_before(&mut self, cut: &Cut) -> Vec<Taken> {
        self.bytes -= cut.bytes;
        let mut all = Vec::new();
        for (place, (cut, log)) in cut.logs.iter().zip(&mut self.logs).enumerate() {
            if let Some(taken) = log.take_before(cut) {
                self.bytes -= taken.bytes();
                all.push(taken);
            }
            if log.generation != 0 && log.is_empty() {
                *log = Log::default();
                self.bytes -= size_of::<Log>();
                self.free.push(place as u32);
            }
        }
        self.bytes_at_cut = self.bytes_at_cut.min(self.bytes);
        all
    }

    pub(crate) fn clear(&mut self) {
        self.logs.clear();
        self.free.clear();
        (self.bytes, self.bytes_at_cut) = (0, 0);
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
