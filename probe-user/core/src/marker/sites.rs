//! From the address of a scope's entry in `ctrace_sites` to its function.
//!
//! A section is an array of equal entries, so the address is an index.

use super::objects::MarkerPlace;
use std::{ops::Range, sync::Arc};

/// Bytes of an entry.
const ENTRY: u64 = 32;

/// What is known of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Site {
    Chosen(MarkerPlace),
    /// A scope, but nobody asked for it here: another ctrace did.
    Other,
    /// No scope.
    Unknown,
}

/// The sections of a process.
#[derive(Clone, Debug, Default)]
pub(super) struct Sites {
    sections: Vec<Section>,
    /// The section of the last address.
    last: usize,
}

#[derive(Clone, Debug)]
struct Section {
    addresses: Range<u64>,
    /// By entry.
    functions: Arc<[Option<MarkerPlace>]>,
}

impl Sites {
    /// Adds what is mapped at `start`; what was known there is gone.
    pub(super) fn add(&mut self, start: u64, functions: Arc<[Option<MarkerPlace>]>) {
        let end = start.saturating_add(functions.len() as u64 * ENTRY);
        if self.sections.iter().any(|section| section.addresses == (start..end)) {
            return;
        }
        self.sections.retain(|s| s.addresses.end <= start || end <= s.addresses.start);
        self.sections.push(Section { addresses: start..end, functions });
    }

    #[inline]
    pub(super) fn find(&mut self, address: u64) -> Site {
        let within = |section: &&Section| section.addresses.contains(&address);
        let section = match self.sections.get(self.last).filter(within) {
            Some(section) => section,
            None => match self.sections.iter().position(|section| within(&section)) {
                Some(index) => {
                    self.last = index;
                    &self.sections[index]
                }
                None => return Site::Unknown,
            },
        };
        let offset = address - section.addresses.start;
        match section.functions[(offset / ENTRY) as usize] {
            _ if !offset.is_multiple_of(ENTRY) => Site::Unknown,
            Some(place) => Site::Chosen(place),
            None => Site::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::FuncId;

    fn place(function: u32) -> MarkerPlace {
        MarkerPlace { function: FuncId(function), number: 0 }
    }

    #[test]
    fn an_address_is_an_entry() {
        let mut sites = Sites::default();
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
        let mut sites = Sites::default();
        sites.add(0x1000, [Some(place(1)); 4].into());
        sites.add(0x1020, [Some(place(2))].into());
        assert_eq!(sites.find(0x1020), Site::Chosen(place(2)));
        assert_eq!(sites.find(0x1000), Site::Unknown);
    }
}
