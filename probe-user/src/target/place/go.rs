//! The beginning of Go's functions: is there room on the stack?
//!
//! Where there is not, the runtime moves the goroutine to a larger stack and jumps back to the
//! function's first instruction, with another stack pointer. A probe there would take one call for
//! two; behind the check it is hit once.

use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction, Mnemonic, OpKind, Register};

/// The longest check has five instructions.
const LONGEST: usize = 6;
/// Where a goroutine has the limit of its stack.
const LIMIT: u64 = 0x10;

/// Behind the check that the code at `address` begins with, if it does.
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

/// `cmp rsp, [r14+0x10]`; in functions with large frames, `r12` is compared.
fn compares_with_limit(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Cmp
        && matches!(instruction.op0_register(), Register::RSP | Register::R12)
        && instruction.op1_kind() == OpKind::Memory
        && instruction.memory_base() == Register::R14
        && instruction.memory_displacement64() == LIMIT
}

/// Puts into `r12` where the frame would end.
fn makes_ready(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Lea | Mnemonic::Mov | Mnemonic::Sub)
        && instruction.op0_register() == Register::R12
}
