//! Compares where the ABI puts a parameter with where debug information says that it is, at the
//! first instruction of its function.
//!
//! The compiler may pass other parameters than the source has: a number in place of the pointer to
//! it, or one that has no name and is not described. In optimized code, locations show that.

use super::lines::{Lines, Reader};
use super::parameters::{Language, ParameterPlace};
use super::passed::{INTEGERS, RSP};
use super::types::{DebugTypes, EntryAt};
use gimli::{AttributeValue, Expression, Operation, UnitRef};

pub(super) const RBP: u16 = 6;

/// The place of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Located {
    Register(u16),
    /// 8 bytes in each.
    Registers(u16, u16),
    /// In memory, at a register plus this.
    At(u16, i64),
    /// In memory, at the frame's base plus this.
    InFrame(i64),
}

impl Lines {
    /// Returns whether a parameter of the function at an address is in this place.
    pub(super) fn confirms(
        &self,
        function: u64,
        parameter: EntryAt,
        place: ParameterPlace,
    ) -> bool {
        let unit = self.units[parameter.unit].unit.unit_ref(&self.dwarf);
        let types = DebugTypes(self);
        let location = types
            .entry(parameter)
            .and_then(|entry| entry.attr_value(gimli::DW_AT_location))
            .and_then(|location| self.at_entry(unit, location, function));
        let Some(located) = location.and_then(|location| first(unit, location)) else {
            return false;
        };
        let is_rust = self.language(parameter.unit) == Some(Language::Rust);
        match (place, located) {
            (
                ParameterPlace::Register(number) | ParameterPlace::Behind(number),
                Located::Register(register),
            )
            | (ParameterPlace::Behind(number), Located::At(register, 0)) => {
                INTEGERS[usize::from(number)] == register
            }
            (ParameterPlace::Pair(number), Located::Registers(first, second)) => {
                let of = |number: u8| INTEGERS.get(usize::from(number)).copied();
                (of(number), of(number + 1)) == (Some(first), Some(second))
            }
            // Not optimized: it is stored to the frame first, or a copy of it. In Rust nothing tells
            // whether there are nameless ones before it.
            (
                ParameterPlace::Register(_) | ParameterPlace::Pair(_) | ParameterPlace::Behind(_),
                Located::InFrame(_) | Located::At(RBP, _),
            )
            | (ParameterPlace::Stack(_), Located::InFrame(..0) | Located::At(RBP, ..0)) => !is_rust,
            (ParameterPlace::Stack(slot), Located::InFrame(offset)) => {
                self.frame_base(function).is_some_and(|(register, more)| {
                    offset.checked_add(more) == stack_offset(register, slot, is_rust)
                })
            }
            (ParameterPlace::Stack(slot), Located::At(register, offset)) => {
                Some(offset) == stack_offset(register, slot, is_rust)
            }
            _ => false,
        }
    }

    /// Returns the register that the base of a function's frame is in, or [`CFA`], and what is added to
    /// it: LLVM counts from there where the frame is large.
    pub(super) fn frame_base(&self, function: u64) -> Option<(u16, i64)> {
        let (at, _) = self.described_at(function)?;
        let unit = self.units[at.unit].unit.unit_ref(&self.dwarf);
        let base = DebugTypes(self).entry(at)?.attr_value(gimli::DW_AT_frame_base)?;
        let AttributeValue::Exprloc(base) = base else { return None };
        let mut operations = base.operations(unit.encoding());
        let mut next = || operations.next().ok();
        match (next()??, next()?, next()?, next()?) {
            (Operation::CallFrameCFA, None, ..) => Some((CFA, 0)),
            (
                Operation::CallFrameCFA,
                Some(Operation::SignedConstant { value }),
                Some(Operation::Plus),
                None,
            ) => Some((CFA, value)),
            (Operation::Register { register }, None, ..) => Some((register.0, 0)),
            _ => None,
        }
    }

    /// Returns the location that holds at the first instruction.
    pub(super) fn at_entry(
        &self,
        unit: UnitRef<'_, Reader>,
        location: AttributeValue<Reader>,
        function: u64,
    ) -> Option<Expression<Reader>> {
        if let AttributeValue::Exprloc(everywhere) = location {
            return Some(everywhere);
        }
        let mut locations = unit.attr_locations(location).ok()??;
        let mut ticker = self.budget.ticker();
        while let Ok(Some(entry)) = locations.next() {
            if (entry.range.begin..entry.range.end).contains(&function) {
                return Some(entry.data);
            }
            ticker.tick().ok()?;
        }
        None
    }
}

/// Stands for the address behind the return address.
pub(super) const CFA: u16 = u16::MAX;

/// Returns the distance of a slot from a register, once the function has made its frame.
fn stack_offset(register: u16, slot: u8, is_rust: bool) -> Option<i64> {
    let before = match register {
        CFA => 0,
        // At the first instruction. LLVM may mean the stack pointer behind the function's beginning,
        // and in Rust nothing else tells that the place is right.
        RSP if !is_rust => 8,
        // The old one is saved there.
        RBP => 16,
        _ => return None,
    };
    Some(before + 8 * i64::from(slot))
}

/// Reads a location that is one register, or memory beside one.
fn first(unit: UnitRef<'_, Reader>, location: Expression<Reader>) -> Option<Located> {
    let mut operations = location.operations(unit.encoding());
    let located = match operations.next().ok()?? {
        Operation::Register { register } => Located::Register(register.0),
        Operation::RegisterOffset { register, offset, .. } => Located::At(register.0, offset),
        Operation::FrameOffset { offset } => Located::InFrame(offset),
        _ => return None,
    };
    let more = operations.next().ok()?;
    if let (Located::Register(one), Some(Operation::Piece { .. })) = (&located, &more) {
        let second = operations.next().ok()??;
        let last = operations.next().ok()??;
        let is_half = |it: &Operation<Reader>| {
            matches!(it, Operation::Piece { size_in_bits: 64, bit_offset: None })
        };
        let is_whole =
            is_half(more.as_ref()?) && is_half(&last) && operations.next().ok()?.is_none();
        let Operation::Register { register } = second else { return None };
        return is_whole.then_some(Located::Registers(*one, register.0));
    }
    // What is passed by its address may be behind one more.
    matches!(more, None | Some(Operation::Deref { .. })).then_some(located)
}
