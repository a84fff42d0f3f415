//! Turns a function's ways out into probe sites.

use crate::target::place::code::CodeMap;
use crate::target::place::code::flow::{Flow, Way};
use crate::target::place::cost::cost;
use crate::target::plan::{EntrySite, ExitKind, ExitSite};
use ctrace_common::{JumpTarget, NO_REGISTER, Operand};
use iced_x86::{Instruction, OpKind, Register};

/// Returns the probe sites for every way out, or why there cannot be any.
pub(super) fn exit_sites(
    map: &CodeMap<'_>,
    flow: &Flow,
    start: u64,
    entry: &EntrySite,
) -> Result<Vec<ExitSite>, String> {
    if let Some(trouble) = &flow.trouble {
        return Err(trouble.clone());
    }
    let mut sites = Vec::with_capacity(flow.ways_out.len());
    for (instruction, way) in &flow.ways_out {
        let address = instruction.ip();
        if address == start + u64::from(entry.skipped) {
            let why = match entry.skipped {
                0 => "its first instruction is a way out of it",
                _ => "the probe at its entry sits on a way out of it",
            };
            return Err(why.to_owned());
        }
        let bytes = map.bytes(address).ok_or("a way out is not in the file")?;
        let offset = map.file_offset(address).ok_or("a way out is not in the file")?;
        let cost = cost(bytes, instruction)
            .map_err(|why| format!("no probe fits one of its ways out: {why}"))?;
        let kind = match way {
            Way::Ret => ExitKind::Ret,
            Way::Jump(_) => ExitKind::Jump,
            Way::ConditionalJump(condition) => ExitKind::ConditionalJump(*condition),
            Way::IndirectJump => ExitKind::IndirectJump(target(instruction, flow)?),
        };
        let target = match way {
            Way::Jump(target) => *target,
            Way::ConditionalJump(_) => Some(instruction.near_branch_target()),
            Way::Ret | Way::IndirectJump => None,
        };
        let leads_to = target.and_then(|target| map.file_offset(target));
        sites.push(ExitSite { offset, cost, kind, leads_to });
    }
    Ok(sites)
}

fn target(instruction: &Instruction, flow: &Flow) -> Result<JumpTarget, String> {
    let mut jump = JumpTarget { target: operand(instruction)?, ..JumpTarget::default() };
    let mut slots = jump.inside.iter_mut();
    for range in flow.extent.ranges() {
        let slot = slots.next().ok_or("it is in too many pieces")?;
        let at = instruction.ip();
        *slot = [relative(range.start, at), relative(range.end, at)];
    }
    Ok(jump)
}

/// Returns the register or memory that a jump goes through.
fn operand(instruction: &Instruction) -> Result<Operand, String> {
    let none = NO_REGISTER;
    let mut target = Operand { base: none, index: none, scale: 1, size: 8, ..Operand::default() };
    if instruction.op0_kind() != OpKind::Memory {
        target.base = number(instruction.op0_register())?;
        return Ok(target);
    }
    if instruction.segment_prefix() != Register::None {
        return Err("it jumps through thread-local memory".to_owned());
    }
    target.memory = Operand::READ;
    if instruction.is_ip_rel_memory_operand() {
        target.relative = 1;
        target.displacement = relative(instruction.ip_rel_memory_address(), instruction.ip());
        return Ok(target);
    }
    target.displacement = instruction.memory_displacement64() as i64;
    target.scale = u8::try_from(instruction.memory_index_scale()).unwrap_or(1);
    if instruction.memory_base() != Register::None {
        target.base = number(instruction.memory_base())?;
    }
    if instruction.memory_index() != Register::None {
        target.index = number(instruction.memory_index())?;
    }
    Ok(target)
}

fn relative(address: u64, at: u64) -> i64 {
    address.wrapping_sub(at) as i64
}

fn number(register: Register) -> Result<u8, String> {
    let whole = register.is_gpr64().then(|| register.number());
    whole
        .and_then(|number| u8::try_from(number).ok())
        .ok_or_else(|| "it jumps through an unusual register".to_owned())
}
