//! Structures that hold the address of a text, and those that also hold its length.

use super::types::{DebugTypes, EntryAt, Shape};

/// The place of the text in a structure, in bytes from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TextAt {
    /// The address of a text that ends with a 0.
    Ended(u64),
    Counted {
        address: u64,
        length: u64,
        /// A 0 ends it as well, as what reads no lengths needs it.
        is_ended: bool,
    },
}

/// The name of a structure.
enum Named {
    Anything,
    Exactly(&'static str),
    BeginsWith(&'static str),
}

/// A structure, and the members that lead to the address and the length.
struct Known {
    name: Named,
    address: &'static [&'static str],
    length: Option<&'static [&'static str]>,
}

const fn known(
    name: Named,
    address: &'static [&'static str],
    length: Option<&'static [&'static str]>,
) -> Known {
    Known { name, address, length }
}

const VIEW: Named = Named::BeginsWith("basic_string_view<char,");
/// The address in a `std::string` of libstdc++.
const STRING_POINTER: &[&str] = &["_M_dataplus", "_M_p"];
const RUST_TEXT: &str = "&str";
const RUST_STRING: Named = Named::Exactly("String");
/// Bytes are shown as a text.
const RUST_BYTES: Named = Named::BeginsWith("Vec<u8,");
const RUST_POINTER: &[&str] = &["data_ptr"];
const RUST_LENGTH: Option<&[&str]> = Some(&["length"]);

/// Those of libstdc++, libc++ and of Rust since 1.60.
const ALL: [Known; 11] = [
    known(Named::Anything, STRING_POINTER, Some(&["_M_string_length"])),
    // The older one has its length before the text.
    known(Named::Anything, STRING_POINTER, None),
    known(VIEW, &["_M_str"], Some(&["_M_len"])),
    known(VIEW, &["__data_"], Some(&["__size_"])),
    known(Named::Exactly(RUST_TEXT), RUST_POINTER, RUST_LENGTH),
    known(Named::Exactly("&mut str"), RUST_POINTER, RUST_LENGTH),
    known(Named::Exactly("&[u8]"), RUST_POINTER, RUST_LENGTH),
    known(Named::Exactly("&mut [u8]"), RUST_POINTER, RUST_LENGTH),
    known(RUST_BYTES, &["buf", "inner", "ptr", "pointer", "pointer"], Some(&["len"])),
    known(
        RUST_STRING,
        &["vec", "buf", "inner", "ptr", "pointer", "pointer"],
        Some(&["vec", "len"]),
    ),
    known(RUST_STRING, &["vec", "buf", "ptr", "pointer", "pointer"], Some(&["vec", "len"])),
];

/// Returns whether a class is a view of a text, which is copied byte by byte although it has
/// constructors.
pub(super) fn is_view(types: DebugTypes<'_>, class: EntryAt) -> bool {
    types.name(class).is_some_and(|name| VIEW.is(&name))
        && matches!(text_at(types, class), Some(TextAt::Counted { .. }))
}

/// Returns whether a structure of Rust is an address and a length, which are passed as two numbers.
pub(super) fn is_rust_text(types: DebugTypes<'_>, structure: EntryAt) -> bool {
    types.name(structure).is_some_and(|name| name == RUST_TEXT)
}

/// Returns where a structure has its text, if it is one that holds a text.
pub(crate) fn text_at(types: DebugTypes<'_>, structure: EntryAt) -> Option<TextAt> {
    let name = types.name(structure).unwrap_or_default();
    ALL.iter().filter(|known| known.name.is(&name)).find_map(|known| {
        let (address, shape) = member_at(types, structure, known.address)?;
        let Shape::Pointer { to: Some(to), .. } = shape else { return None };
        let is_text = matches!(types.shape(to)?, Shape::Char | Shape::Integer { bytes: 1, .. });
        match known.length {
            _ if !is_text => None,
            None => Some(TextAt::Ended(address)),
            Some(path) => {
                let (length, shape) = member_at(types, structure, path)?;
                let is_length = shape == Shape::Integer { bytes: 8, signed: false };
                let is_ended = known.address == STRING_POINTER;
                is_length.then_some(TextAt::Counted { address, length, is_ended })
            }
        }
    })
}

impl Named {
    fn is(&self, name: &str) -> bool {
        match self {
            Self::Anything => true,
            Self::Exactly(own) => name == *own,
            Self::BeginsWith(own) => name.starts_with(own),
        }
    }
}

/// Returns the bytes before a member of a member, and its type.
fn member_at(types: DebugTypes<'_>, structure: EntryAt, path: &[&str]) -> Option<(u64, Shape)> {
    let (mut before, mut shape) = (0_u64, Shape::Structure { at: structure, bytes: 0 });
    for name in path {
        let Shape::Structure { at, .. } = shape else { return None };
        let member = types.member(at, name).filter(|member| !member.is_bit_field)?;
        before = before.checked_add(member.offset)?;
        shape = types.shape(member.of)?;
    }
    Some((before, shape))
}
