//! Checks sites made to be probed: nops, of which only the short ones are safe.
//!
//! Linux 6.18 rewrites a 5-byte nop under a probe into a call, later kernels a 10-byte one, which
//! saves the trap. But a fork does not copy the page that the call leads to: a forked child dies
//! there of SIGSEGV. The call also writes below the stack pointer, into a red zone. So they are
//! never probed, on any kernel: it cannot be known beforehand which nops a kernel rewrites.

use crate::target::place::cost::cost;
use crate::target::place::deny::Refusal;
use crate::target::plan::{CostClass, EntrySite};
use iced_x86::{Decoder, DecoderOptions, Instruction, Mnemonic};

/// Returns whether some kernel rewrites it into a call.
pub(super) fn is_rewritten(instruction: &Instruction) -> bool {
    instruction.mnemonic() == Mnemonic::Nop && matches!(instruction.len(), 5 | 10)
}

/// Checks that a USDT note leads to a nop that carries a probe, as a compiler's notes do. A wrong
/// note, or changed code, is refused.
pub(crate) fn usdt_site(code: &[u8]) -> Result<CostClass, Refusal> {
    let instruction = Decoder::new(64, code, DecoderOptions::NONE).decode();
    if instruction.mnemonic() != Mnemonic::Nop {
        return Err(Refusal::NoNop);
    }
    cost(code, &instruction).map_err(Refusal::FirstInstruction)
}

/// The flush or register site of a marker runtime: a one-byte nop, then a 5-byte and a 10-byte one,
/// for later kernels on which these may be safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NopBlock {
    /// File offset.
    pub offset: u64,
}

impl NopBlock {
    pub(crate) const SIZE: usize = 16;

    /// Returns `None` where the code does not start with a nop.
    pub(crate) fn new(offset: u64, code: &[u8; Self::SIZE]) -> Option<Self> {
        (code[0] == 0x90).then_some(Self { offset })
    }

    pub(crate) fn site(&self) -> EntrySite {
        EntrySite { offset: self.offset, cost: CostClass::Emulated, skipped: 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(code: &[u8], expected: Result<CostClass, &str>) {
        let found = usdt_site(code).map_err(|refusal| refusal.to_string());
        assert_eq!(found, expected.map_err(str::to_owned));
    }

    #[test]
    fn notes_are_probed_on_short_nops_only() {
        check(&[0x90, 0xc3], Ok(CostClass::Emulated));
        check(&[0x0f, 0x1f, 0x00], Ok(CostClass::SingleStep));
        let deadly = "no probe fits its first instruction: what the kernel makes of such a nop \
                      kills forked children";
        check(&[0x0f, 0x1f, 0x44, 0, 0], Err(deadly));
        check(&[0x66, 0x66, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0], Err(deadly));
        let no_nop = "its note does not lead to a nop";
        check(&[0xc5, 0xf5, 0xef, 0xc0], Err(no_nop));
        check(&[0xcc], Err(no_nop));
        check(&[], Err(no_nop));
    }
}
