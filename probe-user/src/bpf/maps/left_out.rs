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
};

/// Entries are held no longer than events wait for older ones, so they come in time.
const LONGEST_HELD: Nanos = Nanos::from_millis(100);
/// The time in which a program at the end of a call surely counts it.
const MARGIN: Nanos = Nanos::from_millis(20);
const WORDS: usize = size_of::<KeptCalls>() / 8;

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

    /// Returns the calls whose entries are held although they have lasted long enough: their ends will be
    /// delivered. `is_over`: nothing is delivered any more, so all calls are returned that are open.
    pub(crate) fn held(&self, is_over: bool) -> Result<Vec<HeldCall>, BpfError> {
        let mut held = Vec::new();
        if self.thrift.shortest == Nanos::ZERO {
            return Ok(held);
        }
        let now = now();
        // An end may have been seen before that, and not be counted yet.
        let age = if is_over { Nanos::ZERO } else { self.thrift.shortest.saturating_add(MARGIN) };
        let map = self.kept.as_fd();
        let (threads, _) = all_keys(|key| sys::map_next_key(map, key), MOST_KEPT_THREADS)
            .map_err(|source| BpfError::Map { what: "open calls", source })?;
        let (mut words, mut again) = (vec![0_u64; WORDS], vec![0_u64; WORDS]);
        for tid in threads {
            // The thread may have ended, or may do something right now: then it has delivered them, or soon
            // will.
            let is_read = sys::map_lookup(map, tid, &mut words).is_ok()
                && sys::map_lookup(map, tid, &mut again).is_ok()
                && words == again;
            if is_read {
                let calls = held_of(tid, &words).into_iter();
                held.extend(calls.filter(|call| now.since(call.start) >= age));
            }
        }
        Ok(held)
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
