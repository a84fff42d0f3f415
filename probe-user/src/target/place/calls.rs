//! Finds what a function calls, by its instructions.
//!
//! A call names the address of another function, or a symbol behind a stub of the linker or a slot
//! of its table. A call through a pointer names nothing: it is only counted.

use crate::target::place::code::CodeMap;
use crate::target::place::code::flow::{self, Way};
use crate::target::place::{Candidate, extent};
use iced_x86::{FlowControl, Instruction, OpKind};
use std::collections::{BTreeMap, BTreeSet};

/// The calls in a function's code, with the jumps that leave it.
#[derive(Debug, Default)]
pub(crate) struct CodeCalls<'data> {
    /// The addresses that it calls in its own object.
    pub(crate) inside: BTreeSet<u64>,
    /// The symbols that it calls in other objects, or in its own where others may replace them, each with
    /// the slot that the loader fills.
    pub(crate) imports: BTreeMap<&'data str, u64>,
    /// Slots without a symbol: the loader chooses a function of its own object.
    pub(crate) choices: BTreeSet<u64>,
    pub(crate) through_pointers: usize,
    /// True if not all of its code could be followed.
    pub(crate) is_partial: bool,
}

/// Returns the calls in a function.
pub(crate) fn calls<'data>(candidate: Candidate<'_>, map: &CodeMap<'data>) -> CodeCalls<'data> {
    let _look = map.budget().look();
    let mut calls = CodeCalls::default();
    let Ok((end, frame)) = extent(candidate, map) else {
        return CodeCalls { is_partial: true, ..calls };
    };
    let flow = flow::follow(map, candidate.address, end, frame);
    calls.is_partial = flow.trouble.is_some();
    for instruction in &flow.instructions {
        match instruction.flow_control() {
            // A system call counts as one, too.
            FlowControl::Call if instruction.op0_kind() == OpKind::NearBranch64 => {
                calls.add(map, instruction.near_branch_target());
            }
            FlowControl::IndirectCall => calls.add_indirect(map, instruction),
            _ => {}
        }
    }
    for (instruction, way) in &flow.ways_out {
        match way {
            Way::Ret => {}
            Way::Jump(Some(target)) => calls.add(map, *target),
            Way::ConditionalJump(_) => calls.add(map, instruction.near_branch_target()),
            Way::Jump(None) | Way::IndirectJump => calls.through_pointers += 1,
        }
    }
    calls
}

impl<'data> CodeCalls<'data> {
    fn add(&mut self, map: &CodeMap<'data>, target: u64) {
        match map.slot_behind(target) {
            Some(slot) => self.add_slot(map, slot),
            None => _ = self.inside.insert(target),
        }
    }

    fn add_slot(&mut self, map: &CodeMap<'data>, slot: u64) {
        match map.import(slot) {
            Some(name) => _ = self.imports.insert(name, slot),
            None => _ = self.choices.insert(slot),
        }
    }

    /// Adds a call through a slot that the loader fills, as with `-fno-plt`, or through a pointer.
    fn add_indirect(&mut self, map: &CodeMap<'data>, call: &Instruction) {
        let slot = call.is_ip_rel_memory_operand().then(|| call.ip_rel_memory_address());
        match slot.filter(|slot| map.import(*slot).is_some()) {
            Some(slot) => self.add_slot(map, slot),
            None => self.through_pointers += 1,
        }
    }
}
