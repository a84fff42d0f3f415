//! Structures that hold the address of a text, and those that also hold its length.

use super::debug_types::{DebugTypes, EntryAt, Shape};
use super::parameters::RUST_TEXT;

/// Where a structure has its text, in bytes from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextAt {
    /// The address of a text that ends with a 0.
    Ended(u64),
    Counted {
        address: u64,
        length: u64,
    },
}

/// A structure: the beginning of its name, or any, and the members that lead to the address and the
/// length.
struct Known {
    name: Option<&'static str>,
    address: &'static [&'static str],
    length: Option<&'static [&'static str]>,
}

/// Those of libstdc++, libc++ and of Rust since 1.60.
const ALL: [Known; 6] = [
    Known { name: None, address: &["_M_dataplus", "_M_p"], length: None },
    Known {
        name: Some("basic_string_view<char,"),
        address: &["_M_str"],
        length: Some(&["_M_len"]),
    },
    Known {
        name: Some("basic_string_view<char,"),
        address: &["__data_"],
        length: Some(&["__size_"]),
    },
    Known { name: Some(RUST_TEXT), address: &["data_ptr"], length: Some(&["length"]) },
    Known {
        name: Some("String"),
        address: &["vec", "buf", "inner", "ptr", "pointer", "pointer"],
        length: Some(&["vec", "len"]),
    },
    Known {
        name: Some("String"),
        address: &["vec", "buf", "ptr", "pointer", "pointer"],
        length: Some(&["vec", "len"]),
    },
];

/// Returns whether a class is a view of a text, which is copied byte by byte although it has
/// constructors.
pub(super) fn is_view(types: DebugTypes<'_>, class: EntryAt) -> bool {
    let is_named =
        types.name(class).is_some_and(|name| name.starts_with("basic_string_view<char,"));
    is_named && matches!(text_at(types, class), Some(TextAt::Counted { .. }))
}

/// Returns where a structure has its text, if it is one that holds a text.
pub(super) fn text_at(types: DebugTypes<'_>, structure: EntryAt) -> Option<TextAt> {
    let name = types.name(structure).unwrap_or_default();
    ALL.iter().filter(|known| known.is(&name)).find_map(|known| {
        let (address, shape) = member_at(types, structure, known.address)?;
        let Shape::Pointer { to: Some(to), .. } = shape else { return None };
        let is_text = matches!(types.shape(to)?, Shape::Char | Shape::Integer { bytes: 1, .. });
        Some(match known.length {
            _ if !is_text => return None,
            None => TextAt::Ended(address),
            Some(length) => {
                TextAt::Counted { address, length: member_at(types, structure, length)?.0 }
            }
        })
    })
}

impl Known {
    fn is(&self, name: &str) -> bool {
        self.name.is_none_or(|own| match own.ends_with(',') {
            true => name.starts_with(own),
            false => name == own,
        })
    }
}

/// Returns the bytes before a member of a member, and its type.
fn member_at(types: DebugTypes<'_>, structure: EntryAt, path: &[&str]) -> Option<(u64, Shape)> {
    let (mut before, mut shape) = (0_u64, Shape::Structure { at: structure, bytes: 0 });
    for name in path {
        let Shape::Structure { at, .. } = shape else { return None };
        let member = types.member(at, name)?;
        before = before.checked_add(member.offset)?;
        shape = types.shape(member.of)?;
    }
    Some((before, shape))
}
