//! Chooses the instruction that an entry probe sits on.
//!
//! The kernel emulates a few instructions and single-steps all others, at many times the cost. So
//! the probe may move to a cheaper instruction past leading ones: past `endbr64` to a `push`, past
//! `test %rdi,%rdi` to its `je`, past `mov 8(%rdi),%rax; test %rax,%rax` to the `je` behind them. It
//! never moves past a `push`, since the return address would no longer be on top. It never moves
//! past a jump target, since it would count the turns of a loop. [`Passes`] says what else stands
//! in its way.

use crate::target::place::code::CodeMap;
use crate::target::place::code::extent::Mark;
use crate::target::place::code::flow::{Flow, Way};
use crate::target::place::cost::cost;
use crate::target::place::deny::Refusal;
use crate::target::place::go;
use crate::target::plan::EntrySite;
use iced_x86::{
    CpuidFeature, Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory,
    Mnemonic, OpAccess, Register, UsedMemory,
};

/// Instructions that the probe may move past.
const MAX_PASSED: usize = 8;

/// The kinds of leading instructions that a probe may move past.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Passes {
    /// Instructions that change no argument and touch no memory, and a first one that bears no probe,
    /// if it changes no argument.
    Guard,
    /// The quick ones that change no argument: a probe behind them reads the arguments, and what they point
    /// to, as the caller left them. They read no memory to which an argument points: where that is not there,
    /// the call ends before its probe, and it is the one that people look for.
    Arguments,
    /// Also those that change any register but the stack pointer, that read memory, or that write
    /// to the function's own frame. They take less time than a single step, which the duration of
    /// the call would contain.
    Quick {
        /// True if the probe may sit on the jump to another function that such instructions end
        /// with: no other probe is there.
        to_jump_out: bool,
    },
}

impl Passes {
    fn to_jump_out(self) -> bool {
        matches!(self, Self::Quick { to_jump_out: true })
    }
}

/// Returns the site of the entry probe of the function at `address`.
pub(super) fn entry_site(
    address: u64,
    map: &CodeMap<'_>,
    flow: &Flow,
    passes: Passes,
) -> Result<EntrySite, Refusal> {
    let bytes = map.bytes(address).ok_or(Refusal::NotCode)?;
    let decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let mut best: Option<EntrySite> = None;
    let mut refusal = Refusal::NotInstructions;
    let mut facts = InstructionInfoFactory::new();
    let mut is_plain = true;
    for instruction in decoder.into_iter().take(MAX_PASSED + 1) {
        let at = instruction.ip();
        let first = at == address;
        let is_reached = flow.extent.mark(at) == Some(Mark::Instruction);
        let is_barred = || match way_out(flow, at) {
            None => false,
            Some(Way::Jump(_)) => !passes.to_jump_out(),
            Some(Way::Ret | Way::ConditionalJump(_) | Way::IndirectJump) => true,
        };
        if !first && (!is_reached || may_be_jumped_to(map, flow, at) || is_barred()) {
            break;
        }
        let skipped = u8::try_from(at - address).unwrap_or(u8::MAX);
        match cost(&bytes[usize::from(skipped)..], &instruction) {
            Ok(cost) if best.is_none_or(|best| cost < best.cost) => {
                // Other functions do not jump behind a mere pad.
                if !is_plain && map.may_be_entered_in(&(address + 1..=at), end_of(flow, address)) {
                    break;
                }
                let offset = map.file_offset(at).ok_or(Refusal::NotCode)?;
                best = Some(EntrySite { offset, cost, skipped });
            }
            Ok(_) => {}
            Err(why) if first => refusal = Refusal::FirstInstruction(why),
            Err(_) => {}
        }
        // Without any site yet, even an instruction that touches memory is passed.
        let passes_memory = best.is_none();
        if !is_passable(&instruction, &mut facts, passes, passes_memory) {
            break;
        }
        is_plain &= is_pad(&instruction);
    }
    best.ok_or(refusal)
}

/// Returns the site in a Go function that is hit once per call, however often its stack moves.
pub(super) fn behind_stack_check(
    address: u64,
    map: &CodeMap<'_>,
    flow: &Flow,
) -> Option<EntrySite> {
    if !map.is_go() {
        return None;
    }
    let at = go::behind_stack_check(map.bytes(address)?, address)?;
    let is_reached = flow.extent.mark(at) == Some(Mark::Instruction);
    if !is_reached || may_be_jumped_to(map, flow, at) || way_out(flow, at).is_some() {
        return None;
    }
    let bytes = map.bytes(at)?;
    let instruction = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).iter().next()?;
    let cost = cost(bytes, &instruction).ok()?;
    let skipped = u8::try_from(at - address).ok()?;
    Some(EntrySite { offset: map.file_offset(at)?, cost, skipped })
}

