//! Where an indirect jump goes.

use crate::{maps::JUMPS, registers::Registers};
use aya_ebpf::helpers::bpf_probe_read_user;
use ctrace_common::{JumpTarget, NO_REGISTER};

/// Whether the jump at `registers.ip()` leaves its function; `None` if that cannot be told.
#[inline(always)]
pub fn leaves(index: u16, registers: &Registers<'_>) -> Option<bool> {
    let jump = JUMPS.get(index as u32)?;
    let target = target(jump, registers)?;
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

#[inline(always)]
fn target(jump: &JumpTarget, registers: &Registers<'_>) -> Option<u64> {
    // On the stack, because the verifier allows no variable offset into the context.
    let general = registers.general();
    let mut address = jump.displacement as u64;
    if jump.base != NO_REGISTER {
        address = address.wrapping_add(general[(jump.base & 15) as usize]);
    }
    if jump.index != NO_REGISTER {
        let index = general[(jump.index & 15) as usize];
        address = address.wrapping_add(index.wrapping_mul(jump.scale as u64));
    }
    if jump.relative != 0 {
        address = address.wrapping_add(registers.ip());
    }
    if jump.memory == 0 {
        return Some(address);
    }
    // SAFETY: the helper checks the address itself and fails on a bad one.
    unsafe { bpf_probe_read_user(address as *const u64) }.ok()
}
