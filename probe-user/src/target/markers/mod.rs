//! Markers in a file: which scopes can be switched on, and where their events come out.
//!
//! docs/marker-format.md is the contract. A file may hold anything: a field is followed only as far
//! as the segments back it with bytes, everything is bounded, and what does not hold is counted as a
//! [`Flaw`] and left out.

mod flaws;
mod image;
mod runtimes;
mod sites;

pub use flaws::{Flaw, Flaws};
pub use runtimes::MarkerRuntime;
pub use sites::{MarkerScope, MarkerSite};

use super::elf::Layout;
use image::Image;
use std::ops::Range;

/// What the marker sections of an object say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Markers {
    /// By group and name.
    pub scopes: Vec<MarkerScope>,
    /// One for each copy of a runtime.
    pub runtimes: Vec<MarkerRuntime>,
    /// Addresses of the section with the scopes' entries.
    pub section: Range<u64>,
    pub flaws: Flaws,
}

/// Whether an object has markers at all.
pub(super) fn are_in(layout: &Layout) -> bool {
    [sites::SECTION, runtimes::SECTION].iter().any(|name| layout.section(name).is_some())
}

/// Reads the sections. `function_around` names the function that the code at an address is of, for
/// scopes that have no name of their own.
pub(super) fn read(
    bytes: &[u8],
    layout: &Layout,
    function_around: impl Fn(u64) -> Option<String>,
) -> Markers {
    let image = Image::new(bytes, layout);
    let mut flaws = Flaws::default();
    let scopes = sites::read(&image, layout, function_around, &mut flaws);
    let runtimes = runtimes::read(&image, layout, &mut flaws);
    let section = layout.section(sites::SECTION).map_or(0..0, |section| section.addresses.clone());
    Markers { scopes, runtimes, section, flaws }
}

#[cfg(test)]
mod tests;
