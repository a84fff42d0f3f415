//! The bytes of a parameter at the first instruction of its function, by debug information alone.
//!
//! Rust promises no way to pass parameters, so its rules cannot be followed as those of C are. But
//! what debug information says of the first instruction holds there: a register that it names has
//! the parameter, or some bytes of it. Where it names a place of the frame, the function stores the
//! parameter there first, and [`Stored`] tells from which register.

use super::confirmed::{CFA, RBP};
use super::lines::{Lines, Reader};
use super::parameters::ParameterPlace;
use super::stored::{Base, Stored, Within};
use super::types::{DebugTypes, EntryAt, Shape};
use gimli::{AttributeValue, Operation, UnitRef};

/// The registers of integers and pointers in the numbers of debug information: rdi, rsi, rdx, rcx,
/// r8, r9.
pub(super) const INTEGERS: [u16; 6] = [5, 4, 1, 2, 8, 9];
pub(super) const RSP: u16 = 7;
/// Parts of a parameter, at most.
pub(crate) const PARTS: usize = 8;
/// Bytes of the largest type that is passed by value: of a larger one, the address is passed.
const BY_VALUE: u64 = 16;
/// Operations of a location that are looked at.
const LONGEST: usize = 64;

/// Where the ABI passes 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Passed {
    /// The number of a register for integers and pointers.
    Register(u8),
    /// The number of 8 bytes on the stack, behind the return address.
    Stack(u8),
}

/// Some bytes of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PassedPart {
    /// The bytes of the parameter before it.
    pub(crate) offset: u64,
    pub(crate) bytes: u8,
    pub(crate) from: Passed,
    /// The bits before it.
    pub(crate) shift: u8,
}

/// All parts that are known.
pub(crate) type Parts = [Option<PassedPart>; PARTS];

/// A word that came with the call, and the bits of it that a value still has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Word {
    pub(super) from: Passed,
    pub(super) shift: u8,
    pub(super) mask: u64,
}

impl Word {
    pub(super) fn whole(from: Passed) -> Self {
        Self { from, shift: 0, mask: u64::MAX }
    }

    pub(super) fn masked(self, mask: u64) -> Self {
        Self { mask: self.mask & mask, ..self }
    }

    /// Returns the part of a parameter that its low bytes are. `None` if some of its bits are gone.
    fn part(self, offset: u64, bytes: u64, is_truth: bool) -> Option<PassedPart> {
        // What is 0 or 1 alone, as an enumeration of two may be, is passed with zeros before it.
        let wanted = if is_truth { 1 } else { low(bytes) };
        let is_whole = (1..=8).contains(&bytes) && self.mask & wanted == wanted;
        let Self { from, shift, .. } = self;
        is_whole.then_some(PassedPart { offset, bytes: bytes as u8, from, shift })
    }
}

/// Returns the mask of so many low bytes.
pub(super) fn low(bytes: u64) -> u64 {
    u64::MAX.checked_shr(64_u64.saturating_sub(bytes.saturating_mul(8)) as u32).unwrap_or(0)
}

/// What an expression names.
enum Named {
    Nothing,
    Word(Word),
    /// Memory at the address in a register.
    Behind(u8),
    /// So many bytes from the base of the frame.
    Frame(i64),
    /// The address of it is there.
    BehindFrame(i64),
    /// Another register, such as one for vectors, or more than is looked at.
    Other,
}

impl Lines {
    /// Returns where a parameter of a function is at its first instruction, and whether the code of the
    /// function tells that, from a place of its frame. `None` if debug information does not tell.
    pub(super) fn passed(
        &self,
        (function, parameter): (u64, EntryAt),
        shape: Shape,
        stored: &Stored,
    ) -> Option<(ParameterPlace, bool)> {
        let unit = self.units[parameter.unit].unit.unit_ref(&self.dwarf);
        let bytes = DebugTypes(self).bytes(shape);
        let location = DebugTypes(self).entry(parameter)?.attr_value(gimli::DW_AT_location)?;
        // What the caller leaves there may be anything, if the function writes to it first.
        let behind = |number: u8, of_code: bool| {
            (!stored.overwrites(number)).then_some((ParameterPlace::Behind(number), of_code))
        };
        let is_by_address =
            matches!(shape, Shape::Structure { .. } | Shape::Array { .. }) && bytes > BY_VALUE;
        let Some(location) = self.at_entry(unit, location.clone(), function) else {
            let later = || behind_later(unit, location, function, stored);
            let number = is_by_address.then(later)??;
            return behind(number, true);
        };
        let is_truth = matches!(shape, Shape::Bool | Shape::Enumeration { bytes: 1, .. });
        let frame = |offset: i64| {
            let (base, more) = self.base_of_frame(function)?;
            stored.place(base, offset.checked_add(more)?)
        };
        let (mut parts, mut known, mut is_stored) = ([None; PARTS], 0, false);
        let mut offset = 0_u64;
        for (named, piece) in pieces(unit, location)? {
            let size = piece.unwrap_or(bytes);
            let found: Vec<(u64, u64, Word)> = match (named, piece) {
                // A number is passed itself: the compiler has made it an address of something that the
                // function may change before it reads it.
                (Named::Behind(_), None) if is_plain(shape) => return None,
                (Named::Behind(number), None) => return behind(number, false),
                (Named::BehindFrame(at), None) => match stored.pointer(frame(at)?)?.from {
                    Passed::Register(number) => return behind(number, true),
                    Passed::Stack(_) => return None,
                },
                (Named::Frame(at), None) => match stored.within(frame(at)?, bytes)? {
                    // The address of a larger one is there.
                    Within::Stack(_) if bytes > BY_VALUE => return None,
                    Within::Stack(slot) => return Some((ParameterPlace::Stack(slot), true)),
                    Within::Words(words) => {
                        is_stored = true;
                        words
                    }
                },
                (Named::Word(word), _) => vec![(0, size, word)],
                // These bytes are nowhere that is read.
                (Named::Nothing | Named::Other, Some(_)) => Vec::new(),
                _ => return None,
            };
            for (inside, size, word) in found {
                let part = word.part(offset.checked_add(inside)?, size, is_truth)?;
                *parts.get_mut(known)? = Some(part);
                known += 1;
            }
            offset = offset.checked_add(size)?;
        }
        Some((place(parts, bytes)?, is_stored))
    }

