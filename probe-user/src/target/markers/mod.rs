//! Reads the markers of a file: its scopes, and the runtimes that deliver their events.
//!
//! docs/marker-format.md is the contract. A file may hold anything. So a field is followed only
//! where the segments back it with bytes, and everything is bounded. A broken entry is counted as a
//! [`Flaw`] and left out.

mod flaws;
mod image;
mod runtimes;
mod sites;
mod values;

pub(crate) use flaws::Flaws;
pub(crate) use runtimes::MarkerRuntime;
pub(crate) use sites::MarkerScope;
pub(crate) use sites::MarkerSite;

use super::elf::ElfLayout;
use super::read::budget::TooLarge;
use super::read::source::Source;
use image::{ENTRY_SIZE, Image, MOST_ENTRIES};
use sites::Sites;
use std::ops::Range;

/// The contents of an object's marker sections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Markers {
    /// Sorted by group and name.
    pub scopes: Vec<MarkerScope>,
    /// The places where the program asks for CTRACK's tables.
    pub requests: Vec<MarkerSite>,
    /// One for each copy of a runtime.
    pub runtimes: Vec<MarkerRuntime>,
    /// Addresses of the section with the scopes' entries.
    pub section: Range<u64>,
    pub flaws: Flaws,
    /// Set if there are more than the object's budget allows. Then there are none.
    pub too_large: Option<TooLarge>,
}

/// Returns whether an object has markers at all.
pub(super) fn are_in(layout: &ElfLayout) -> bool {
    [sites::SECTION, runtimes::SECTION].iter().any(|name| layout.section(name).is_some())
}

/// Reads the sections. `function_around` names the function around an address, for scopes without a
/// name.
pub(super) fn read(
    source: &Source,
    layout: &ElfLayout,
    function_around: impl Fn(u64) -> Option<String>,
) -> Markers {
    let read = || {
        let image = Image::new(source, layout);
        let mut flaws = Flaws::default();
        let Sites { scopes, requests } = sites::read(&image, layout, function_around, &mut flaws)?;
        let runtimes = runtimes::read(&image, layout, &mut flaws);
        let section = layout.section(sites::SECTION);
        let section = section.map_or(0..0, |section| readable(&section.addresses));
        Ok(Markers { scopes, requests, runtimes, section, flaws, too_large: None })
    };
    let (markers, refused) = source.budget().watch(read);
    refused
        .map_or(markers, Err)
        .unwrap_or_else(|why| Markers { too_large: Some(why), ..Markers::default() })
}

/// Limits a section to the entries that are read: its header may claim any size.
fn readable(section: &Range<u64>) -> Range<u64> {
    let most = (MOST_ENTRIES * ENTRY_SIZE) as u64;
    section.start..section.end.min(section.start.saturating_add(most))
}

#[cfg(test)]
mod tests;
