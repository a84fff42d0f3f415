//! Types in debug information: what a value is, how large it is, and where its members are.

use super::inlined::text;
use super::lines::{Lines, Reader};
use gimli::{AttributeValue, DebuggingInformationEntry, DwAt, DwAte, UnitOffset};

pub(super) type Entry = DebuggingInformationEntry<Reader>;

/// Longer chains of references, and deeper structures, count as damage.
const DEEPEST: usize = 32;
/// Members, parameters and bases of one entry that are looked at.
const MOST_CHILDREN: usize = 4096;

/// The place of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntryAt {
    pub(super) unit: usize,
    pub(super) offset: UnitOffset,
}

/// A type without its names and qualifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    Integer {
        bytes: u8,
        signed: bool,
    },
    Bool,
    Char,
    Float {
        bytes: u8,
    },
    Pointer {
        to: Option<EntryAt>,
        is_reference: bool,
    },
    Structure {
        at: EntryAt,
        bytes: u64,
    },
    Array {
        of: EntryAt,
        bytes: u64,
    },
    /// What cannot be read, such as `long double`, with its bytes.
    Other {
        bytes: u64,
    },
}

/// A member of a structure, and the bytes before it.
#[derive(Clone, Debug)]
pub(super) struct Member {
    /// Empty for one without a name, whose members belong to the structure around it, as do those
    /// of a base class.
    pub(super) name: String,
    pub(super) offset: u64,
    pub(super) of: EntryAt,
    pub(super) is_bit_field: bool,
}

/// The types of an object.
#[derive(Clone, Copy)]
pub(super) struct DebugTypes<'a>(pub(super) &'a Lines);

