//! Finds the function of a scope's entry address in `ctrace_sites`.
//!
//! A section is an array of equal entries, so the address is an index.

use super::objects::MarkerPlace;
use std::{collections::BTreeMap, sync::Arc};

/// Bytes of an entry.
const ENTRY: u64 = 32;

/// The meaning of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Site {
    Chosen(MarkerPlace),
    /// A scope that only another ctrace chose.
    Other,
    /// No scope.
    Unknown,
}

/// Limit of sections in a process, which may map an object any number of times.
const MOST_SECTIONS: usize = 4_096;

/// The sections of a process.
#[derive(Clone, Debug, Default)]
pub(super) struct ProcessSites {
    /// Disjoint sections by start address.
    sections: BTreeMap<u64, Section>,
    /// The section of the last address.
    last: Option<(u64, Section)>,
}

#[derive(Clone, Debug)]
struct Section {
    end: u64,
    /// Indexed by entry.
    functions: Arc<[Option<MarkerPlace>]>,
}

/// Returns the end of a section that begins at `start`.
fn end_of(start: u64, functions: &[Option<MarkerPlace>]) -> u64 {
    start.saturating_add(functions.len() as u64 * ENTRY)
}

impl ProcessSites {
    /// Returns whether exactly this section is mapped at `start`.
    pub(super) fn has(&self, start: u64, functions: &Arc<[Option<MarkerPlace>]>) -> bool {
        let known = self.sections.get(&start);
        known.is_some_and(|section| Arc::ptr_eq(&section.functions, functions))
    }

    /// Adds a mapping at `start` in place of older ones. Returns `false` if there are too many.
    pub(super) fn add(&mut self, start: u64, functions: Arc<[Option<MarkerPlace>]>) -> bool {
        let end = end_of(start, &functions);
        if functions.is_empty() || self.has(start, &functions) {
            return true;
        }
        self.last = None;
        while let Some((&below, section)) = self.sections.range(..end).next_back() {
            if section.end <= start {
                break;
            }
            self.sections.remove(&below);
        }
        let has_room = self.sections.len() < MOST_SECTIONS;
        if has_room {
            self.sections.insert(start, Section { end, functions });
        }
        has_room
    }

    #[inline]
    pub(super) fn find(&mut self, address: u64) -> Site {
        let is_last = |last: &&(u64, Section)| (last.0..last.1.end).contains(&address);
        if self.last.as_ref().filter(is_last).is_none() && !self.turn_to(address) {
            return Site::Unknown;
        }
        let Some((start, section)) = &self.last else { return Site::Unknown };
        let offset = address - start;
        match section.functions.get((offset / ENTRY) as usize) {
            _ if !offset.is_multiple_of(ENTRY) => Site::Unknown,
            Some(Some(place)) => Site::Chosen(*place),
            Some(None) => Site::Other,
            None => Site::Unknown,
        }
    }

    /// Makes the section of this address the last one, if there is one.
    fn turn_to(&mut self, address: u64) -> bool {
        let below = self.sections.range(..=address).next_back();
        let found = below.filter(|(_, section)| address < section.end);
        let Some((&start, section)) = found else { return false };
        self.last = Some((start, section.clone()));
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::FuncId;

    fn place(function: u32) -> MarkerPlace {
        MarkerPlace::new(FuncId(function), 0)
    }

    #[test]
    fn an_address_is_an_entry() {
        let mut sites = ProcessSites::default();
        sites.add(0x1000, [Some(place(7)), None].into());
        sites.add(0x2000, [Some(place(8))].into());
        for (address, expected) in [
            (0x1000, Site::Chosen(place(7))),
            (0x1020, Site::Other),
            (0x1040, Site::Unknown),
            (0x2000, Site::Chosen(place(8))),
            (0x2010, Site::Unknown),
            (0xfff, Site::Unknown),
        ] {
            assert_eq!(sites.find(address), expected, "{address:#x}");
        }
    }

    #[test]
    fn what_is_mapped_later_takes_the_place() {
        let mut sites = ProcessSites::default();
        sites.add(0x1000, [Some(place(1)); 4].into());
        sites.add(0x1020, [Some(place(2))].into());
        assert_eq!(sites.find(0x1020), Site::Chosen(place(2)));
        assert_eq!(sites.find(0x1000), Site::Unknown);
    }

    #[test]
    fn a_process_that_maps_an_object_again_and_again_is_bounded() {
        let (mut sites, functions) = (ProcessSites::default(), Arc::from([Some(place(7))]));
        let added = (0..1_000_000_u64).filter(|n| sites.add(n << 12, Arc::clone(&functions)));
        assert_eq!(added.count(), MOST_SECTIONS);
        let found = (0..1_000_000_u64).filter(|n| sites.find(n << 12) == Site::Chosen(place(7)));
        assert_eq!(found.count(), MOST_SECTIONS);
    }
}
