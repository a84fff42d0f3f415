//! Predicts whether the kernel accepts any probe on an instruction.

use iced_x86::{Decoder, DecoderOptions, EncodingKind, Instruction, Mnemonic, Register};

/// Prefixes of an opcode, without those of 64-bit operands (0x40 to 0x4f).
const PREFIXES: [u8; 6] = [0x66, 0x67, 0xf2, 0xf3, 0x64, 0x65];

/// Guesses from the bytes of the file. The kernel likely refuses what this denies.
pub(crate) fn may_be_probed(code: &[u8]) -> bool {
    let instruction = Decoder::new(64, code, DecoderOptions::NONE).decode();
    let breaks = matches!(
        instruction.mnemonic(),
        Mnemonic::INVALID
            | Mnemonic::Int
            | Mnemonic::Int1
            | Mnemonic::Int3
            | Mnemonic::Ud0
            | Mnemonic::Ud1
            | Mnemonic::Ud2
            | Mnemonic::Iret
            | Mnemonic::Iretd
            | Mnemonic::Iretq
    );
    !breaks
        && !instruction.is_privileged()
        && !has_bad_prefix(&instruction)
        && instruction.encoding() == EncodingKind::Legacy
        && !is_of_later_tables(code)
}

/// Recognizes lock and the old segment prefixes.
fn has_bad_prefix(instruction: &Instruction) -> bool {
    let segments = [Register::ES, Register::CS, Register::SS, Register::DS];
    instruction.has_lock_prefix() || segments.contains(&instruction.segment_prefix())
}

/// Recognizes opcodes of three bytes.
fn is_of_later_tables(code: &[u8]) -> bool {
    let is_prefix = |byte: &u8| PREFIXES.contains(byte) || byte & 0xf0 == 0x40;
    let mut opcode = code.iter().skip_while(|byte| is_prefix(byte));
    opcode.next() == Some(&0x0f) && matches!(opcode.next(), Some(0x38 | 0x3a))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_starts_of_functions_may_be() {
        // endbr64, push rbp, sub rsp, a nop, ret.
        let starts: [&[u8]; 5] = [
            &[0xf3, 0x0f, 0x1e, 0xfa],
            &[0x55],
            &[0x48, 0x83, 0xec, 0x08],
            &[0x0f, 0x1f, 0x44, 0x00, 0x00],
            &[0xc3],
        ];
        assert!(starts.into_iter().all(may_be_probed));
    }

    #[test]
    fn what_the_kernel_refuses_may_not() {
        // Refused: no instruction, half of one, a breakpoint, hlt, cli, in, lock, a segment,
        // nothing, vzeroupper, an opcode of three bytes, ud2.
        let refused: [&[u8]; 12] = [
            &[0x06],
            &[0x48, 0x83],
            &[0xcc],
            &[0xf4],
            &[0xfa],
            &[0xec],
            &[0xf0, 0x48, 0x01, 0x07],
            &[0x2e, 0x90],
            &[],
            &[0xc5, 0xf8, 0x77],
            &[0x66, 0x0f, 0x38, 0x00, 0xc1],
            &[0x0f, 0x0b],
        ];
        for code in refused {
            assert!(!may_be_probed(code), "{code:x?}");
        }
    }
}
