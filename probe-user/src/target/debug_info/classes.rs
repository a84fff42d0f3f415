//! How the System V ABI passes a value of a type, and returns it as a result.

use super::parameters::Language;
use super::texts::{is_rust_text, is_view};
use super::types::{DEEPEST, DebugTypes, EntryAt, Shape};
use gimli::AttributeValue;

/// The registers that a value takes, or how it is passed without.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// So many for integers, and so many vector registers. If there are fewer, it is on the stack.
    Registers([usize; 2]),
    /// Two numbers, each of which finds its own place.
    Words,
    /// Bytes on the stack.
    Memory(u64),
    Address,
}

/// Returns how a value of this type is passed, or returned as a result. `None` where that depends on
/// more than is looked at here: the places of all further parameters do, too.
pub(super) fn class(
    types: DebugTypes<'_>,
    of: EntryAt,
    shape: Shape,
    language: Language,
    is_result: bool,
) -> Option<Class> {
    match shape {
        Shape::Float { .. } => Some(Class::Registers([0, 1])),
        Shape::Integer { .. }
        | Shape::Enumeration { .. }
        | Shape::Bool
        | Shape::Char
        | Shape::Pointer { .. } => Some(Class::Registers([1, 0])),
        Shape::Structure { at, bytes } => match language {
            Language::Rust if is_rust_text(types, at) => Some(Class::Words),
            // Rust promises nothing. A large result is where C has it, and a small one is not.
            Language::Rust if is_result => {
                Some(if bytes > 16 { Class::Address } else { Class::Registers([1, 0]) })
            }
            Language::Rust => None,
            Language::Cxx => match types.attribute(at, gimli::DW_AT_calling_convention) {
                Some((_, AttributeValue::CallingConvention(how))) => match how {
                    gimli::DW_CC_pass_by_reference => Some(Class::Address),
                    gimli::DW_CC_pass_by_value => by_value(types, of, bytes, false),
                    _ => None,
                },
                _ if is_view(types, at) => by_value(types, of, bytes, false),
                // gcc does not say.
                _ if has_destructor(types, at) => Some(Class::Address),
                _ => by_value(types, of, bytes, true),
            },
            Language::C => by_value(types, of, bytes, false),
        },
        Shape::Array { .. } | Shape::Other { .. } => None,
    }
}

/// Returns whether a class of C++ has a destructor of its own: then its address is passed. DWARF 4 does
/// not tell those that the compiler makes.
fn has_destructor(types: DebugTypes<'_>, class: EntryAt) -> bool {
    let mut has_one = false;
    types.children(class, |at, entry| {
        has_one |= entry.tag() == gimli::DW_TAG_subprogram
            && entry.attr_value(gimli::DW_AT_defaulted).is_none()
            && types.name(at).is_some_and(|name| name.starts_with('~'));
    });
    has_one && types.version(class) >= 5
}

/// Returns whether a class may be one that is not copied byte by byte: it has constructors, a
/// destructor or virtual functions.
fn may_be_special(types: DebugTypes<'_>, class: EntryAt) -> bool {
    let own = types.name(class).unwrap_or_default();
    let own = own.split('<').next().unwrap_or_default();
    let mut is_special = false;
    types.children(class, |at, entry| {
        if entry.tag() == gimli::DW_TAG_subprogram {
            let name = types.name(at).unwrap_or_default();
            let is_virtual = entry.attr_value(gimli::DW_AT_virtuality).is_some();
            is_special |= is_virtual || name.starts_with('~') || name == own;
        }
    });
    is_special
}

/// Returns how a structure is passed that is copied byte by byte. `is_unsure`: its members may forbid
/// that.
fn by_value(types: DebugTypes<'_>, of: EntryAt, bytes: u64, is_unsure: bool) -> Option<Class> {
    let mut words = [None; 2];
    let is_plain = classify(types, of, 0, &mut words, (is_unsure, 0));
    let count = |is_float| words.iter().filter(|word| **word == Some(is_float)).count();
    match bytes {
        _ if !is_plain => None,
        0 => None,
        1..=16 => Some(Class::Registers([count(false), count(true)])),
        _ => Some(Class::Memory(bytes)),
    }
}

/// Marks the words of a structure: true for floating-point numbers alone. Returns false if it has
/// anything but aligned numbers and pointers of up to 8 bytes: then other rules hold.
fn classify(
    types: DebugTypes<'_>,
    of: EntryAt,
    offset: u64,
    words: &mut [Option<bool>; 2],
    (is_unsure, depth): (bool, usize),
) -> bool {
    let Some(shape) = types.shape(of).filter(|_| depth < DEEPEST) else { return false };
    let deeper = (is_unsure, depth + 1);
    let bytes = types.bytes(shape);
    let mut mark = |is_float: bool| {
        if let Some(word) = words.get_mut((offset / 8) as usize) {
            *word = Some(word.unwrap_or(true) && is_float);
        }
        bytes > 0 && offset.is_multiple_of(bytes)
    };
    match shape {
        Shape::Structure { at, .. }
            if is_unsure && may_be_special(types, at) && !is_view(types, at) =>
        {
            false
        }
        Shape::Structure { at, .. } => {
            let mut is_plain = true;
            let is_whole = types.members(at, |member| {
                let from = offset.saturating_add(member.offset);
                is_plain &= match member.is_bit_field {
                    true => false,
                    false => classify(types, member.of, from, words, deeper),
                };
            });
            is_whole && is_plain
        }
        // Its elements may reach into the second word. Those of a vector have a register for all.
        Shape::Array { of: element, bytes } => {
            let each = types.shape(element).map_or(0, |shape| types.bytes(shape));
            let is_vector = types.attribute(of, gimli::DW_AT_GNU_vector).is_some();
            if each == 0 || bytes == 0 || is_vector {
                return false;
            }
            let elements = (bytes / each).min(16 / each + 1);
            (0..elements).all(|nth| {
                classify(types, element, offset.saturating_add(nth * each), words, deeper)
            })
        }
        Shape::Float { .. } => mark(true),
        Shape::Integer { .. }
        | Shape::Enumeration { .. }
        | Shape::Bool
        | Shape::Char
        | Shape::Pointer { .. } => mark(false),
        Shape::Other { .. } => false,
    }
}
