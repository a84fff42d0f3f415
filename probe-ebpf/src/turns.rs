//! Loops with few paths. The verifier follows every turn of a loop until it knows no more than at a
//! turn before, and would follow a hundred of those that count.

use crate::{output::now, settings};
use core::arch::asm;

/// Repeats `turn` with numbers from 0 on, until it returns false or was called `most` times.
///
/// What the verifier does not know of a number at the first turn it does not learn later. A kernel that
/// is too old for the instruction that makes it compare turns follows all of them.
#[inline(always)]
pub fn repeat(most: u32, mut turn: impl FnMut(u32) -> bool) {
    if settings::COMPARES_TURNS.load() == 0 {
        for number in 0..most {
            if !turn(number) {
                return;
            }
        }
        return;
    }
    let mut number = unknown_zero();
    while number < most as u64 && turn(number as u32) {
        // In Rust, the compiler would add a count from a known 0 to the unknown one.
        // SAFETY: it changes one register.
        unsafe { asm!("{number} += 1", number = inout(reg) number, options(nomem, nostack)) };
        // SAFETY: it only jumps.
        unsafe { asm!("may_goto {}", label { break }) };
    }
}

/// Returns 0, of which neither the compiler nor the verifier knows.
#[inline(always)]
pub fn unknown_zero() -> u64 {
    let unknown = now();
    let mut zero = unknown;
    // SAFETY: it changes one register.
    unsafe {
        asm!(
            "{zero} -= {unknown}",
            zero = inout(reg) zero,
            unknown = in(reg) unknown,
            options(nomem, nostack)
        );
    }
    zero
}
