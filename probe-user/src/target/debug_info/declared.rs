//! Types that debug information only declares. clang leaves out the definition of a class that it expects
//! in another file, such as the parts of `std::string`, unless `-fstandalone-debug` is given.

use super::types::{DEEPEST, DebugTypes, EntryAt};

impl DebugTypes<'_> {
    /// Returns whether a type, behind its names and qualifiers, is only declared.
    pub(crate) fn is_declared(self, mut at: EntryAt) -> bool {
        for _ in 0..DEEPEST {
            let Some(entry) = self.entry(at) else { return false };
            match entry.tag() {
                gimli::DW_TAG_typedef | gimli::DW_TAG_const_type | gimli::DW_TAG_volatile_type => {
                    let Some(of) = self.type_of(at) else { return false };
                    at = of;
                }
                _ => return entry.attr_value(gimli::DW_AT_declaration).is_some(),
            }
        }
        false
    }

    /// Returns whether the type of a member or base class of a structure is only declared.
    pub(crate) fn has_declared_part(self, structure: EntryAt) -> bool {
        let mut has_one = false;
        self.members(structure, |member| has_one = has_one || self.is_declared(member.of));
        has_one
    }
}
