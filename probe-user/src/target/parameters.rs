//! The parameters of a function in debug information, and where the System V ABI puts each when the
//! function is entered.

use super::debug_types::{DebugTypes, EntryAt, Shape};
use super::lines::Lines;
use gimli::{AttributeValue, UnitOffset};
use std::collections::HashMap;
use std::ops::Range;

/// Registers of integers and pointers, and vector registers.
const REGISTERS: [usize; 2] = [6, 8];
/// Structures with larger members inside than this, or deeper ones, count as damage.
const DEEPEST: usize = 16;

/// A parameter.
#[derive(Clone, Debug)]
pub(super) struct Parameter {
    /// Empty if it has none.
    pub(super) name: String,
    pub(super) of: Option<EntryAt>,
    pub(super) place: Place,
}

/// Where a parameter is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Place {
    /// The register of this number among those for integers and pointers.
    Register(u8),
    /// Memory to which this register points: the ABI passes an address.
    Behind(u8),
    /// 8 bytes or more on the stack, from the one with this number on.
    Stack(u8),
    /// A vector register, which no program can read, or several registers.
    Elsewhere,
}

/// The registers that a value takes, or how it is passed without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    /// So many for integers, and so many vector registers.
    Registers([usize; 2]),
    /// Bytes on the stack.
    Memory(u64),
    /// The same on 16 bytes that begin at a multiple of 16.
    LongDouble,
    Address,
}

/// The functions of a unit, by address.
pub(super) type FunctionEntries = HashMap<u64, UnitOffset>;

/// Bytes that an entry of [`FunctionEntries`] takes.
const ENTRY: u64 = 64;

impl Lines {
    /// Returns the parameters of the function at an address; `None` if it is not described.
    pub(super) fn parameters(&self, function: u64) -> Option<Vec<Parameter>> {
        let at = self.function_at(function)?;
        let types = DebugTypes(self);
        let mut own = Vec::new();
        types.children(at, |at, entry| {
            if entry.tag() == gimli::DW_TAG_formal_parameter {
                own.push(at);
            }
        });
        let is_rust = self.is_rust(at.unit);
        let mut places = Places::default();
        // The address of a result in memory comes first.
        let result = types.type_of(at).and_then(|of| Some((of, types.shape(of)?)));
        if let Some((of, shape)) = result
            && matches!(class(types, of, shape, is_rust), Some(Class::Memory(_) | Class::Address))
        {
            places.used[0] = 1;
        }
        let parameters = own.into_iter().map(|at| {
            let of = types.type_of(at);
            let class = of.and_then(|of| class(types, of, types.shape(of)?, is_rust));
            let name = types.name(at).unwrap_or_default();
            Parameter { name, of, place: places.give(class) }
        });
        Some(parameters.collect())
    }

    /// Returns the type of the result of the function at an address; `None` if it is not described.
    pub(super) fn result_of(&self, function: u64) -> Option<Option<EntryAt>> {
        let at = self.function_at(function)?;
        Some(DebugTypes(self).type_of(at))
    }

    fn function_at(&self, address: u64) -> Option<EntryAt> {
        self.budget.check().ok()?;
        let mut units = self.units_at(address);
        units.find_map(|unit| {
            let offset = *self.functions(unit).get(&address)?;
            Some(EntryAt { unit, offset })
        })
    }

    fn functions(&self, unit: usize) -> &FunctionEntries {
        self.units[unit].functions.get_or_init(|| {
            let mut functions = HashMap::new();
            let unit = self.units[unit].unit.unit_ref(&self.dwarf);
            let mut entries = unit.entries();
            let mut ticker = self.budget.ticker();
            // A partial result is not kept: see `Object::with_lines`.
            while let Ok(Some(entry)) = entries.next_dfs() {
                if ticker.tick().is_err() {
                    break;
                }
                if entry.tag() != gimli::DW_TAG_subprogram {
                    continue;
                }
                let Ok(mut ranges) = unit.die_ranges(entry) else { continue };
                while let Ok(Some(range)) = ranges.next() {
                    if range.begin == 0 || ticker.tick().is_err() {
                        continue;
                    }
                    if self.budget.charge(ENTRY).is_err() {
                        return functions;
                    }
                    functions.insert(range.begin, entry.offset());
                }
            }
            functions
        })
    }

    fn is_rust(&self, unit: usize) -> bool {
        let unit = self.units[unit].unit.unit_ref(&self.dwarf);
        let mut entries = unit.entries();
        let root = entries.next_dfs().ok().flatten();
        let language = root.and_then(|root| root.attr_value(gimli::DW_AT_language));
        matches!(language, Some(AttributeValue::Language(gimli::DW_LANG_Rust)))
    }
}

/// What earlier parameters have taken.
#[derive(Default)]
struct Places {
    used: [usize; 2],
    slots: u64,
    /// True from the first parameter on whose type is unknown.
    is_lost: bool,
}

