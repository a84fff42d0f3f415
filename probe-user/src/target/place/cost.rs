//! Tells what the kernel does with the instruction under a probe: emulate, single-step or refuse.
//!
//! The rules mirror `arch/x86/kernel/uprobes.c` of Linux 6.18, on the strict side. Instructions
//! that another kernel treats otherwise are refused, since a refusal inside one link fails all its
//! sites. Other rules protect targets. The kernel mistakes the opcode byte of a VEX instruction for
//! one of the one-byte map: a `vpor` under a probe is "emulated" as a jump to the next instruction
//! and does nothing (seen on 6.18). It takes `xchg %r8,%rax` for a nop. A single-stepped `pushf`
//! pushes the trap flag (seen on 6.18).

use crate::target::place::nops::is_rewritten;
use crate::target::plan::CostClass;
use iced_x86::{EncodingKind, FlowControl, Instruction, Mnemonic};

/// Returns how the kernel replays an instruction, or why no probe may sit on it.
pub(super) fn cost(bytes: &[u8], instruction: &Instruction) -> Result<CostClass, &'static str> {
    let bytes = &bytes[..instruction.len().min(bytes.len())];
    if instruction.is_invalid() {
        return Err("no valid instruction");
    }
    if instruction.encoding() != EncodingKind::Legacy {
        return Err("the kernel mistakes AVX instructions for others");
    }
    let prefixes = bytes.iter().take_while(|&&byte| is_prefix(byte)).count();
    let (prefixes, rest) = bytes.split_at(prefixes);
    if prefixes.iter().any(|byte| matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0xf0)) {
        return Err("the kernel refuses instructions with a segment or lock prefix");
    }
    let (rex, opcode) = match rest {
        [rex @ 0x40..=0x4f, opcode @ ..] => (Some(*rex), opcode),
        opcode => (None, opcode),
    };
    if is_rewritten(instruction) {
        return Err("what the kernel makes of such a nop kills forked children");
    }
    if is_unsafe(instruction) {
        return Err("the instruction cannot be replayed elsewhere");
    }
    let branch = is_emulated_branch(opcode);
    if branch && prefixes.contains(&0x66) {
        return Err("the kernel refuses branches with an operand size prefix");
    }
    let plain_push = matches!(opcode, [0x50..=0x57])
        && bytes.len() <= 2
        && prefixes.is_empty()
        && matches!(rex, None | Some(0x41));
    let nop = matches!(opcode, [0x90]);
    if nop && rex.is_some_and(|rex| rex & 1 != 0) {
        return Err("the kernel mistakes the exchange with r8 for a nop");
    }
    Ok(if branch || plain_push || nop { CostClass::Emulated } else { CostClass::SingleStep })
}

fn is_prefix(byte: u8) -> bool {
    matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67 | 0xf0 | 0xf2 | 0xf3)
}

fn is_emulated_branch(opcode: &[u8]) -> bool {
    matches!(opcode, [0xe8 | 0xe9 | 0xeb | 0x70..=0x7f, ..] | [0x0f, 0x80..=0x8f, ..])
}

fn is_unsafe(instruction: &Instruction) -> bool {
    let writes_stack_segment = matches!(instruction.mnemonic(), Mnemonic::Mov | Mnemonic::Pop)
        && instruction.op_count() > 0
        && instruction.op0_register().is_segment_register();
    let traps = matches!(
        instruction.flow_control(),
        FlowControl::Interrupt | FlowControl::Exception | FlowControl::XbeginXabortXend
    );
    let system = matches!(
        instruction.mnemonic(),
        Mnemonic::Syscall
            | Mnemonic::Sysenter
            | Mnemonic::Sysexit
            | Mnemonic::Sysexitq
            | Mnemonic::Sysret
            | Mnemonic::Sysretq
            | Mnemonic::Iret
            | Mnemonic::Iretd
            | Mnemonic::Iretq
            | Mnemonic::Retf
            | Mnemonic::Hlt
            | Mnemonic::Cli
            | Mnemonic::Sti
            | Mnemonic::In
            | Mnemonic::Out
            | Mnemonic::Insb
            | Mnemonic::Insd
            | Mnemonic::Insw
            | Mnemonic::Outsb
            | Mnemonic::Outsd
            | Mnemonic::Outsw
            | Mnemonic::Pushf
            | Mnemonic::Pushfd
            | Mnemonic::Pushfq
            | Mnemonic::Popf
            | Mnemonic::Popfd
            | Mnemonic::Popfq
    );
    writes_stack_segment || traps || system || instruction.is_privileged()
}
