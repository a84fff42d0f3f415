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
            .and_then(|location| at_entry(unit, location, function));
        let Some(located) = location.and_then(|location| first(unit, location)) else {
            return false;
        };
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
            | (ParameterPlace::Stack(_), Located::InFrame(..0) | Located::At(RBP, ..0)) => {
                self.language(parameter.unit) != Some(Language::Rust)
            }
            (ParameterPlace::Stack(slot), Located::InFrame(offset)) => {
                let base = self.frame_base(function);
                base.is_some_and(|register| offset == stack_offset(register, slot))
            }
            (ParameterPlace::Stack(slot), Located::At(register, offset)) => {
                offset == stack_offset(register, slot)
            }
            _ => false,
        }
    }

    /// Returns the register that the frame of a function begins at, or [`CFA`].
    pub(super) fn frame_base(&self, function: u64) -> Option<u16> {
        let (at, _) = self.described_at(function)?;
        let unit = self.units[at.unit].unit.unit_ref(&self.dwarf);
        let base = DebugTypes(self).entry(at)?.attr_value(gimli::DW_AT_frame_base)?;
        let AttributeValue::Exprloc(base) = base else { return None };
        match base.operations(unit.encoding()).next().ok()?? {
            Operation::CallFrameCFA => Some(CFA),
            Operation::Register { register } => Some(register.0),
            _ => None,
        }
    }
}

/// Stands for the address behind the return address.
pub(super) const CFA: u16 = u16::MAX;

/// Returns the distance of a slot from a register, once the function has made its frame.
fn stack_offset(register: u16, slot: u8) -> i64 {
    let before = match register {
        CFA => 0,
        // At the first instruction.
        RSP => 8,
        // The old one is saved there.
        RBP => 16,
        _ => return i64::MIN,
    };
    before + 8 * i64::from(slot)
}

/// Returns the location that holds at the first instruction.
pub(super) fn at_entry(
    unit: UnitRef<'_, Reader>,
    location: AttributeValue<Reader>,
    function: u64,
) -> Option<Expression<Reader>> {
    if let AttributeValue::Exprloc(everywhere) = location {
        return Some(everywhere);
    }
    let mut locations = unit.attr_locations(location).ok()??;
    while let Ok(Some(entry)) = locations.next() {
        if (entry.range.begin..entry.range.end).contains(&function) {
            return Some(entry.data);
        }
    }
    None
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
