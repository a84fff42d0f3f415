//! Finds instructions that read or write their function's return address.
//!
//! A return probe replaces that address. `dlsym(RTLD_NEXT)` reads it to learn its caller; `setjmp`
//! and `vfork` keep it to come back. With a return probe they would compute something else. The
//! unwind table gives the address's place at each instruction.

use crate::target::elf::frames::Cfa;
use iced_x86::{Instruction, Mnemonic, OpKind, Register};

/// Returns whether the instruction names the stack slot of the return address, given the frame's
/// base. `ret` itself does not count.
pub(crate) fn touches_return_address(instruction: &Instruction, cfa: Option<Cfa>) -> bool {
    let (base, distance) = match cfa {
        Some(Cfa::Rsp(offset)) => (Register::RSP, offset - 8),
        Some(Cfa::Rbp(offset)) => (Register::RBP, offset - 8),
        Some(Cfa::Other) | None => return false,
    };
    if base == Register::RSP && distance == 0 && instruction.mnemonic() == Mnemonic::Pop {
        return true;
    }
    let has_memory =
        (0..instruction.op_count()).any(|op| instruction.op_kind(op) == OpKind::Memory);
    has_memory
        && instruction.mnemonic() != Mnemonic::Nop
        && instruction.memory_base() == base
        && instruction.memory_index() == Register::None
        && instruction.memory_displacement64() as i64 == distance
}