impl Places {
    fn give(&mut self, class: Option<Class>) -> Place {
        let Some(class) = class.filter(|_| !self.is_lost) else {
            self.is_lost = true;
            return Place::Elsewhere;
        };
        let on_stack = |slots: &mut u64, bytes: u64| {
            let first = *slots;
            *slots = slots.saturating_add(bytes.div_ceil(8).max(1));
            u8::try_from(first).map_or(Place::Elsewhere, Place::Stack)
        };
        match class {
            Class::Address if self.used[0] < REGISTERS[0] => {
                self.used[0] += 1;
                Place::Behind(self.used[0] as u8 - 1)
            }
            // Its address is on the stack, and one more to follow.
            Class::Address => {
                self.slots = self.slots.saturating_add(1);
                Place::Elsewhere
            }
            Class::Registers(wanted) => {
                let is_free = |kind: usize| self.used[kind] + wanted[kind] <= REGISTERS[kind];
                if !(is_free(0) && is_free(1)) {
                    let bytes = 8 * (wanted[0] + wanted[1]) as u64;
                    return on_stack(&mut self.slots, bytes);
                }
                let first = self.used[0] as u8;
                self.used = [self.used[0] + wanted[0], self.used[1] + wanted[1]];
                if wanted == [1, 0] { Place::Register(first) } else { Place::Elsewhere }
            }
            Class::Memory(bytes) => on_stack(&mut self.slots, bytes),
            Class::LongDouble => {
                self.slots = self.slots.next_multiple_of(2);
                on_stack(&mut self.slots, 16)
            }
        }
    }
}

/// Returns how a value of this type is passed, if that is known.
fn class(types: DebugTypes<'_>, of: EntryAt, shape: Shape, is_rust: bool) -> Option<Class> {
    let bytes = types.bytes(shape);
    Some(match shape {
        Shape::Float { .. } => Class::Registers([0, 1]),
        Shape::Structure { at, .. } if is_passed_by_address(types, at) => Class::Address,
        Shape::Structure { .. } if bytes > 16 && is_rust => Class::Address,
        Shape::Structure { .. } if bytes > 16 => Class::Memory(bytes),
        Shape::Structure { .. } => {
            let mut words = [None; 2];
            classify(types, of, 0..bytes, &mut words, 0);
            let count = |is_float| words.iter().filter(|word| **word == Some(is_float)).count();
            Class::Registers([count(false), count(true)])
        }
        // __int128 and long double. Others are rare, and have rules of their own.
        Shape::Other { bytes: 16 } => match types.encoding(of)? {
            gimli::DW_ATE_signed | gimli::DW_ATE_unsigned => Class::Registers([2, 0]),
            gimli::DW_ATE_float => Class::LongDouble,
            _ => return None,
        },
        Shape::Other { .. } => return None,
        _ => Class::Registers([1, 0]),
    })
}

/// Marks the words of a structure of up to 16 bytes: true for floating-point numbers alone.
fn classify(
    types: DebugTypes<'_>,
    of: EntryAt,
    within: Range<u64>,
    words: &mut [Option<bool>; 2],
    depth: usize,
) {
    let offset = within.start;
    let Some(shape) = types.shape(of).filter(|_| depth < DEEPEST && offset < within.end) else {
        return;
    };
    let mut mark = |is_float: bool| {
        if let Some(word) = words.get_mut((offset / 8) as usize) {
            *word = Some(word.unwrap_or(true) && is_float);
        }
    };
    match shape {
        Shape::Structure { at, .. } => {
            for member in types.members(at) {
                let from = offset.saturating_add(member.offset);
                classify(types, member.of, from..within.end, words, depth + 1);
            }
        }
        // Its elements may reach into the second word.
        Shape::Array { of, bytes } => {
            let element = types.shape(of).map_or(0, |shape| types.bytes(shape)).clamp(1, 16);
            for nth in 0..bytes.min(16) / element {
                classify(types, of, offset + nth * element..within.end, words, depth + 1);
            }
        }
        Shape::Float { .. } => mark(true),
        _ => mark(false),
    }
}

/// Returns whether a class of C++ cannot be copied byte by byte: then its address is passed.
fn is_passed_by_address(types: DebugTypes<'_>, structure: EntryAt) -> bool {
    match types.attribute(structure, gimli::DW_AT_calling_convention) {
        Some((_, AttributeValue::CallingConvention(how))) => how == gimli::DW_CC_pass_by_reference,
        _ => {
            let mut has_destructor = false;
            types.children(structure, |at, entry| {
                has_destructor |= entry.tag() == gimli::DW_TAG_subprogram
                    && types.name(at).is_some_and(|name| name.starts_with('~'));
            });
            has_destructor
        }
    }
}
