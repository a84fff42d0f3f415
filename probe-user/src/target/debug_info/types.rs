//! Types in debug information: what a value is, how large it is, and where its members are.

use super::lines::{Lines, Reader, text};
use gimli::{AttributeValue, DebuggingInformationEntry, DwAt, UnitOffset};

pub(crate) type Entry = DebuggingInformationEntry<Reader>;

/// Longer chains of references, and deeper structures, count as damage.
pub(crate) const DEEPEST: usize = 32;
/// Members, parameters and bases of one entry that are looked at.
const MOST_CHILDREN: usize = 4096;

/// The place of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryAt {
    pub(crate) unit: usize,
    pub(crate) offset: UnitOffset,
}

/// A type without its names and qualifiers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    Integer {
        bytes: u8,
        signed: bool,
    },
    Enumeration {
        at: EntryAt,
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
    /// A type that cannot be read, such as `long double`, with its bytes.
    Other {
        bytes: u64,
    },
}

/// A member of a structure, and the bytes before it. Members of a base class, and of a member without
/// a name, belong to the structure around them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Member {
    pub(crate) at: EntryAt,
    pub(crate) is_base: bool,
    pub(crate) offset: u64,
    pub(crate) of: EntryAt,
    pub(crate) is_bit_field: bool,
}

/// The types of an object.
#[derive(Clone, Copy)]
pub(crate) struct DebugTypes<'a>(pub(crate) &'a Lines);

impl<'a> DebugTypes<'a> {
    pub(crate) fn entry(self, at: EntryAt) -> Option<Entry> {
        let unit = &self.0.units.get(at.unit)?.unit;
        unit.unit_ref(&self.0.dwarf).entry(at.offset).ok()
    }

    /// Returns the version of DWARF.
    pub(crate) fn version(self, at: EntryAt) -> u16 {
        self.0.units.get(at.unit).map_or(0, |unit| unit.unit.header.version())
    }

