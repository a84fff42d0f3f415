//! Values of events, as a ring delivers them and as recordings, reports and exports have them.
//!
//! The [`FunctionInfo`](crate::function::FunctionInfo) of their probe tells their meaning. They
//! travel apart from events, so that an event stays four words.

use crate::units::{FuncId, Nanos, Pid, Tid};
use ctrace_common::{MAX_VALUES, PAYLOAD_SLOTS, Record, SLOT_LEN, payload_slots};

/// A value of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value {
    /// A signed integer.
    Signed(i64),
    /// An unsigned integer.
    Unsigned(u64),
}

impl std::fmt::Display for Value {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Signed(value) => value.fmt(f),
            Self::Unsigned(value) => value.fmt(f),
        }
    }
}

/// The values that a program read at one event of a thread. The event has the same time and probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingPayload {
    pub time: Nanos,
    pub pid: Pid,
    pub tid: Tid,
    pub function: FuncId,
    /// One bit for each value that could not be read; the first value has the lowest bit.
    unread: u64,
    /// A word for each slot. Those beyond the function's values are 0.
    words: [u64; MAX_VALUES],
    slots: u8,
}

impl RingPayload {
    /// Reads the payload of a record and the slots after it. Returns `None` if its length is wrong.
    pub(crate) fn from_wire(record: &Record, rest: &[u8]) -> Option<Self> {
        let slots = 1 + rest.len() / SLOT_LEN;
        let fits = rest.len().is_multiple_of(SLOT_LEN)
            && (2..=PAYLOAD_SLOTS).contains(&slots)
            && usize::from(record.lost_before) == slots;
        let mut words = [0; MAX_VALUES];
        let (wire, _) = rest.as_chunks();
        for (word, bytes) in words.iter_mut().zip(wire) {
            *word = u64::from_le_bytes(*bytes);
        }
        fits.then_some(Self {
            time: Nanos(record.ts_ns),
            pid: Pid(record.pid),
            tid: Tid(record.tid),
            function: FuncId(record.probe),
            unread: record.sp,
            words,
            slots: slots as u8,
        })
    }

    /// Returns the first `count` values as 64 bits each, or `None` for one that could not be read.
    /// There are fewer if the record had no room for them.
    pub fn values(&self, count: usize) -> impl Iterator<Item = Option<u64>> {
        let has_room = (0..=MAX_VALUES).rev().find(|n| payload_slots(*n) <= self.slots.into());
        let words = self.words.iter().take(count.min(has_room.unwrap_or(0)));
        words.enumerate().map(|(place, word)| (self.unread >> place & 1 == 0).then_some(*word))
    }
}
