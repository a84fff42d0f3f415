//! An indirect jump, described so that the eBPF program can compute its target.
//!
//! `jmp *table(,%rax,8)` is a switch or a tail call with the same bytes; only the target differs.

use crate::operand::Operand;

/// The operand of an indirect jump, and the code that still belongs to the function.
///
/// Addresses are relative to the jump's own address, so they hold wherever the object is mapped.
/// The jump leaves the function if its target lies in none of `inside`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JumpTarget {
    /// `[low, high)` relative to the jump; an unused range is `[0, 0)`.
    pub inside: [[i64; 2]; 4],
    /// The target of the jump.
    pub target: Operand,
}

const _: () = assert!(size_of::<JumpTarget>() == 80);