    /// Returns an entry, and those that it completes, one after the other.
    pub(super) fn completed(self, at: EntryAt) -> impl Iterator<Item = (EntryAt, Entry)> + use<'a> {
        const ORIGINS: [DwAt; 2] = [gimli::DW_AT_abstract_origin, gimli::DW_AT_specification];
        let mut next = Some(at);
        let step = move || {
            let at = next.take()?;
            let entry = self.entry(at)?;
            let origin = ORIGINS.into_iter().find_map(|name| entry.attr_value(name));
            next = origin.and_then(|origin| self.0.referred(at.unit, origin));
            Some((at, entry))
        };
        std::iter::from_fn(step).take(DEEPEST)
    }

    /// Returns an attribute of an entry, or of one that it completes.
    pub(super) fn attribute(self, at: EntryAt, name: DwAt) -> Option<(usize, Value)> {
        self.completed(at).find_map(|(at, entry)| Some((at.unit, entry.attr_value(name)?)))
    }

    /// Returns the name of an entry, or of one that it completes.
    pub(crate) fn name(self, at: EntryAt) -> Option<String> {
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
    pub(crate) fn children(self, at: EntryAt, mut each: impl FnMut(EntryAt, &Entry)) {
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

    /// Looks through names and qualifiers of a type. `None` where it is unknown, only declared, or
    /// `void`.
    pub(crate) fn shape(self, at: EntryAt) -> Option<Shape> {
        self.shape_within(at, 0)
    }

    /// `depth` counts types inside types, which a crafted file may nest without end.
    pub(super) fn shape_within(self, mut at: EntryAt, depth: usize) -> Option<Shape> {
        if depth == DEEPEST {
            return None;
        }
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
                gimli::DW_TAG_enumeration_type => self.enumeration(at, bytes(), depth),
                gimli::DW_TAG_pointer_type => pointer(false),
                gimli::DW_TAG_reference_type | gimli::DW_TAG_rvalue_reference_type => pointer(true),
                gimli::DW_TAG_structure_type
                | gimli::DW_TAG_class_type
                | gimli::DW_TAG_union_type => {
                    // Its definition is elsewhere, in a file that we do not read.
                    let is_declared = entry.attr_value(gimli::DW_AT_declaration).is_some();
                    if is_declared || entry.attr_value(gimli::DW_AT_signature).is_some() {
                        return None;
                    }
                    let optional = (bytes() == 8).then(|| self.optional(at, depth)).flatten();
                    optional.unwrap_or(Shape::Structure { at, bytes: bytes() })
                }
                gimli::DW_TAG_array_type => {
                    let of = self.type_of(at)?;
                    let each = self.shape_within(of, depth + 1).map_or(0, |it| self.bytes(it));
                    Shape::Array { of, bytes: self.elements(at).saturating_mul(each) }
                }
                // It has 8 or 16 bytes, by what it points to.
                gimli::DW_TAG_ptr_to_member_type => return None,
                _ => Shape::Other { bytes: bytes() },
            });
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

    fn enumeration(self, at: EntryAt, bytes: u64, depth: usize) -> Shape {
        let own = self.base(at, bytes);
        let of = self.type_of(at).and_then(|of| self.shape_within(of, depth + 1));
        match (own, of, bytes) {
            (Shape::Integer { signed, .. }, _, 1 | 2 | 4 | 8)
            | (_, Some(Shape::Integer { signed, .. }), 1 | 2 | 4 | 8) => {
                Shape::Enumeration { at, bytes: bytes as u8, signed }
            }
            (_, _, 1 | 2 | 4 | 8) => Shape::Enumeration { at, bytes: bytes as u8, signed: false },
            _ => Shape::Other { bytes },
        }
    }

    /// Returns the numbers of an enumeration with their names.
    pub(crate) fn enumerators(self, enumeration: EntryAt) -> Vec<(i64, String)> {
        let mut all = Vec::new();
        self.children(enumeration, |at, entry| {
            let number = match entry.attr_value(gimli::DW_AT_const_value) {
                _ if entry.tag() != gimli::DW_TAG_enumerator => None,
                Some(AttributeValue::Sdata(number)) => Some(number),
                value => value.and_then(|value| value.udata_value()).map(|number| number as i64),
            };
            all.extend(number.zip(self.name(at)));
        });
        all
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
    pub(crate) fn bytes(self, shape: Shape) -> u64 {
        match shape {
            Shape::Integer { bytes, .. }
            | Shape::Enumeration { bytes, .. }
            | Shape::Float { bytes } => bytes.into(),
            Shape::Bool | Shape::Char => 1,
            Shape::Pointer { .. } => 8,
            Shape::Structure { bytes, .. }
            | Shape::Array { bytes, .. }
            | Shape::Other { bytes } => bytes,
        }
    }

    /// Calls `each` with the members of a structure and its base classes, as they are declared.
    /// Returns false if one has no fixed place.
    pub(crate) fn members(self, structure: EntryAt, mut each: impl FnMut(Member)) -> bool {
        let mut is_whole = true;
        self.children(structure, |at, entry| {
            let is_base = entry.tag() == gimli::DW_TAG_inheritance;
            // The variants of an enumeration of Rust share their place.
            is_whole &= entry.tag() != gimli::DW_TAG_variant_part;
            // A static member has no place in the structure.
            let is_static = entry.attr_value(gimli::DW_AT_external).is_some();
            if !is_base && (entry.tag() != gimli::DW_TAG_member || is_static) {
                return;
            }
            let bits = entry.attr_value(gimli::DW_AT_data_bit_offset);
            let is_bit_field = bits.is_some() || entry.attr_value(gimli::DW_AT_bit_size).is_some();
            let offset = match (bits, entry.attr_value(gimli::DW_AT_data_member_location)) {
                (Some(bits), _) => bits.udata_value().map(|bits| bits / 8),
                (None, Some(bytes)) => bytes.udata_value(),
                (None, None) => Some(0),
            };
            // A virtual base class is where only the object itself says.
            let (Some(of), Some(offset)) = (self.type_of(at), offset) else {
                is_whole = false;
                return;
            };
            each(Member { at, is_base, offset, of, is_bit_field });
        });
        is_whole
    }

    /// Returns whether a member has this name, which is empty for none.
    fn is_named(self, member: Member, name: &str) -> bool {
        let own = if member.is_base { None } else { self.name(member.at) };
        own.unwrap_or_default() == name
    }

    /// Finds a member by its name, also in base classes and in members without a name.
    pub(crate) fn member(self, structure: EntryAt, name: &str) -> Option<Member> {
        self.member_within(structure, name, 0)
    }

    fn member_within(self, structure: EntryAt, name: &str, depth: usize) -> Option<Member> {
        let (mut found, mut nameless) = (None, Vec::new());
        self.members(structure, |member| {
            if self.is_named(member, name) {
                found = found.or(Some(member));
            } else if self.is_named(member, "") {
                nameless.push(member);
            }
        });
        found.or_else(|| {
            nameless.into_iter().find_map(|outer| {
                let Some(Shape::Structure { at, .. }) = self.shape(outer.of) else { return None };
                let inner =
                    (depth < DEEPEST).then(|| self.member_within(at, name, depth + 1))??;
                Some(Member { offset: outer.offset.checked_add(inner.offset)?, ..inner })
            })
        })
    }
}

type Value = AttributeValue<Reader>;
