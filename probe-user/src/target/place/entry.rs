//! Chooses the instruction that an entry probe sits on.
//!
//! The kernel emulates a few instructions and single-steps all others, at many times the cost. So
//! the probe may move to a cheaper instruction past leading ones that change neither the stack, nor
//! memory, nor an argument: past `endbr64` to a `push`, past `test %rdi,%rdi` to its `je`. It never
//! moves past a `push`, since the return address would no longer be on top. It never moves past a
//! jump target, since it would count the turns of a loop.

use crate::target::place::code::CodeMap;
use crate::target::place::code::extent::Mark;
use crate::target::place::code::flow::Flow;
use crate::target::place::cost::cost;
use crate::target::place::deny::Refusal;
use crate::target::place::go;
use crate::target::plan::EntrySite;
use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Instruction, InstructionInfoFactory, Mnemonic, OpAccess,
    Register,
};

/// Instructions that the probe may move past.
const MAX_PASSED: usize = 6;

/// Returns the site of the entry probe of the function at `address`.
pub(super) fn entry_site(
    address: u64,
    map: &CodeMap<'_>,
    flow: &Flow,
) -> Result<EntrySite, Refusal> {
    let bytes = map.bytes(address).ok_or(Refusal::NotCode)?;
    let decoder = Decoder::with_ip(64, bytes, address, DecoderOptions::NONE);
    let mut best: Option<EntrySite> = None;
    let mut refusal = Refusal::NotInstructions;
    let mut facts = InstructionInfoFactory::new();
    for instruction in decoder.into_iter().take(MAX_PASSED + 1) {
        let at = instruction.ip();
        let first = at == address;
        let is_reached = flow.extent.mark(at) == Some(Mark::Instruction);
        if !first && (!is_reached || may_be_jumped_to(map, flow, at) || is_way_out(flow, at)) {
            break;
        }
        let skipped = u8::try_from(at - address).unwrap_or(u8::MAX);
        match cost(&bytes[usize::from(skipped)..], &instruction) {
            Ok(cost) if best.is_none_or(|best| cost < best.cost) => {
                let offset = map.file_offset(at).ok_or(Refusal::NotCode)?;
                best = Some(EntrySite { offset, cost, skipped });
            }
            Ok(_) => {}
            Err(why) if first => refusal = Refusal::FirstInstruction(why),
            Err(_) => {}
        }
        // Without any site yet, even an instruction that touches memory is passed.
        if !is_passable(&instruction, &mut facts, best.is_none()) {
            break;
        }
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
    if !is_reached || may_be_jumped_to(map, flow, at) || is_way_out(flow, at) {
        return None;
    }
    let bytes = map.bytes(at)?;
    let instruction = Decoder::with_ip(64, bytes, at, DecoderOptions::NONE).iter().next()?;
    let cost = cost(bytes, &instruction).ok()?;
    let skipped = u8::try_from(at - address).ok()?;
    Some(EntrySite { offset: map.file_offset(at)?, cost, skipped })
}

fn may_be_jumped_to(map: &CodeMap<'_>, flow: &Flow, at: u64) -> bool {
    flow.targets_unknown || flow.targets.contains(&at) || map.symbols_at(at).next().is_some()
}

fn is_way_out(flow: &Flow, at: u64) -> bool {
    flow.ways_out.iter().any(|(instruction, _)| instruction.ip() == at)
}

fn is_passable(
    instruction: &Instruction,
    facts: &mut InstructionInfoFactory,
    memory_too: bool,
) -> bool {
    if matches!(instruction.mnemonic(), Mnemonic::Endbr64 | Mnemonic::Nop) {
        return true;
    }
    if instruction.flow_control() != FlowControl::Next
        || instruction.is_stack_instruction()
        || instruction.is_privileged()
        || instruction.mnemonic() == Mnemonic::Hlt
    {
        return false;
    }
    let facts = facts.info(instruction);
    if !memory_too && !facts.used_memory().is_empty() {
        return false;
    }
    !facts.used_registers().iter().any(|used| {
        let writes = !matches!(used.access(), OpAccess::None | OpAccess::Read | OpAccess::CondRead);
        writes && is_kept(used.register().full_register())
    })
}

/// Returns whether a register is the stack pointer or may carry an argument.
fn is_kept(register: Register) -> bool {
    matches!(
        register,
        Register::RSP
            | Register::RDI
            | Register::RSI
            | Register::RDX
            | Register::RCX
            | Register::R8
            | Register::R9
            | Register::R10
            | Register::RAX
    ) || register.is_vector_register()
}