    /// Returns what the base of a frame is relative to, and its distance from there.
    fn base_of_frame(&self, function: u64) -> Option<(Base, i64)> {
        let (register, more) = self.frame_base(function)?;
        let base = match register {
            RSP => Base::StackPointer,
            RBP => Base::FramePointer,
            CFA => Base::Caller,
            _ => return None,
        };
        Some((base, more))
    }
}

/// Returns whether a parameter of this type is one number or address.
fn is_plain(shape: Shape) -> bool {
    !matches!(shape, Shape::Structure { .. } | Shape::Array { .. } | Shape::Other { .. })
}

/// Returns the register that has the address of a parameter at the entry, where debug information tells
/// it for another register some instructions later. Unoptimized code copies such addresses first.
fn behind_later(
    unit: UnitRef<'_, Reader>,
    location: AttributeValue<Reader>,
    function: u64,
    stored: &Stored,
) -> Option<u8> {
    let mut locations = unit.attr_locations(location).ok()??;
    let first = locations.next().ok()??;
    let later = first.range.begin.checked_sub(function)?;
    let mut operations = first.data.operations(unit.encoding());
    let Operation::RegisterOffset { register, offset: 0, .. } = operations.next().ok()?? else {
        return None;
    };
    match operations.next().ok()? {
        None => stored.address_in(register.0, later),
        Some(_) => None,
    }
}

/// Returns the place of a parameter with these parts.
fn place(parts: Parts, bytes: u64) -> Option<ParameterPlace> {
    match parts {
        [None, ..] => None,
        [Some(PassedPart { offset: 0, bytes: own, from, shift: 0 }), None, ..]
            if u64::from(own) >= bytes =>
        {
            Some(match from {
                Passed::Register(number) => ParameterPlace::Register(number),
                Passed::Stack(slot) => ParameterPlace::Stack(slot),
            })
        }
        _ => Some(ParameterPlace::Parts(parts)),
    }
}

/// Returns the pieces of a location with their bytes, or the only one, which has no size.
fn pieces(
    unit: UnitRef<'_, Reader>,
    location: gimli::Expression<Reader>,
) -> Option<Vec<(Named, Option<u64>)>> {
    let mut operations = location.operations(unit.encoding());
    let (mut pieces, mut own) = (Vec::new(), Vec::new());
    for _ in 0..LONGEST {
        match operations.next().ok()? {
            None if pieces.is_empty() => return Some(vec![(named(&own), None)]),
            None => return own.is_empty().then_some(pieces),
            Some(Operation::Piece { size_in_bits, bit_offset: None }) => {
                pieces.push((named(&own), Some(size_in_bits / 8)));
                own.clear();
                if pieces.len() > PARTS || !size_in_bits.is_multiple_of(8) {
                    return None;
                }
            }
            Some(operation) => own.push(operation),
        }
    }
    None
}

/// Reads what one piece of a location names.
fn named(operations: &[Operation<Reader>]) -> Named {
    match operations {
        [] => Named::Nothing,
        [Operation::Register { register }] => {
            number(register.0).map_or(Named::Other, |it| Named::Word(Word::whole(it)))
        }
        [Operation::RegisterOffset { register, offset, .. }] => {
            match (number(register.0), *offset) {
                (Some(Passed::Register(number)), 0) => Named::Behind(number),
                // Behind the stack pointer may be the frame that the function makes.
                _ => Named::Other,
            }
        }
        [Operation::FrameOffset { offset }] => Named::Frame(*offset),
        [Operation::FrameOffset { offset }, Operation::Deref { size: 8, .. }] => {
            Named::BehindFrame(*offset)
        }
        [
            Operation::RegisterOffset { register, offset: 0, .. },
            changes @ ..,
            Operation::StackValue,
        ] => number(register.0)
            .and_then(|from| changed(Word::whole(from), changes))
            .map_or(Named::Other, Named::Word),
        _ => Named::Other,
    }
}

/// Follows what cuts bits of a word off.
fn changed(mut word: Word, changes: &[Operation<Reader>]) -> Option<Word> {
    for change in changes.chunks(2) {
        let [Operation::UnsignedConstant { value }, change] = change else { return None };
        word = match change {
            Operation::And => word.masked(*value),
            Operation::Shr if *value < 64 => {
                let shift = u64::from(word.shift) + value;
                Word { shift: u8::try_from(shift).ok()?, mask: word.mask >> value, ..word }
            }
            _ => return None,
        };
    }
    // A part begins at a byte.
    word.shift.is_multiple_of(8).then_some(word)
}

fn number(register: u16) -> Option<Passed> {
    let at = INTEGERS.iter().position(|it| *it == register)?;
    Some(Passed::Register(at as u8))
}
