//! Conditions on the arguments of a function: a call that does not meet that of its function makes
//! no events.
//!
//! A condition is a list of comparisons in alternatives. It holds if all comparisons of one
//! alternative hold. One whose value cannot be read does not.

use crate::operand::Operand;

/// The largest number of comparisons in a condition.
pub const MAX_COMPARISONS: usize = 6;
/// Bytes of a text that a program reads to compare it. A text to compare with is at least two bytes
/// shorter: a byte tells whether the other one goes on, and one is the 0 behind it.
pub const COMPARED_TEXT: usize = 8 * TEXT_WORDS;
const TEXT_WORDS: usize = 4;

/// The bits of [`Comparison::relation`]: which outcomes make it hold.
pub const LESS: u8 = 1;
pub const EQUAL: u8 = 2;
pub const GREATER: u8 = 4;

/// The kinds of [`Comparison::kind`].
pub const NUMBER: u8 = 0;
pub const TEXT: u8 = 1;
/// A floating-point number of 4 or 8 bytes, read with its sign.
pub const FLOAT: u8 = 2;

/// The highest bit. With it flipped, signed numbers are in the order of unsigned ones.
pub const SIGN: u64 = 1 << 63;

/// Counters of a condition in the map `UNMET`: calls that did not meet it, and those of them whose
/// values could not all be read.
pub const UNMET_COUNTERS: u32 = 2;

/// Elements of the map `MET`: threads share them by their ids.
pub const MET_SLOTS: u32 = 1 << 14;

/// A value and what it is compared with.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Comparison {
    /// The number, or the address of a text.
    pub operand: Operand,
    /// The number to compare with. For signed ones, flipped as the value is; 0 for texts.
    pub number: u64,
    /// [`SIGN`] for signed numbers, and 0 for others: the bits of the value to flip. For floating-point
    /// numbers the bits of infinity: what has a larger magnitude is no number.
    pub flip: u64,
    /// Sums of [`LESS`], [`EQUAL`] and [`GREATER`]. Two texts are equal, or one is greater.
    pub relation: u8,
    /// [`NUMBER`], [`TEXT`] or [`FLOAT`].
    pub kind: u8,
    /// 1 for the first one of an alternative.
    pub begins: u8,
    /// Always 0; keeps the layout free of implicit padding.
    pub reserved: [u8; 5],
    /// The text to compare with, and zeros behind it.
    pub text: [u64; TEXT_WORDS],
}

/// An element of the map `CONDITIONS`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Condition {
    /// The number of used elements of `comparisons`.
    pub count: u32,
    /// Always 0; keeps the layout free of implicit padding.
    pub reserved: u32,
    pub comparisons: [Comparison; MAX_COMPARISONS],
}

/// Returns a number whose order among its like is that of floating-point numbers with these bits, and
/// the bits of the magnitude. Both zeros are one number. `bits` has its sign in all bits above `size`
/// bytes.
#[inline(always)]
pub fn float_order(bits: u64, size: u32) -> (u64, u64) {
    let above = 65 - 8 * size;
    let magnitude = bits << above >> above;
    let sign = (bits as i64 >> 63) as u64;
    ((magnitude ^ sign).wrapping_sub(sign) ^ SIGN, magnitude)
}

const _: () = assert!(size_of::<Comparison>() == 40 + COMPARED_TEXT);
const _: () = assert!(size_of::<Condition>() == 8 + MAX_COMPARISONS * size_of::<Comparison>());
