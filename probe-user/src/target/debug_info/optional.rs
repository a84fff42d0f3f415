//! Rust's optional pointers: `Option<&T>` and `Option<Box<T>>` are a pointer that may be null.

use super::types::{DebugTypes, EntryAt, Shape};

impl DebugTypes<'_> {
    /// Returns the pointer that a structure of 8 bytes is, if null stands for none. `depth` counts types
    /// inside types.
    pub(super) fn optional(self, structure: EntryAt, depth: usize) -> Option<Shape> {
        let (mut parts, mut others) = (Vec::new(), 0);
        self.children(structure, |at, entry| match entry.tag() {
            gimli::DW_TAG_variant_part => parts.push(at),
            gimli::DW_TAG_member => others += 1,
            _ => {}
        });
        let ([part], 0) = (parts.as_slice(), others) else { return None };
        let (mut none, mut some) = (Vec::new(), Vec::new());
        self.children(*part, |at, entry| {
            if entry.tag() == gimli::DW_TAG_variant {
                let number = entry.attr_value(gimli::DW_AT_discr_value);
                match number.map(|number| number.udata_value()) {
                    None => some.push(at),
                    Some(number) => none.push((number, at)),
                }
            }
        });
        let ([(Some(0), none)], [some]) = (none.as_slice(), some.as_slice()) else { return None };
        if !self.fields(self.only_field(*none)?).is_empty() {
            return None;
        }
        let pointer = self.only_field(self.only_field(*some)?)?;
        match self.shape_within(pointer, depth + 1)? {
            Shape::Pointer { to, .. } => Some(Shape::Pointer { to, is_reference: false }),
            _ => None,
        }
    }

    /// Returns the types and places of the members of an entry.
    fn fields(self, at: EntryAt) -> Vec<(EntryAt, u64)> {
        let mut fields = Vec::new();
        self.members(at, |member| fields.push((member.of, member.offset)));
        fields
    }

    /// Returns the type of the only member, which is at the beginning.
    fn only_field(self, at: EntryAt) -> Option<EntryAt> {
        match self.fields(at).as_slice() {
            [(of, 0)] => Some(*of),
            _ => None,
        }
    }
}
