//! The only definition of a marker buffer's layout: the programs, ctrace and the tests of both
//! runtimes use it. `docs/marker-format.md` explains the fields.
//!
//! The runtimes are built without this crate. So each repeats the layout in its own language, and
//! tests of the marker crate compare both with this one.

use crate::words::{u16_at, u32_at, u64_at};
use core::mem::offset_of;

/// Bytes of a buffer.
pub const BUFFER_LEN: usize = 4096;
/// Bytes of its header; the slots follow.
pub const HEADER_LEN: usize = size_of::<BufferHeader>();
/// Slots of a buffer.
pub const BUFFER_SLOTS: usize = (BUFFER_LEN - HEADER_LEN) / MARK_LEN;
/// Bytes of a slot.
pub const MARK_LEN: usize = size_of::<Mark>();
/// `magic` of a buffer: a name and the version.
pub const BUFFER_MAGIC: u64 = u64::from_le_bytes(*b"ctraceb\x01");
/// `clock` of a writer that reads the TSC.
pub const CLOCK_TSC: u8 = 1;
/// `clock` of a writer that reads CLOCK_MONOTONIC.
pub const CLOCK_MONOTONIC: u8 = 2;
/// Buffers of one thread: one for each copy of a runtime that it used, and nested ones.
pub const BUFFERS_PER_THREAD: u32 = 8;

/// The first bytes of a buffer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferHeader {
    /// [`BUFFER_MAGIC`].
    pub magic: u64,
    /// Address of the next buffer of the list, or 0.
    pub next: u64,
    /// Its thread, in the target's pid namespace; 0 if nobody owns it.
    pub tid: u32,
    /// Offset of the next free slot.
    pub position: u32,
    /// Address of the buffer to use while this one is emptied, or 0.
    pub nested: u64,
    /// Events written in all earlier batches.
    pub events: u64,
    /// [`CLOCK_TSC`] or [`CLOCK_MONOTONIC`].
    pub clock: u8,
    /// 1 while its thread empties it.
    pub flushing: u8,
    /// Slots of this batch that hold a whole call.
    pub whole: u16,
    pub reserved: u32,
    /// The number of times that it was emptied.
    pub batch: u64,
    /// A stack pointer of its thread.
    pub stack: u64,
}

impl BufferHeader {
    pub fn from_bytes(bytes: &[u8; HEADER_LEN]) -> Self {
        Self {
            magic: u64_at(bytes, offset_of!(Self, magic)),
            next: u64_at(bytes, offset_of!(Self, next)),
            tid: u32_at(bytes, offset_of!(Self, tid)),
            position: u32_at(bytes, offset_of!(Self, position)),
            nested: u64_at(bytes, offset_of!(Self, nested)),
            events: u64_at(bytes, offset_of!(Self, events)),
            clock: bytes[offset_of!(Self, clock)],
            flushing: bytes[offset_of!(Self, flushing)],
            whole: u16_at(bytes, offset_of!(Self, whole)),
            reserved: u32_at(bytes, offset_of!(Self, reserved)),
            batch: u64_at(bytes, offset_of!(Self, batch)),
            stack: u64_at(bytes, offset_of!(Self, stack)),
        }
    }

    /// Returns the address of a batch's flush site, or 0.
    pub const fn passed_site(&self) -> u64 {
        self.whole as u64 | (self.reserved as u64) << u16::BITS
    }
}

/// The offset of the low 48 bits of that address, which the programs write over `whole` and
/// `reserved`.
pub const PASSED_SITE: usize = offset_of!(BufferHeader, whole);
/// The number of these bytes.
pub const PASSED_SITE_LEN: usize = offset_of!(BufferHeader, batch) - PASSED_SITE;

/// A slot of a buffer: an event of a scope, or both of a whole call.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Mark {
    /// The low [`TIME_BITS`](Self::TIME_BITS) of the clock, then bits 4–19 of the stack pointer.
    pub time: u64,
    /// The event and the scope, see the constants; then the other bits of the stack pointer, or the
    /// duration of a whole call.
    pub tag: u64,
}

