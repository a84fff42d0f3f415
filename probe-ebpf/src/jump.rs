//! The target of an indirect jump.

use crate::{maps::JUMPS, operand, registers::Registers};

/// Returns whether the jump at `registers.ip()` leaves its function; `None` if that is unknown.
#[inline(always)]
pub fn leaves(index: u16, registers: &Registers<'_>) -> Option<bool> {
    let jump = JUMPS.get(index as u32)?;
    let target = operand::address(&jump.target, registers)?;
    let distance = target.wrapping_sub(registers.ip()) as i64;
    let [a, b, c, d] = &jump.inside;
    let inside = contains(a, distance)
        | contains(b, distance)
        | contains(c, distance)
        | contains(d, distance);
    Some(!inside)
}

#[inline(always)]
fn contains(range: &[i64; 2], distance: i64) -> bool {
    range[0] <= distance && distance < range[1]
}