fn may_be_jumped_to(map: &CodeMap<'_>, flow: &Flow, at: u64) -> bool {
    flow.targets_unknown
        || flow.targets.contains(&at)
        || map.symbols_at(at).next().is_some()
        || map.has_label(at)
}

/// Returns the end of the piece of a function that begins at its start.
fn end_of(flow: &Flow, start: u64) -> u64 {
    let piece = flow.extent.ranges().find(|range| range.contains(&start));
    piece.map_or(start, |range| range.end)
}

/// Returns whether an instruction does nothing.
fn is_pad(instruction: &Instruction) -> bool {
    matches!(instruction.mnemonic(), Mnemonic::Endbr64 | Mnemonic::Nop)
}

fn way_out(flow: &Flow, at: u64) -> Option<Way> {
    flow.ways_out.iter().find(|(instruction, _)| instruction.ip() == at).map(|(_, way)| *way)
}

fn is_passable(
    instruction: &Instruction,
    facts: &mut InstructionInfoFactory,
    passes: Passes,
    passes_memory: bool,
) -> bool {
    if is_pad(instruction) {
        return true;
    }
    if instruction.flow_control() != FlowControl::Next
        || instruction.is_stack_instruction()
        || instruction.is_privileged()
    {
        return false;
    }
    let facts = facts.info(instruction);
    let is_quick = passes != Passes::Guard && is_quick(instruction);
    let may_change_arguments = is_quick && passes != Passes::Arguments;
    let passes_access = |memory: &UsedMemory| {
        let is_harmless = passes != Passes::Arguments || !writes(memory.access());
        passes_memory && is_harmless
            || is_quick
                && (!writes(memory.access()) || is_in_frame(memory))
                && (may_change_arguments || is_at_hand(memory))
    };
    let keeps = |register: Register| {
        register == Register::RSP || !may_change_arguments && may_be_argument(register)
    };
    facts.used_memory().iter().all(passes_access)
        && !facts
            .used_registers()
            .iter()
            .any(|used| writes(used.access()) && keeps(used.register().full_register()))
}

fn writes(access: OpAccess) -> bool {
    !matches!(access, OpAccess::None | OpAccess::NoMemAccess | OpAccess::Read | OpAccess::CondRead)
}

/// Returns whether an access is to the memory below the return address, which nobody else looks at.
fn is_in_frame(memory: &UsedMemory) -> bool {
    memory.base() == Register::RSP
        && memory.index() == Register::None
        && memory.displacement().cast_signed() + memory.memory_size().size() as i64 <= 0
}

/// Returns whether an access is to a variable of the program or to the stack, so that it never fails.
fn is_at_hand(memory: &UsedMemory) -> bool {
    let is_own = |register| matches!(register, Register::RIP | Register::RSP | Register::None);
    is_own(memory.base()) && memory.index() == Register::None
}

/// Returns whether an instruction takes no more than some nanoseconds if its memory is there. Nearly none
/// of them trap, but for memory that is not.
fn is_quick(instruction: &Instruction) -> bool {
    let divides = matches!(instruction.mnemonic(), Mnemonic::Div | Mnemonic::Idiv);
    let is_common = |feature: &CpuidFeature| {
        matches!(
            feature,
            CpuidFeature::INTEL8086
                | CpuidFeature::INTEL186
                | CpuidFeature::INTEL386
                | CpuidFeature::INTEL486
                | CpuidFeature::X64
                | CpuidFeature::CMOV
                | CpuidFeature::SSE
                | CpuidFeature::SSE2
                | CpuidFeature::SSE3
                | CpuidFeature::SSSE3
                | CpuidFeature::SSE4_1
                | CpuidFeature::SSE4_2
        )
    };
    !divides
        && !instruction.is_string_instruction()
        && instruction.cpuid_features().iter().all(is_common)
}

/// Returns whether a register may carry an argument.
fn may_be_argument(register: Register) -> bool {
    matches!(
        register,
        Register::RDI
            | Register::RSI
            | Register::RDX
            | Register::RCX
            | Register::R8
            | Register::R9
            | Register::R10
            | Register::RAX
    ) || register.is_vector_register()
}
