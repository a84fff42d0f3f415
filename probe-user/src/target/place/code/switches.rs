//! Reads jump tables, the targets of a `switch`.
//!
//! Two shapes cover gcc and LLVM: a table of 4-byte distances from its own start (`movslq
//! (table,index,4); add table; jmp`), and one of 8-byte addresses (`jmp *table(,index,8)`). The
//! comparison that guards the table gives its length. Anything else is reported as unknown.

use crate::target::place::code::CodeMap;
use iced_x86::{ConditionCode, FlowControl, Instruction, Mnemonic, OpKind, Register};

/// The kind of an indirect jump, by the code before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Switch {
    /// All targets.
    Targets(Vec<u64>),
    /// A table of unknown length or content.
    Table,
    /// No visible table: a switch or a tail call.
    Unknown,
}

const MAX_ENTRIES: u64 = 4096;

struct JumpTable {
    address: u64,
    /// The base of 4-byte entries; 8-byte entries are addresses.
    anchor: Option<u64>,
}

/// Reads the table of the indirect jump that ends `run`, a straight line of instructions. `all`
/// holds all decoded instructions of the function, for a base loaded far away.
pub(crate) fn read(map: &CodeMap<'_>, run: &[Instruction], all: &[Instruction]) -> Switch {
    let Some((jump, before)) = run.split_last() else { return Switch::Unknown };
    let Some(table) = find(jump, before, all) else { return Switch::Unknown };
    let Some(length) = bound(before).filter(|&length| length <= MAX_ENTRIES) else {
        return Switch::Table;
    };
    let targets = (0..length).map(|index| entry(map, &table, index)).collect::<Option<Vec<_>>>();
    targets.map_or(Switch::Table, Switch::Targets)
}

fn entry(map: &CodeMap<'_>, table: &JumpTable, index: u64) -> Option<u64> {
    let target = if let Some(anchor) = table.anchor {
        let bytes = map.bytes(table.address.checked_add(index * 4)?)?;
        let distance = i32::from_le_bytes(*bytes.first_chunk::<4>()?);
        anchor.wrapping_add_signed(i64::from(distance))
    } else {
        let bytes = map.bytes(table.address.checked_add(index * 8)?)?;
        u64::from_le_bytes(*bytes.first_chunk::<8>()?)
    };
    map.is_code(target).then_some(target)
}

fn find(jump: &Instruction, before: &[Instruction], all: &[Instruction]) -> Option<JumpTable> {
    if jump.op0_kind() == OpKind::Memory {
        return absolute(jump, before, all);
    }
    let register = jump.op0_register().full_register();
    let (at, last) = definition(before, register)?;
    match last.mnemonic() {
        Mnemonic::Mov if last.op1_kind() == OpKind::Memory => absolute(last, &before[..at], all),
        Mnemonic::Add if last.op1_kind() == OpKind::Register => {
            let other = last.op1_register().full_register();
            let before = &before[..at];
            relative(before, all, register, other)
                .or_else(|| relative(before, all, other, register))
        }
        _ => None,
    }
}

/// Recognizes `jmp *table(,index,8)` or the same through a register.
fn absolute(load: &Instruction, before: &[Instruction], all: &[Instruction]) -> Option<JumpTable> {
    if load.is_ip_rel_memory_operand() || load.memory_index() == Register::None {
        return None;
    }
    let displacement = load.memory_displacement64();
    let base = match load.memory_base() {
        Register::None => 0,
        base => constant(before, all, base)?,
    };
    (load.memory_index_scale() == 8)
        .then(|| JumpTable { address: base.wrapping_add(displacement), anchor: None })
}

/// Recognizes a relative table: `loaded` holds an entry, `base` the table's address.
fn relative(
    before: &[Instruction],
    all: &[Instruction],
    loaded: Register,
    base: Register,
) -> Option<JumpTable> {
    let anchor = constant(before, all, base)?;
    let (mut at, mut load) = definition(before, loaded)?;
    if load.mnemonic() == Mnemonic::Cdqe {
        (at, load) = definition(&before[..at], Register::RAX)?;
    }
    if !matches!(load.mnemonic(), Mnemonic::Movsxd | Mnemonic::Mov)
        || load.op1_kind() != OpKind::Memory
        || load.memory_size().size() != 4
    {
        return None;
    }
    let before = &before[..at];
    let table = [load.memory_base(), load.memory_index()]
        .into_iter()
        .filter(|&register| register != Register::None)
        .find_map(|register| constant(before, all, register))?;
    Some(JumpTable {
        address: table.wrapping_add(load.memory_displacement64()),
        anchor: Some(anchor),
    })
}

