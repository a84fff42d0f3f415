//! The place of a goroutine's id in its descriptor (`runtime.g`), as debug information has it.

use super::lines::Lines;
use super::types::{DebugTypes, EntryAt};

/// The unit with the types of Go's runtime.
const UNIT: &[u8] = b"runtime";
const DESCRIPTOR: &str = "runtime.g";
const ID: &str = "goid";
/// Entries of the unit that are looked at. That of Go 1.27 has some thousands.
const MOST_ENTRIES: usize = 1 << 17;

impl Lines {
    /// Returns the bytes before the id, if there is a description of it.
    pub(crate) fn goid(&self) -> Option<u64> {
        let named = |name: &super::lines::Reader| name.bytes() == UNIT;
        let mut units = self.units.iter().enumerate();
        units.find_map(|(number, unit)| {
            unit.unit.name.as_ref().filter(|name| named(name))?;
            self.goid_in(number)
        })
    }

    fn goid_in(&self, number: usize) -> Option<u64> {
        let types = DebugTypes(self);
        let unit = &self.units[number].unit;
        let mut entries = unit.unit_ref(&self.dwarf).entries();
        let mut ticker = self.budget.ticker();
        for _ in 0..MOST_ENTRIES {
            ticker.tick().ok()?;
            let entry = entries.next_dfs().ok()??;
            if entry.depth() != 1 || entry.tag() != gimli::DW_TAG_structure_type {
                continue;
            }
            let at = EntryAt { unit: number, offset: entry.offset() };
            if types.name(at).is_some_and(|name| name == DESCRIPTOR) {
                return Some(types.member(at, ID)?.offset);
            }
        }
        None
    }
}
