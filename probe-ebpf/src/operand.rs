//! The numbers that a probe finds in registers and memory.

use crate::registers::Registers;
use aya_ebpf::helpers::bpf_probe_read_user;
use ctrace_common::{NO_REGISTER, Operand};

/// All 64 bits of an operand; `None` where its memory cannot be read.
#[inline(always)]
pub fn address(operand: &Operand, registers: &Registers<'_>) -> Option<u64> {
    // On the stack, because the verifier allows no variable offset into the context.
    let general = registers.general();
    let mut address = operand.displacement as u64;
    if operand.base != NO_REGISTER {
        address = address.wrapping_add(general[(operand.base & 15) as usize]);
    }
    if operand.index != NO_REGISTER {
        let index = general[(operand.index & 15) as usize];
        address = address.wrapping_add(index.wrapping_mul(operand.scale as u64));
    }
    if operand.relative != 0 {
        address = address.wrapping_add(registers.ip());
    }
    if operand.memory == 0 {
        return Some(address);
    }
    // SAFETY: the helper checks the address itself and fails on a bad one.
    unsafe { bpf_probe_read_user(address as *const u64) }.ok()
}
