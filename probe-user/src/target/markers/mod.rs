//! Markers in a file: which scopes can be switched on, and where their events come out.
//!
//! docs/marker-format.md is the contract. A file may hold anything: a field is followed only as far
//! as the segments back it with bytes, everything is bounded, and what does not hold is counted as a
//! [`Flaw`] and left out.

mod flaws;
mod image;
mod runtimes;
mod sites;

pub(crate) use flaws::{Flaw, Flaws};
pub(crate) use runtimes::MarkerRuntime;
pub(crate) use sites::MarkerScope;
pub use sites::MarkerSite;

use super::budget::TooLarge;
use super::elf::Layout;
use super::source::Source;
use image::{ENTRY_SIZE, Image, MOST_ENTRIES};
use std::ops::Range;

/// What the marker sections of an object say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Markers {
    /// By group and name.
    pub scopes: Vec<MarkerScope>,
    /// One for each copy of a runtime.
    pub runtimes: Vec<MarkerRuntime>,
    /// Addresses of the section with the scopes' entries.
    pub section: Range<u64>,
    pub flaws: Flaws,
    /// There are more than the object's budget allows: then there are none.
    pub too_large: Option<TooLarge>,
}

/// Whether an object has markers at all.
pub(super) fn are_in(layout: &Layout) -> bool {
    [sites::SECTION, runtimes::SECTION].iter().any(|name| layout.section(name).is_some())
}

/// Reads the sections. `function_around` names the function that the code at an address is of, for
/// scopes that have no name of their own.
pub(super) fn read(
    source: &Source,
    layout: &Layout,
    function_around: impl Fn(u64) -> Option<String>,
) -> Markers {
    let read = || {
        let image = Image::new(source, layout);
        let mut flaws = Flaws::default();
        let scopes = sites::read(&image, layout, function_around, &mut flaws)?;
        let runtimes = runtimes::read(&image, layout, &mut flaws);
        let section = layout.section(sites::SECTION);
        let section = section.map_or(0..0, |section| readable(&section.addresses));
        Ok(Markers { scopes, runtimes, section, flaws, too_large: None })
    };
    let (markers, refused) = source.budget().watch(read);
    refused
        .map_or(markers, Err)
        .unwrap_or_else(|why| Markers { too_large: Some(why), ..Markers::default() })
}

/// As much of a section as entries are read of: its header may say anything.
fn readable(section: &Range<u64>) -> Range<u64> {
    let most = (MOST_ENTRIES * ENTRY_SIZE) as u64;
    section.start..section.end.min(section.start.saturating_add(most))
}

#[cfg(test)]
mod tests;
