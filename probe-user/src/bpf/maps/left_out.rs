//! The calls that the programs leave out because they are too deep or too short: their counts, and the
//! entries of open calls that may turn out to be short.

use super::{counted::all_keys, words::Words};
use crate::bpf::{BpfError, now, sys};
use ctrace_common::{Counting, KeptCall, KeptCalls, LeftOutCalls, MOST_KEPT, MOST_KEPT_THREADS};
use ctrace_core::{
    engine::{HeldCall, LeftOut},
    units::{FuncId, Nanos, Pid, Tid},
};
use std::{
    mem::offset_of,
    os::fd::{AsFd as _, OwnedFd},
    sync::Arc,
    time::Duration,
};

/// Entries are held no longer than events wait for older ones, so they come in time.
const LONGEST_HELD: Nanos = Nanos::from_millis(100);
const WORDS: usize = size_of::<KeptCalls>() / 8;
/// How often the calls of a thread are read that changes them meanwhile.
const ATTEMPTS: u32 = 8;
/// Waits for threads that change them while nothing else happens any more, and their length: the thread may
/// have lost its processor.
const WAITS: u32 = 200;
const WAIT: Duration = Duration::from_millis(1);

/// What the programs leave out, fixed before they are loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Thrift {
    /// The most calls of a thread inside each other that make events; 0: all do.
    pub most_nested: u32,
    /// The shortest calls that make events; 0: all do.
    pub shortest: Nanos,
    /// Functions that have counts.
    pub functions: u32,
}

impl Thrift {
    /// Returns what the programs can do about these limits. One that is too high for them is left to user
    /// space, and so is the rest of a long duration.
    pub(crate) fn within(
        most_nested: Option<u32>,
        shortest: Nanos,
        functions: usize,
    ) -> Option<Self> {
        let most_nested = most_nested.filter(|most| *most as usize <= MOST_KEPT).unwrap_or(0);
        let functions = functions.clamp(1, super::counted::MOST_FUNCTIONS) as u32;
        let shortest = shortest.min(LONGEST_HELD);
        let is_any = most_nested > 0 || shortest > Nanos::ZERO;
        is_any.then_some(Self { most_nested, shortest, functions })
    }
}

/// Calls whose entries are held, of which none is counted as a short one later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// They have lasted long enough.
    Long,
    /// They were open when the threads were told to give up their calls, and these have not done so yet.
    GivenUp,
    /// They are open, and no call is counted any more.
    All,
}

pub(crate) struct LeftOutCounts {
    thrift: Thrift,
    kept: Arc<OwnedFd>,
    counting: Words,
    counts: Words,
}

impl LeftOutCounts {
    pub(crate) fn map(
        counting: &OwnedFd,
        counts: &OwnedFd,
        kept: Arc<OwnedFd>,
        thrift: Thrift,
    ) -> Result<Self, BpfError> {
        let len = thrift.functions as usize * size_of::<LeftOutCalls>();
        Ok(Self {
            thrift,
            kept,
            counting: Words::map(counting, size_of::<Counting>())?,
            counts: Words::map(counts, len)?,
        })
    }

    /// Leaves calls out that begin from this time on.
    pub(crate) fn begin(&self, start: Nanos) {
        self.counting.set(offset_of!(Counting, start), start.0);
        self.counting.set(offset_of!(Counting, end), u64::MAX);
    }

    /// Leaves no call out that begins later.
    pub(crate) fn count_until(&self, end: Nanos) {
        self.counting.set(offset_of!(Counting, end), end.0);
    }

    /// Has all threads give up their open calls, as functions have lost their probes.
    pub(crate) fn give_up_open(&self) {
        self.counting.set(offset_of!(Counting, changes), self.changes() + 1);
    }

    fn changes(&self) -> u64 {
        self.counting.get(offset_of!(Counting, changes))
    }

    /// Tells the programs how calls of a function begin.
    pub(crate) fn know(&self, function: FuncId, begins_a_loop: bool) {
        if let Some(at) = self.place(function) {
            self.counts.set(at + offset_of!(LeftOutCalls, begins_a_loop), begins_a_loop.into());
        }
    }

    fn place(&self, function: FuncId) -> Option<usize> {
        let is_known = function.0 < self.thrift.functions;
        is_known.then(|| function.index() * size_of::<LeftOutCalls>())
    }