impl DebugTypes<'_> {
    pub(super) fn entry(self, at: EntryAt) -> Option<Entry> {
        let unit = &self.0.units.get(at.unit)?.unit;
        unit.unit_ref(&self.0.dwarf).entry(at.offset).ok()
    }

    /// Returns an attribute of an entry, or of one that it completes.
    pub(super) fn attribute(self, mut at: EntryAt, name: DwAt) -> Option<(usize, Value)> {
        let origins = [gimli::DW_AT_abstract_origin, gimli::DW_AT_specification];
        for _ in 0..DEEPEST {
            let entry = self.entry(at)?;
            if let Some(value) = entry.attr_value(name) {
                return Some((at.unit, value));
            }
            let origin = origins.into_iter().find_map(|origin| entry.attr_value(origin))?;
            at = self.0.referred(at.unit, origin)?;
        }
        None
    }

    /// Returns the name of an entry, or of one that it completes.
    pub(super) fn name(self, at: EntryAt) -> Option<String> {
        let (unit, value) = self.attribute(at, gimli::DW_AT_name)?;
        let unit = self.0.units[unit].unit.unit_ref(&self.0.dwarf);
        text(unit, value)
    }

    /// Returns the type of an entry.
    pub(super) fn type_of(self, at: EntryAt) -> Option<EntryAt> {
        let (unit, value) = self.attribute(at, gimli::DW_AT_type)?;
        self.0.referred(unit, value)
    }

    fn number(self, at: EntryAt, name: DwAt) -> Option<u64> {
        self.attribute(at, name)?.1.udata_value()
    }

    /// Calls `each` with the entries directly inside one, in their order.
    pub(super) fn children(self, at: EntryAt, mut each: impl FnMut(EntryAt, &Entry)) {
        // A crafted structure may contain itself, and be asked for its members for ever.
        let Some(unit) = self.0.units.get(at.unit).filter(|_| self.0.budget.check().is_ok()) else {
            return;
        };
        let unit = unit.unit.unit_ref(&self.0.dwarf);
        let Ok(mut entries) = unit.entries_at_offset(at.offset) else { return };
        let mut ticker = self.0.budget.ticker();
        let (mut depth, mut seen) = (None, 0);
        while let Ok(Some(entry)) = entries.next_dfs() {
            let first = *depth.get_or_insert(entry.depth());
            let is_itself = entry.offset() == at.offset;
            if seen == MOST_CHILDREN || ticker.tick().is_err() {
                return;
            }
            if entry.depth() <= first && !is_itself {
                return;
            }
            if entry.depth() == first + 1 {
                seen += 1;
                each(EntryAt { unit: at.unit, offset: entry.offset() }, entry);
            }
        }
    }

    /// Looks through names and qualifiers of a type. `None` where it is unknown, or `void`.
    pub(super) fn shape(self, mut at: EntryAt) -> Option<Shape> {
        for _ in 0..DEEPEST {
            let entry = self.entry(at)?;
            let bytes = || self.number(at, gimli::DW_AT_byte_size).unwrap_or(0);
            let pointer = |is_reference| Shape::Pointer { to: self.type_of(at), is_reference };
            return Some(match entry.tag() {
                gimli::DW_TAG_typedef
                | gimli::DW_TAG_const_type
                | gimli::DW_TAG_volatile_type
                | gimli::DW_TAG_restrict_type
                | gimli::DW_TAG_atomic_type => {
                    at = self.type_of(at)?;
                    continue;
                }
                gimli::DW_TAG_base_type => self.base(at, bytes()),
                gimli::DW_TAG_enumeration_type => self.enumeration(at, bytes()),
                gimli::DW_TAG_pointer_type => pointer(false),
                gimli::DW_TAG_reference_type | gimli::DW_TAG_rvalue_reference_type => pointer(true),
                gimli::DW_TAG_structure_type
                | gimli::DW_TAG_class_type
                | gimli::DW_TAG_union_type => Shape::Structure { at, bytes: bytes() },
                gimli::DW_TAG_array_type => {
                    let of = self.type_of(at)?;
                    let each = self.shape(of).map_or(0, |shape| self.bytes(shape));
                    Shape::Array { of, bytes: self.elements(at).saturating_mul(each) }
                }
                // It has 8 or 16 bytes, by what it points to.
                gimli::DW_TAG_ptr_to_member_type => return None,
                _ => Shape::Other { bytes: bytes() },
            });
        }
        None
    }

    /// Returns the encoding of a number, also through names and qualifiers.
    pub(super) fn encoding(self, mut at: EntryAt) -> Option<DwAte> {
        for _ in 0..DEEPEST {
            match self.entry(at)?.attr_value(gimli::DW_AT_encoding) {
                Some(AttributeValue::Encoding(encoding)) => return Some(encoding),
                _ => at = self.type_of(at)?,
            }
        }
        None
    }

    fn base(self, at: EntryAt, bytes: u64) -> Shape {
        let own = self.entry(at).and_then(|entry| entry.attr_value(gimli::DW_AT_encoding));
        let Some(AttributeValue::Encoding(encoding)) = own else { return Shape::Other { bytes } };
        let is_plain_char = || self.name(at).is_some_and(|name| name == "char");
        match (encoding, bytes) {
            (gimli::DW_ATE_boolean, 1) => Shape::Bool,
            (gimli::DW_ATE_signed_char | gimli::DW_ATE_unsigned_char, 1) if is_plain_char() => {
                Shape::Char
            }
            (gimli::DW_ATE_float, 4 | 8) => Shape::Float { bytes: bytes as u8 },
            (gimli::DW_ATE_signed | gimli::DW_ATE_signed_char, 1 | 2 | 4 | 8) => {
                Shape::Integer { bytes: bytes as u8, signed: true }
            }
            (
                gimli::DW_ATE_unsigned
                | gimli::DW_ATE_unsigned_char
                | gimli::DW_ATE_UTF
                | gimli::DW_ATE_boolean,
                1 | 2 | 4 | 8,
            ) => Shape::Integer { bytes: bytes as u8, signed: false },
            _ => Shape::Other { bytes },
        }
    }

    fn enumeration(self, at: EntryAt, bytes: u64) -> Shape {
        let own = self.base(at, bytes);
        let of = self.type_of(at).and_then(|of| self.shape(of));
        match (own, of, bytes) {
            (Shape::Integer { signed, .. }, _, 1 | 2 | 4 | 8)
            | (_, Some(Shape::Integer { signed, .. }), 1 | 2 | 4 | 8) => {
                Shape::Integer { bytes: bytes as u8, signed }
            }
            (_, _, 1 | 2 | 4 | 8) => Shape::Integer { bytes: bytes as u8, signed: false },
            _ => Shape::Other { bytes },
        }
    }

    /// Returns the number of elements of an array, 0 where it is not known.
    fn elements(self, array: EntryAt) -> u64 {
        let mut all = None;
        self.children(array, |at, entry| {
            if entry.tag() == gimli::DW_TAG_subrange_type {
                let last = self.number(at, gimli::DW_AT_upper_bound);
                let count =
                    self.number(at, gimli::DW_AT_count).or(last.map(|it| it.wrapping_add(1)));
                all = Some(all.unwrap_or(1_u64).saturating_mul(count.unwrap_or(0)));
            }
        });
        all.unwrap_or(0)
    }

    /// Returns the bytes of a value of this type.
    pub(super) fn bytes(self, shape: Shape) -> u64 {
        match shape {
            Shape::Integer { bytes, .. } | Shape::Float { bytes } => bytes.into(),
            Shape::Bool | Shape::Char => 1,
            Shape::Pointer { .. } => 8,
            Shape::Structure { bytes, .. }
            | Shape::Array { bytes, .. }
            | Shape::Other { bytes } => bytes,
        }
    }

    /// Returns the members of a structure and its base classes, as they are declared.
    pub(super) fn members(self, structure: EntryAt) -> Vec<Member> {
        let mut members = Vec::new();
        self.children(structure, |at, entry| {
            let is_base = entry.tag() == gimli::DW_TAG_inheritance;
            // A static member has no place in the structure.
            let is_static = entry.attr_value(gimli::DW_AT_external).is_some();
            if !is_base && (entry.tag() != gimli::DW_TAG_member || is_static) {
                return;
            }
            let Some(of) = self.type_of(at) else { return };
            let bits = [gimli::DW_AT_bit_size, gimli::DW_AT_data_bit_offset];
            let is_bit_field = bits.into_iter().any(|bit| entry.attr_value(bit).is_some());
            let offset = match entry.attr_value(gimli::DW_AT_data_member_location) {
                None => 0,
                Some(value) => match value.udata_value() {
                    Some(offset) => offset,
                    // A virtual base class is where only the object itself says.
                    None => return,
                },
            };
            let name = if is_base { String::new() } else { self.name(at).unwrap_or_default() };
            members.push(Member { name, offset, of, is_bit_field });
        });
        members
    }

    /// Finds a member by its name, also in base classes and in members without a name.
    pub(super) fn member(self, structure: EntryAt, name: &str) -> Option<Member> {
        self.member_within(structure, name, 0)
    }

    fn member_within(self, structure: EntryAt, name: &str, depth: usize) -> Option<Member> {
        let members = self.members(structure);
        if let Some(found) = members.iter().find(|member| member.name == name) {
            return Some(found.clone());
        }
        let mut nameless = members.into_iter().filter(|member| member.name.is_empty());
        nameless.find_map(|outer| {
            let Some(Shape::Structure { at, .. }) = self.shape(outer.of) else { return None };
            let inner = (depth < DEEPEST).then(|| self.member_within(at, name, depth + 1))??;
            Some(Member { offset: outer.offset.checked_add(inner.offset)?, ..inner })
        })
    }
}

type Value = AttributeValue<Reader>;
