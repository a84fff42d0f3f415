//! An indirect jump, described so that the eBPF program can compute where it goes.
//!
//! `jmp *table(,%rax,8)` is a switch or a tail call with the same bytes; only its target tells.

/// No register in this place of the operand.
pub const NO_REGISTER: u8 = 0xff;

/// The operand of an indirect jump and the code that still belongs to the function.
///
/// Registers are numbered as in x86-64 encodings: rax 0, rcx 1, rdx 2, rbx 3, rsp 4, rbp 5, rsi 6,
/// rdi 7, r8–r15. Addresses are relative to the jump's own address, so they hold wherever the
/// object is mapped. The jump leaves the function when its target lies in none of `inside`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JumpTarget {
    /// `[low, high)` relative to the jump; an unused range is `[0, 0)`.
    pub inside: [[i64; 2]; 4],
    /// Displacement of a memory operand; for a RIP-relative one, relative to the jump.
    pub displacement: i64,
    /// The register jumped to, or the base of a memory operand, or [`NO_REGISTER`].
    pub base: u8,
    /// Index register or [`NO_REGISTER`].
    pub index: u8,
    /// 1, 2, 4 or 8.
    pub scale: u8,
    /// 1: the target is read from memory; 0: it is the register `base`.
    pub memory: u8,
    /// 1: the address is relative to the jump (RIP-relative).
    pub relative: u8,
    pub reserved: [u8; 3],
}

const _: () = assert!(size_of::<JumpTarget>() == 80);
