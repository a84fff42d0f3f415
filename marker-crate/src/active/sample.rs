//! Writes the value of a plot. A small integer, also as a float, is in the slot of the entry, in place of
//! those bits of the stack pointer that the buffer's tells as well.

use super::{
    buffer::{Buffer, FIRST, LAST, SAMPLE},
    clock, enter, list,
    record::{Record, low, record, tag},
    slow, thread,
};
use core::sync::atomic::Ordering::Relaxed;

/// The position of the value, and the bit below it that says that it is a float.
const SHIFT: u32 = 48;
const IS_FLOAT: u64 = 1 << (SHIFT - 1);
/// The most bytes from the buffer's stack pointer.
const NEAR: u64 = 1 << 19;

/// Writes an integer.
#[cold]
#[inline(never)]
pub(super) fn integer(site: u64, sp: u64, bits: u64) {
    write(site, sp, bits, i16::try_from(bits as i64).ok().map(at_shift));
}

/// Writes a float of these bits.
#[cold]
#[inline(never)]
pub(super) fn float(site: u64, sp: u64, bits: u64) {
    write(site, sp, bits, small_integer(bits).map(|small| at_shift(small) | IS_FLOAT));
}

#[inline]
fn at_shift(small: i16) -> u64 {
    u64::from(small as u16) << SHIFT
}

/// Returns the integer that a float of these bits is, if it has 16 bits. No floating-point instruction
/// does this, as these may raise the program's floating-point exceptions.
#[inline]
fn small_integer(bits: u64) -> Option<i16> {
    const FRACTION: u32 = 52;
    const ONE: u64 = 1 << FRACTION;
    if bits == 0 {
        return Some(0);
    }
    let exponent = (bits >> FRACTION & 0x7ff).wrapping_sub(1023);
    if exponent >= 15 {
        return None;
    }
    let (mantissa, below) = (bits & (ONE - 1) | ONE, FRACTION - exponent as u32);
    let magnitude = (mantissa >> below) as i16;
    let is_integer = mantissa & ((1 << below) - 1) == 0;
    is_integer.then_some(if bits >> 63 == 0 { magnitude } else { -magnitude })
}

/// Writes the value as `small` if it has that form, the stack pointer is near the buffer's, and the
/// buffer is not full.
#[inline]
fn write(site: u64, sp: u64, bits: u64, small: Option<u64>) {
    let (Some(small), Some(buffer)) = (small, list::at(enter::fast())) else {
        return record(site, sp, &[bits], None);
    };
    if !is_near(buffer, sp) {
        return record(site, sp, &[bits], None);
    }
    let word0 = low(sp) | clock::tsc() & clock::MASK;
    let position = buffer.take(16);
    if (FIRST..LAST).contains(&position)
        && let [slot, ..] = buffer.slots_from(position)
    {
        return slot.write(word0, site | SAMPLE | small);
    }
    // Another buffer may have another stack pointer.
    let record = Record { word0, word1: tag(site, sp), values: &[bits], text: None };
    slow::write(thread::this_thread(), Some((buffer, position)), record);
}

/// Returns whether bits 4 to 19 tell all bits of the stack pointer, given the buffer's.
#[inline]
fn is_near(buffer: &Buffer, sp: u64) -> bool {
    let stack = buffer.stack.load(Relaxed) as u64;
    (sp & !15).wrapping_sub(stack).wrapping_add(NEAR) < 2 * NEAR
}

#[cfg(test)]
mod tests {
    use super::*;
    use ctrace_common::Mark;

    #[test]
    fn only_small_integers_have_the_short_form() {
        for small in i16::MIN + 1..=i16::MAX {
            assert_eq!(small_integer(f64::from(small).to_bits()), Some(small));
        }
        let others = [-0.0, 0.5, -1.5, 32_768.0, -32_768.0, 32_766.5, 1e300, 5e-324, f64::INFINITY];
        for other in others.into_iter().chain([f64::NAN, f64::NEG_INFINITY, f64::MIN_POSITIVE]) {
            assert_eq!(small_integer(other.to_bits()), None, "{other}");
        }
    }

    #[test]
    fn the_value_is_where_ctrace_reads_it() {
        let mark = |tag| Mark { time: 0, tag }.sample();
        assert_eq!(mark(at_shift(-7)), (-7, false));
        assert_eq!(mark(at_shift(i16::MAX) | IS_FLOAT), (i16::MAX, true));
        assert_eq!(2 * NEAR, 1 << Mark::SP_NEAR);
    }
}