impl Mark {
    /// Bits of the writer's clock.
    pub const TIME_BITS: u32 = 48;
    /// In `tag`: the scope is left.
    pub const EXIT: u64 = 1;
    /// In `tag`: the scope is entered and left.
    pub const WHOLE: u64 = 1 << 1;
    /// In `tag`: the kind, 0 for a scope.
    pub const KIND: u64 = 0b111 << 2;
    /// A kind: the first piece of the name of the entry behind.
    pub const NAME_BEGINS: u64 = 1 << 2;
    /// A kind: a further piece of that name.
    pub const NAME_GOES_ON: u64 = 2 << 2;
    /// A kind: nothing.
    pub const FILLER: u64 = 3 << 2;
    /// A kind: a value of the entry behind, see [`value`](Self::value).
    pub const VALUE: u64 = 4 << 2;
    /// A kind: a piece of at least 8 bytes with which the name of the entry behind begins. Its first
    /// bytes are in `time`, inverted.
    pub const LONG_NAME_BEGINS: u64 = 5 << 2;
    /// A kind: a further piece of at least 8 bytes of that name.
    pub const LONG_NAME_GOES_ON: u64 = 6 << 2;
    /// A kind: the entry of a point with its one value, a small integer, in place of bits of the stack
    /// pointer. See [`sample`](Self::sample).
    pub const SAMPLE: u64 = 7 << 2;
    /// In a [`SAMPLE`](Self::SAMPLE): the value is a float.
    pub const SAMPLE_IS_FLOAT: u64 = 1 << Self::REST_SHIFT;
    /// The position of a [`SAMPLE`](Self::SAMPLE)'s value.
    pub const SAMPLE_SHIFT: u32 = Self::REST_SHIFT + 1;
    /// The position in `tag` of a piece's number of bytes there; the bytes are those above the lowest.
    pub const PIECE_SHIFT: u32 = 5;
    /// The most bytes of a piece: 8 in `time`, the others in `tag`.
    pub const LONGEST_PIECE: usize = 15;
    /// The most bytes of a name.
    pub const LONGEST_NAME: usize = 252;
    /// The most bytes of a text that is a value.
    pub const LONGEST_TEXT: usize = 1008;
    /// The most values of an entry.
    pub const MOST_VALUES: usize = 4;
    /// The position in `tag` of the rest of the stack pointer, or of the duration.
    pub const REST_SHIFT: u32 = 47;
    /// In `tag`: the address of the scope's entry in `ctrace_sites`.
    pub const SITE: u64 = ((1 << Self::REST_SHIFT) - 1) & !0x1f;
    /// The lowest transmitted bit of a stack pointer.
    pub const SP_LOW: u32 = 4;
    /// One above the highest bit in `time`.
    pub const SP_NEAR: u32 = Self::SP_LOW + u64::BITS - Self::TIME_BITS;
    /// One above the highest bit in both words.
    pub const SP_HIGH: u32 = Self::SP_NEAR + u64::BITS - Self::REST_SHIFT;

    #[inline]
    pub fn from_bytes(bytes: &[u8; MARK_LEN]) -> Self {
        Self {
            time: u64_at(bytes, offset_of!(Self, time)),
            tag: u64_at(bytes, offset_of!(Self, tag)),
        }
    }

    /// Returns whether `time` has the clock. Long pieces of a name have bytes there.
    #[inline]
    pub const fn has_time(&self) -> bool {
        !matches!(self.tag & Self::KIND, Self::LONG_NAME_BEGINS | Self::LONG_NAME_GOES_ON)
    }

    /// Returns the bytes of a piece of a name, and their number.
    #[inline]
    pub const fn piece(&self) -> ([u8; Self::LONGEST_PIECE], usize) {
        let [head, a, b, c, d, e, f, g] = self.tag.to_le_bytes();
        let in_tag = (head >> Self::PIECE_SHIFT) as usize;
        if self.has_time() {
            return ([a, b, c, d, e, f, g, 0, 0, 0, 0, 0, 0, 0, 0], in_tag);
        }
        let [h, i, j, k, l, m, n, o] = (!self.time).to_le_bytes();
        ([h, i, j, k, l, m, n, o, a, b, c, d, e, f, g], 8 + in_tag)
    }

    /// Returns the integer of a [`SAMPLE`](Self::SAMPLE), and whether it is the value of a float.
    #[inline]
    pub const fn sample(&self) -> (i16, bool) {
        let integer = (self.tag >> Self::SAMPLE_SHIFT) as i16;
        (integer, self.tag & Self::SAMPLE_IS_FLOAT != 0)
    }

    /// Returns the 64 bits of a [`VALUE`](Self::VALUE): 16 above the time, 48 above the kind.
    #[inline]
    pub const fn value(&self) -> u64 {
        const LOW: u32 = u64::BITS - Mark::TIME_BITS;
        self.time >> Self::TIME_BITS | self.tag >> LOW << LOW
    }
}

/// The numbers in an entry of `ctrace_sites`.
#[derive(Clone, Copy, Debug)]
pub struct SiteEntry;

impl SiteEntry {
    /// A flag: the scope is its whole function.
    pub const WHOLE_FUNCTION: u8 = 1;
    /// A flag: names come with the scope's entries.
    pub const NAMED_LATE: u8 = 1 << 1;
    /// A flag: entries are points in time.
    pub const POINT: u8 = 1 << 2;
    /// A flag: values come with the entries, and the name is followed by their list.
    pub const VALUES: u8 = 1 << 3;
    /// A flag: the group is followed by a colour.
    pub const COLOURED: u8 = 1 << 4;
    /// The shape of a point: a message.
    pub const MESSAGE: u8 = 1;
    /// The shape of a point: a value of a plot.
    pub const PLOT: u8 = 2;
    /// The shape of a point: a frame ends, and the next one begins.
    pub const FRAME: u8 = 3;
    /// The shape of a point: the program asks for CTRACK's tables of its calls.
    pub const REQUEST: u8 = 4;
    /// The shape of a scope: its calls are polls of an async function, and its value an
    /// [`AsyncCall`](crate::AsyncCall).
    pub const ASYNC: u8 = 5;
    /// The highest level of a message: error. The lowest is 1, trace; 0 is none.
    pub const HIGHEST_LEVEL: u8 = 5;
}

/// A buffer that a thread has registered, and the thread's id in its own pid namespace. The buffer
/// has this id, too, while it belongs to the thread.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ThreadBuffer {
    pub address: u64,
    pub tid: u64,
}

/// Identifies a buffer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BufferKey {
    pub pid: u64,
    pub address: u64,
}

const _: () = assert!(HEADER_LEN == 64 && MARK_LEN == 16 && BUFFER_SLOTS == 252);
