//! The contents of a ring: 32 bytes for an event of a call, 64 for a change in a process, and
//! batches of marker events after a record of 32 bytes.

use crate::words::{u16_at, u32_at, u64_at};
use core::mem::offset_of;

/// Bytes of a [`Record`].
pub const RECORD_LEN: usize = 32;
/// Bytes of a control record: a [`Record`], and the slot of a [`Change`](crate::Change).
pub const CONTROL_LEN: usize = 64;

/// One event: its thread, time and place on the stack.
///
/// `sp` is the stack pointer *at the function's entry*, for exits as well: on x86-64 the return
/// address lies there. The programs normalise it, so an exit matches its entry by equality.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Record {
    /// CLOCK_MONOTONIC, nanoseconds.
    pub ts_ns: u64,
    /// Stack pointer, see above; 0 in control records.
    pub sp: u64,
    /// Process (thread group) id in the initial pid namespace.
    pub pid: u32,
    /// Thread id in the initial pid namespace.
    pub tid: u32,
    /// Probe id from the attach cookie; 0 in control records.
    pub probe: u32,
    /// A [`Kind`].
    pub kind: u8,
    /// Always 0; keeps the layout free of implicit padding.
    pub reserved: u8,
    /// The number of events of this thread that were lost just before this one (saturating).
    pub lost_before: u16,
}

impl Record {
    pub fn from_bytes(bytes: &[u8; RECORD_LEN]) -> Self {
        Self {
            ts_ns: u64_at(bytes, offset_of!(Self, ts_ns)),
            sp: u64_at(bytes, offset_of!(Self, sp)),
            pid: u32_at(bytes, offset_of!(Self, pid)),
            tid: u32_at(bytes, offset_of!(Self, tid)),
            probe: u32_at(bytes, offset_of!(Self, probe)),
            kind: bytes[offset_of!(Self, kind)],
            reserved: bytes[offset_of!(Self, reserved)],
            lost_before: u16_at(bytes, offset_of!(Self, lost_before)),
        }
    }
}

/// The meaning of a record.
#[repr(u8)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A function was entered.
    Enter = 1,
    /// A function returned, seen by a return probe.
    Return = 2,
    /// A function reached a `ret` instruction (an entry-type probe sits on it).
    ExitRet = 3,
    /// A function leaves by a jump that is taken; counts only if the stack pointer matches.
    ExitJump = 4,
    /// A point, which has no duration, was passed: a USDT note.
    Point = 5,
    /// A marker scope was entered, as ctrace makes it from a marker's event. In a ring: the start of
    /// a pair of USDT probes, of which `sp` tells the end.
    ScopeEnter = 6,
    /// The end of such a scope or pair; `sp` is that of its entry.
    ScopeExit = 7,
    /// The values of an event; see [`payload`](crate::payload_slots).
    Payload = 8,
    /// Empty slots, as many as `lost_before` says.
    Skip = 9,
    /// The contents of a marker buffer, in as many slots as `lost_before` says. The record replaces
    /// the first 32 bytes. `sp` is the buffer's address, `probe` the runtime's number from the
    /// cookie. The six bytes beside the clock are the address of the flush site, or 0.
    Batch = 10,
    /// The start of a pair of USDT probes, of which only the order of a thread's events tells the
    /// end.
    PairEnter = 11,
    /// The end of such a pair.
    PairExit = 12,
    /// A function was entered by a call that does not meet its condition, and what was open there may
    /// be over.
    Unmet = 13,
    /// The thread has no processor from here on, or another reason for that. `probe` is a
    /// [`Cause`](crate::Cause); `sp` is 0.
    WaitBegin = 14,
    /// The thread has a processor again.
    WaitEnd = 15,
    /// A change in a process; each of these is described at its [`Change`](crate::Change).
    Fork = 16,
    Exec = 17,
    ThreadExit = 18,
    ProcessExit = 19,
    Rename = 20,
    Buffer = 21,
    Restored = 22,
    Wake = 23,
    /// An async function is polled, as ctrace makes it from a marker's event. It is never in a ring, nor
    /// are the next two.
    PollEnter = 24,
    /// The poll is over; `sp` is that of its entry.
    PollExit = 25,
    /// The call that is polled, or that has ended: `sp` is an [`AsyncCall`](crate::AsyncCall).
    AsyncCall = 26,
}

impl Kind {
    /// Returns true if it is an event of a call, in a ring.
    pub const fn is_event(self) -> bool {
        self as u8 <= Self::ScopeExit as u8
            || matches!(
                self,
                Self::PairEnter | Self::PairExit | Self::Unmet | Self::WaitBegin | Self::WaitEnd
            )
    }

    /// Returns true if it is a [`Change`](crate::Change).
    pub const fn is_change(self) -> bool {
        self as u8 >= Self::Fork as u8 && self as u8 <= Self::Wake as u8
    }

    /// Returns the kind for a byte from the wire, if it is one.
    pub const fn from_wire(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::Enter,
            2 => Self::Return,
            3 => Self::ExitRet,
            4 => Self::ExitJump,
            5 => Self::Point,
            6 => Self::ScopeEnter,
            7 => Self::ScopeExit,
            8 => Self::Payload,
            9 => Self::Skip,
            10 => Self::Batch,
            11 => Self::PairEnter,
            12 => Self::PairExit,
            13 => Self::Unmet,
            14 => Self::WaitBegin,
            15 => Self::WaitEnd,
            16 => Self::Fork,
            17 => Self::Exec,
            18 => Self::ThreadExit,
            19 => Self::ProcessExit,
            20 => Self::Rename,
            21 => Self::Buffer,
            22 => Self::Restored,
            23 => Self::Wake,
            24 => Self::PollEnter,
            25 => Self::PollExit,
            26 => Self::AsyncCall,
            _ => return None,
        })
    }
}

const _: () = assert!(size_of::<Record>() == RECORD_LEN && align_of::<Record>() == 8);
