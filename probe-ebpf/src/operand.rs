//! Reads the numbers that a probe needs from registers and memory.

use crate::registers::Registers;
use aya_ebpf::helpers::{self, generated::bpf_probe_read_user};
use core::ffi::c_void;
use ctrace_common::{NO_REGISTER, Operand};

/// Returns all 64 bits of an operand, or `None` if its memory cannot be read.
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
    unsafe { helpers::bpf_probe_read_user(address as *const u64) }.ok()
}

/// Evaluates many operands. The branches of [`address`] are cheaper for a single operand, but the
/// verifier would follow all their combinations. So nearly all of this is arithmetic.
pub struct Operands {
    /// On the stack, because the verifier allows no variable offset into the context.
    general: [u64; 16],
    ip: u64,
}

impl Operands {
    #[inline(always)]
    pub fn of(registers: &Registers<'_>) -> Self {
        Self { general: registers.general(), ip: registers.ip() }
    }

    /// Returns the number of an operand, cut to its size, and 0. If it cannot be read, the second is 1.
    /// `FOLLOWS`: a pointer may have to be followed first.
    #[inline(always)]
    pub fn value<const FOLLOWS: bool>(&self, operand: &Operand) -> (u64, u64) {
        let number = (operand.near() as u64)
            .wrapping_add(self.register(operand.base))
            .wrapping_add(self.register(operand.index).wrapping_mul(operand.scale as u64))
            .wrapping_add(self.ip.wrapping_mul(operand.relative as u64));
        read::<FOLLOWS>(operand, number)
    }

    #[inline(always)]
    fn register(&self, number: u8) -> u64 {
        let absent = (number as i8 >> 7) as u64;
        self.general[(number & 15) as usize] & !absent
    }
}

/// Returns the number of an operand of a result, and 0 or 1 as [`Operands::value`] does. `results`: rax
/// and rdx, of which one is its base.
#[inline(always)]
pub fn of_result(operand: &Operand, results: [u64; 2]) -> (u64, u64) {
    let base = match operand.base {
        0 => results[0],
        2 => results[1],
        _ => 0,
    };
    read::<true>(operand, base.wrapping_add(operand.near() as u64))
}

/// Returns an operand's number, cut to its size, and 0. The number is `number` itself, or is read at
/// that address, or a pointer at that address leads to it. If it cannot be read, the second is 1.
#[inline(always)]
fn read<const FOLLOWS: bool>(operand: &Operand, mut number: u64) -> (u64, u64) {
    // The size is forced into 1 to 8, so that the verifier sees that the number has room for it.
    let size = (operand.size.wrapping_sub(1) as u32 & 7) + 1;
    let mut unread = 0;
    if FOLLOWS && operand.memory & Operand::FOLLOW != 0 {
        let mut pointer = 0u64;
        let address = number as *const c_void;
        // SAFETY: 8 bytes, for which there is room. The helper checks the address itself.
        let error = unsafe { bpf_probe_read_user((&raw mut pointer).cast(), 8, address) };
        unread = error as u64 >> 63;
        number = pointer.wrapping_add(operand.onward() as u64);
    }
    if operand.memory & Operand::READ != 0 {
        let address = number as *const c_void;
        number = 0;
        // SAFETY: at most 8 bytes. The helper checks the address itself, and leaves 0 if it is a bad
        // one.
        let error = unsafe { bpf_probe_read_user((&raw mut number).cast(), size, address) };
        unread |= error as u64 >> 63;
    }
    (cut(operand, number >> (operand.shift & 63), size), unread)
}

/// Cuts a number to this many bytes, and extends its sign if it has one.
#[inline(always)]
fn cut(operand: &Operand, number: u64, size: u32) -> u64 {
    let cut = 64 - 8 * size;
    let number = number << cut >> cut;
    // A sign of 0 changes nothing.
    let sign = (operand.signed as u64) << (63 - cut);
    (number ^ sign).wrapping_sub(sign)
}

// `register` recognises it by its sign.
const _: () = assert!((NO_REGISTER as i8) < 0);