/// Returns the last instruction before that writes `register`.
fn definition(before: &[Instruction], register: Register) -> Option<(usize, &Instruction)> {
    before.iter().enumerate().rev().find(|(_, instruction)| writes(instruction, register))
}

fn writes(instruction: &Instruction, register: Register) -> bool {
    let first = instruction.op_count() > 0 && instruction.op0_kind() == OpKind::Register;
    let explicit = first
        && instruction.op0_register().full_register() == register
        && !matches!(instruction.mnemonic(), Mnemonic::Cmp | Mnemonic::Test | Mnemonic::Push);
    let implicit = instruction.mnemonic() == Mnemonic::Cdqe && register == Register::RAX;
    let call = matches!(instruction.flow_control(), FlowControl::Call | FlowControl::IndirectCall)
        && matches!(
            register,
            Register::RAX
                | Register::RCX
                | Register::RDX
                | Register::RSI
                | Register::RDI
                | Register::R8
                | Register::R9
                | Register::R10
                | Register::R11
        );
    explicit || implicit || call
}

/// No compiler makes longer chains of copies.
const MOST_COPIES: usize = 16;

/// Returns the address that a register holds, where an instruction says so.
fn constant(before: &[Instruction], all: &[Instruction], register: Register) -> Option<u64> {
    let (mut before, mut register) = (before, register.full_register());
    for _ in 0..MOST_COPIES {
        let Some((at, instruction)) = definition(before, register) else {
            return constant_everywhere(all, register);
        };
        if let Some(address) = address(instruction) {
            return Some(address);
        }
        let copies =
            instruction.mnemonic() == Mnemonic::Mov && instruction.op1_kind() == OpKind::Register;
        (before, register) =
            (&before[..at], copies.then(|| instruction.op1_register().full_register())?);
    }
    None
}

/// Returns the only address that the function loads into a register, maybe before a loop.
fn constant_everywhere(all: &[Instruction], register: Register) -> Option<u64> {
    let mut loads = all.iter().filter(|instruction| writes(instruction, register));
    let mut found = loads.by_ref().filter_map(address);
    let first = found.next()?;
    found.all(|other| other == first).then_some(first)
}

fn address(instruction: &Instruction) -> Option<u64> {
    match instruction.mnemonic() {
        Mnemonic::Lea if instruction.is_ip_rel_memory_operand() => {
            Some(instruction.ip_rel_memory_address())
        }
        Mnemonic::Mov
            if matches!(instruction.op1_kind(), OpKind::Immediate32 | OpKind::Immediate64) =>
        {
            Some(instruction.immediate(1))
        }
        _ => None,
    }
}

/// Returns the number of entries that the comparison before the jump allows.
fn bound(before: &[Instruction]) -> Option<u64> {
    let (at, guard) = before.iter().enumerate().rev().find(|(_, instruction)| {
        instruction.flow_control() == FlowControl::ConditionalBranch
            && matches!(instruction.condition_code(), ConditionCode::a | ConditionCode::ae)
    })?;
    let compare = before[..at].iter().rev().find(|i| i.mnemonic() == Mnemonic::Cmp)?;
    let is_immediate = matches!(
        compare.op1_kind(),
        OpKind::Immediate8
            | OpKind::Immediate8to16
            | OpKind::Immediate8to32
            | OpKind::Immediate8to64
            | OpKind::Immediate16
            | OpKind::Immediate32
            | OpKind::Immediate32to64
    );
    let limit = is_immediate.then(|| compare.immediate(1))?;
    match guard.condition_code() {
        ConditionCode::a => limit.checked_add(1),
        _ => Some(limit),
    }
}
