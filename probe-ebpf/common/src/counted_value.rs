//! The values by which calls are counted apart (`--by`): they are a part of the path of their call.

use crate::MAX_TEXT;

/// The lowest bit of a value's number in the keys of `PATHS`.
pub const VALUE_SHIFT: u32 = 48;
/// The number of paths whose function is called with no value that counts.
pub const NO_VALUE: u32 = 0;
/// Values that have numbers of their own, at most. Their numbers begin with 1.
pub const MOST_COUNTED_VALUES: u32 = 1024;
/// The number of values that could not be read.
pub const UNREAD_VALUE: u32 = 0xfffe;
/// The number of all values that found no room.
pub const OTHER_VALUES: u32 = 0xffff;

/// Words for a text, and for the 0 behind it.
const TEXT_WORDS: usize = MAX_TEXT / 8 + 1;

/// A value as a program reads it: an element of the map `COUNTED_VALUES`, and a key of `VALUE_NUMBERS`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountedValue {
    /// The bits of [`TEXTS`](crate::TEXTS) and [`SINGLES`](crate::SINGLES), for the first value.
    pub forms: u64,
    /// The number, or the length of a text.
    pub word: u64,
    /// The bytes of a text, and zeros.
    pub text: [u64; TEXT_WORDS],
}

const _: () = assert!(size_of::<CountedValue>() == 88);
const _: () = assert!(MOST_COUNTED_VALUES < UNREAD_VALUE && OTHER_VALUES == 0xffff);