    /// Returns the counts of a function since the start.
    pub(crate) fn of(&self, function: FuncId) -> LeftOut {
        let Some(at) = self.place(function) else { return LeftOut::default() };
        let count = |offset| self.counts.get(at + offset);
        LeftOut {
            too_deep: count(offset_of!(LeftOutCalls, too_deep)),
            ends: count(offset_of!(LeftOutCalls, ends)),
            inside: count(offset_of!(LeftOutCalls, inside)),
            short: count(offset_of!(LeftOutCalls, short)),
            short_ns: count(offset_of!(LeftOutCalls, short_ns)),
        }
    }

    /// Returns calls whose entries are held: their ends will be delivered.
    pub(crate) fn held(&self, which: Held) -> Result<Vec<HeldCall>, BpfError> {
        let mut held = Vec::new();
        if self.thrift.shortest == Nanos::ZERO {
            return Ok(held);
        }
        let now = now();
        let age = if which == Held::Long { self.thrift.shortest } else { Nanos::ZERO };
        let map = self.kept.as_fd();
        let (threads, _) = all_keys(|key| sys::map_next_key(map, key), MOST_KEPT_THREADS)
            .map_err(|source| BpfError::Map { what: "open calls", source })?;
        let mut waits = if which == Held::Long { 0 } else { WAITS };
        let changes = self.changes();
        for tid in threads {
            let mut attempts = ATTEMPTS;
            let again = || {
                attempts = attempts.saturating_sub(1);
                if attempts == 0 && waits > 0 {
                    waits -= 1;
                    attempts = 1;
                    std::thread::sleep(WAIT);
                }
                attempts > 0
            };
            // A thread that is gone has delivered them.
            let read = |words: &mut [u64]| sys::map_lookup(map, tid, words).is_ok();
            if let Some(words) = between_changes(read, again) {
                if which == Held::GivenUp && words[offset_of!(KeptCalls, changes) / 8] == changes {
                    continue;
                }
                let calls = held_of(tid, &words).into_iter();
                held.extend(calls.filter(|call| now.since(call.start) >= age));
            }
        }
        Ok(held)
    }
}

/// Returns the calls of a thread as they are while it does not change them. `read` returns false if there are
/// none any more, and `again` if it is to be given up.
fn between_changes(
    mut read: impl FnMut(&mut [u64]) -> bool,
    mut again: impl FnMut() -> bool,
) -> Option<Vec<u64>> {
    let (mut words, mut second) = (vec![0_u64; WORDS], vec![0_u64; WORDS]);
    loop {
        if !read(&mut words) || !read(&mut second) {
            return None;
        }
        let is_changing = !words[offset_of!(KeptCalls, changed) / 8].is_multiple_of(2);
        if words == second && !is_changing {
            return Some(words);
        }
        if !again() {
            return None;
        }
    }
}

/// Returns the calls of a thread whose entries are held.
fn held_of(tid: u32, words: &[u64]) -> Vec<HeldCall> {
    let half = |offset: usize| (words[offset / 8] >> (offset % 8 * 8)) as u32;
    let depth = (half(offset_of!(KeptCalls, depth)) as usize).min(MOST_KEPT);
    let delivered = half(offset_of!(KeptCalls, delivered)) as usize;
    let pid = Pid(half(offset_of!(KeptCalls, pid)));
    let calls = words[offset_of!(KeptCalls, calls) / 8..].chunks_exact(size_of::<KeptCall>() / 8);
    let held = calls.take(depth).skip(delivered).map(|call| HeldCall {
        pid,
        tid: Tid(tid),
        function: FuncId(call[offset_of!(KeptCall, function) / 8] as u32),
        sp: call[offset_of!(KeptCall, sp) / 8],
        start: Nanos(call[offset_of!(KeptCall, start) / 8]),
    });
    held.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads these numbers of changes, one after the other, and returns that of the calls that were read.
    fn read(changes: &[u64], most: u32) -> Option<u64> {
        let (mut numbers, mut attempts) = (changes.iter(), most);
        let at = offset_of!(KeptCalls, changed) / 8;
        let words = between_changes(
            |words| numbers.next().map(|number| words[at] = *number).is_some(),
            || {
                attempts -= 1;
                attempts > 0
            },
        );
        words.map(|words| words[at])
    }

    #[test]
    fn calls_are_read_while_their_thread_does_not_change_them() {
        assert_eq!(read(&[4, 4], 1), Some(4));
        // In the middle of a change, however long it takes.
        assert_eq!(read(&[5, 5], 1), None);
        assert_eq!(read(&[5, 5, 5, 5, 5, 6, 6, 6], 4), Some(6));
        // Between two of them.
        assert_eq!(read(&[4, 6, 6, 8, 8, 8], 3), Some(8));
        assert_eq!(read(&[4, 6, 6, 8, 8, 8], 2), None);
        // The thread has ended.
        assert_eq!(read(&[4], 9), None);
    }
}
