//! Recognizes the stack check at the beginning of Go's functions.
//!
//! If there is no room, the runtime moves the goroutine to a larger stack and jumps back to the
//! function's first instruction, with another stack pointer. A probe there would count one call as
//! two. Behind the check it is hit once.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

/// The longest check has five instructions.
const LONGEST: usize = 6;
/// The offset of the stack's limit in a goroutine.
const LIMIT: u64 = 0x10;

/// Returns the address behind the check at `address`, if there is one.
pub(super) fn behind_stack_check(bytes: &[u8], address: u64) -> Option<u64> {
    let mut decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let mut is_compared = false;
    for instruction in decoder.iter().take(LONGEST) {
        if instruction.flow_control() == FlowControl::ConditionalBranch {
            if is_compared {
                return Some(instruction.next_ip());
            }
        } else if compares_with_limit(&instruction) {
            is_compared = true;
        } else if is_compared || !makes_ready(&instruction) {
            return None;
        }
    }
    None
}

/// Returns true if a function may end with another word in `r14` than it began with, such as one that is
/// written in assembly. The goroutine is not known there.
pub(super) fn loses_goroutine(instructions: &[Instruction]) -> bool {
    let of = |it: &&Instruction| {
        it.op0_kind() == OpKind::Register && it.op0_register().full_register() == Register::R14
    };
    let reads = |mnemonic| {
        matches!(mnemonic, Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push | Mnemonic::Bt)
    };
    // C keeps it on the stack, and wrappers of assembly read it from thread-local memory again.
    let is_restored = instructions.iter().filter(of).any(|it| it.mnemonic() == Mnemonic::Pop);
    let mut written = instructions.iter().filter(of).filter(|it| !reads(it.mnemonic()));
    !is_restored && written.any(|it| it.memory_segment() != Register::FS)
}

/// Recognizes `cmp rsp, [r14+0x10]`. Functions with large frames compare `r12`.
fn compares_with_limit(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Cmp
        && matches!(instruction.op0_register(), Register::RSP | Register::R12)
        && instruction.op1_kind() == OpKind::Memory
        && instruction.memory_base() == Register::R14
        && instruction.memory_displacement64() == LIMIT
}

/// Recognizes the instruction that puts the frame's end into `r12`.
fn makes_ready(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Lea | Mnemonic::Mov | Mnemonic::Sub)
        && instruction.op0_register() == Register::R12
}
