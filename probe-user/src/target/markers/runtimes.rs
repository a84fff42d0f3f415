//! Reads `ctrace_runtime`: the runtimes that deliver the events of an object's scopes.

use super::super::elf::ElfLayout;
use super::super::place::nops::NopBlock;
use super::flaws::{Flaw, Flaws};
use super::image::{Entry, Image, target, word};
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

pub(super) const SECTION: &str = "ctrace_runtime";
/// The second writes longer pieces of texts; what the first writes means the same in both.
const VERSIONS: RangeInclusive<u32> = 1..=2;
/// More copies than any program has.
const MOST: usize = 1024;

/// One copy of a runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MarkerRuntime {
    /// Name and version, such as `rust 0.1.0`.
    pub name: Option<Arc<str>>,
    pub flush: NopBlock,
    pub register: NopBlock,
    /// Address of the word that points to the first buffer, in the object's own addresses.
    pub list: u64,
}

pub(super) fn read(image: &Image<'_>, layout: &ElfLayout, flaws: &mut Flaws) -> Vec<MarkerRuntime> {
    let mut runtimes = BTreeMap::new();
    for entry in image.entries(layout, SECTION, flaws) {
        match runtime(image, &entry) {
            // Many entries may describe the same copy.
            Ok(runtime) if runtimes.len() < MOST || runtimes.contains_key(&runtime.list) => {
                runtimes.entry(runtime.list).or_insert(runtime);
            }
            Ok(_) => flaws.add(Flaw::TooMany),
            Err(flaw) => flaws.add(flaw),
        }
    }
    runtimes.into_values().collect()
}

fn runtime(image: &Image<'_>, entry: &Entry) -> Result<MarkerRuntime, Flaw> {
    if !VERSIONS.contains(&word(&entry.1, 0)) {
        return Err(Flaw::Version);
    }
    let site = |at| {
        let address = target(entry, at)?;
        let segment = image.segment(address, NopBlock::SIZE as u64)?;
        let code: [u8; NopBlock::SIZE] = image.bytes(address).filter(|_| segment.executable)?;
        NopBlock::new(image.file_offset(address, 1)?, &code)
    };
    let list = target(entry, 12).filter(|list| {
        image.segment(*list, size_of::<u64>() as u64).is_some_and(|segment| segment.writable)
    });
    let name = target(entry, 16).and_then(|name| image.text(name));
    Ok(MarkerRuntime {
        name: name.map(|name| String::from_utf8_lossy(name).into()),
        flush: site(4).ok_or(Flaw::Runtime)?,
        register: site(8).ok_or(Flaw::Runtime)?,
        list: list.ok_or(Flaw::Runtime)?,
    })
}
