//! Sites made to be probed: nops of three lengths in a row, of which a kernel has a favourite.
//!
//! A kernel that rewrites one length of nop into a call takes a probe there without a trap; which
//! length changed after 6.18. The block is at a function's first instruction, where the red zone,
//! into which the rewritten call writes, is dead.

use super::super::plan::{CostClass, EntrySite};
use iced_x86::{Decoder, DecoderOptions, Mnemonic};

pub(super) const NOP5: [u8; 5] = [0x0f, 0x1f, 0x44, 0x00, 0x00];

/// The nop that a kernel rewrites when it is probed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FastNop {
    #[default]
    None,
    FiveBytes,
    TenBytes,
}

/// `nop`, a 5-byte nop, a 10-byte nop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NopBlock {
    /// Offset in the file.
    pub offset: u64,
    has_nop5: bool,
    has_nop10: bool,
}

impl NopBlock {
    pub const SIZE: usize = 16;
    const NOP5_AT: usize = 1;
    const NOP10_AT: usize = 6;

    /// Nothing where the code does not even start with a nop.
    pub fn new(offset: u64, code: &[u8; Self::SIZE]) -> Option<Self> {
        (code[0] == 0x90).then(|| Self {
            offset,
            has_nop5: code[Self::NOP5_AT..].starts_with(&NOP5),
            has_nop10: is_nop10(&code[Self::NOP10_AT..]),
        })
    }

    /// Where the probe costs least.
    pub fn site(&self, fast: FastNop) -> EntrySite {
        let (skipped, cost) = match fast {
            FastNop::FiveBytes if self.has_nop5 => (Self::NOP5_AT, CostClass::Optimised),
            FastNop::TenBytes if self.has_nop10 => (Self::NOP10_AT, CostClass::Optimised),
            _ => (0, CostClass::Emulated),
        };
        EntrySite { offset: self.offset + skipped as u64, cost, skipped: skipped as u8 }
    }
}

/// In whatever of its spellings.
fn is_nop10(code: &[u8]) -> bool {
    let instruction = Decoder::new(64, code, DecoderOptions::NONE).decode();
    instruction.mnemonic() == Mnemonic::Nop && instruction.len() == code.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: [u8; 16] =
        [0x90, 0x0f, 0x1f, 0x44, 0, 0, 0x66, 0x2e, 0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0];

    #[track_caller]
    fn check(code: [u8; 16], expected: [(u64, CostClass); 3]) {
        let block = NopBlock::new(0x100, &code).unwrap();
        let sites = [FastNop::None, FastNop::FiveBytes, FastNop::TenBytes].map(|fast| {
            let site = block.site(fast);
            assert_eq!(site.offset, 0x100 + u64::from(site.skipped));
            (site.offset, site.cost)
        });
        assert_eq!(sites, expected);
    }

    #[test]
    fn picks_the_nop_that_the_kernel_likes() {
        use CostClass::{Emulated, Optimised};
        let first = (0x100, Emulated);
        check(BLOCK, [first, (0x101, Optimised), (0x106, Optimised)]);
        let mut code = BLOCK;
        code[7] = 0x66;
        check(code, [first, (0x101, Optimised), (0x106, Optimised)]);
        code[6] = 0x90;
        check(code, [first, (0x101, Optimised), first]);
        code[1] = 0x90;
        check(code, [first, first, first]);
        code[0] = 0xcc;
        assert_eq!(NopBlock::new(0x100, &code), None);
    }
}
