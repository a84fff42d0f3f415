//! The memory of an object as its file fills it, by address.

use super::flaws::{Flaw, Flaws};
use crate::target::elf::{ElfLayout, Section, Segment};
use crate::target::read::source::Source;
use std::cell::OnceCell;

/// Longer texts count as damage.
const LONGEST_TEXT: usize = 4096;
/// Limit for one section. The kernel has no link for more places.
pub(super) const MOST_ENTRIES: usize = 1 << 20;
pub(super) const ENTRY_SIZE: usize = 32;

/// An entry of a marker section and its address.
pub(super) type Entry = (u64, [u8; ENTRY_SIZE]);

pub(super) struct Image<'a> {
    source: &'a Source,
    /// Sorted by address: a file may have thousands, and every field is looked up.
    segments: Vec<Loaded<'a>>,
}

/// A segment, with its bytes in the file once one of them is needed.
struct Loaded<'a> {
    segment: &'a Segment,
    bytes: OnceCell<&'a [u8]>,
}

impl<'a> Image<'a> {
    pub(super) fn new(source: &'a Source, layout: &'a ElfLayout) -> Self {
        let loaded = |segment| Loaded { segment, bytes: OnceCell::new() };
        let segments = layout.segments.iter().filter(|segment| !segment.addresses.is_empty());
        let mut segments: Vec<Loaded<'_>> = segments.map(loaded).collect();
        segments.sort_by_key(|loaded| loaded.segment.addresses.start);
        Self { source, segments }
    }

    pub(super) fn source(&self) -> &'a Source {
        self.source
    }

    fn loaded(&self, address: u64) -> Option<&Loaded<'a>> {
        let after = self.segments.partition_point(|it| it.segment.addresses.start <= address);
        self.segments.get(after.checked_sub(1)?)
    }

    /// Returns the bytes from an address to the end of its segment in the file.
    fn rest(&self, address: u64) -> Option<&'a [u8]> {
        let loaded = self.loaded(address)?;
        let segment = loaded.segment;
        let bytes = loaded.bytes.get_or_init(|| {
            self.source.part(segment.offset, segment.file_size).unwrap_or_default()
        });
        bytes.get(usize::try_from(address - segment.addresses.start).ok()?..)
    }

    /// Returns the segment with all of these bytes, in the file or not.
    pub(super) fn segment(&self, address: u64, size: u64) -> Option<&'a Segment> {
        let segment = self.loaded(address)?.segment;
        (address.checked_add(size)? <= segment.addresses.end).then_some(segment)
    }

    /// Returns the file offset of these bytes.
    pub(super) fn file_offset(&self, address: u64, size: u64) -> Option<u64> {
        let segment = self.segment(address, size)?;
        let within = address - segment.addresses.start;
        let in_file = within.checked_add(size)? <= segment.file_size;
        in_file.then(|| segment.offset.checked_add(within))?
    }

    pub(super) fn bytes<const SIZE: usize>(&self, address: u64) -> Option<[u8; SIZE]> {
        self.file_offset(address, SIZE as u64)?;
        self.rest(address)?.first_chunk().copied()
    }

    /// Returns the text that starts at an address, without its final zero byte.
    pub(super) fn text(&self, address: u64) -> Option<&'a [u8]> {
        self.file_offset(address, 1)?;
        let rest = self.rest(address)?;
        let text = &rest[..rest.len().min(LONGEST_TEXT)];
        Some(&text[..memchr::memchr(0, text)?])
    }

    /// Returns the entries of all sections of a name. Zeros fill a linker's gaps.
    pub(super) fn entries(&self, layout: &ElfLayout, name: &str, flaws: &mut Flaws) -> Vec<Entry> {
        let mut entries = Vec::new();
        // The limit holds for all sections together and counts zeros, too.
        let mut left = MOST_ENTRIES;
        for section in layout.sections.iter().filter(|section| section.name == name) {
            self.section_entries(section, &mut entries, &mut left, flaws);
        }
        // Two headers may name the same bytes.
        entries.sort_unstable();
        entries.dedup();
        entries
    }

    fn section_entries(
        &self,
        section: &Section,
        entries: &mut Vec<Entry>,
        left: &mut usize,
        flaws: &mut Flaws,
    ) {
        let (mut address, end) = (section.addresses.start, section.addresses.end);
        let is_loaded = self.file_offset(address, 1) == Some(section.offset);
        if address < end && (!is_loaded || !address.is_multiple_of(ENTRY_SIZE as u64)) {
            return flaws.add(Flaw::Section);
        }
        while address < end {
            if *left == 0 {
                return flaws.add(Flaw::TooMany);
            }
            *left -= 1;
            let whole = (end - address >= ENTRY_SIZE as u64).then(|| self.bytes(address));
            let Some(entry) = whole.flatten() else { return flaws.add(Flaw::Section) };
            if entry != [0; ENTRY_SIZE] {
                entries.push((address, entry));
            }
            address += ENTRY_SIZE as u64;
        }
    }
}

/// Returns the number at an offset of an entry.
pub(super) fn word(entry: &[u8; ENTRY_SIZE], at: usize) -> u32 {
    u32::from_le_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]])
}

/// Returns the address that a self-relative field of an entry means.
pub(super) fn target((address, entry): &Entry, at: usize) -> Option<u64> {
    let distance = word(entry, at).cast_signed();
    (distance != 0)
        .then(|| address.wrapping_add(at as u64).wrapping_add_signed(i64::from(distance)))
}
