//! The memory of an object as far as its file says what is in it, by address.

use super::super::elf::{Layout, Section, Segment};
use super::flaws::{Flaw, Flaws};

/// Longer texts are taken for damage.
const LONGEST_TEXT: usize = 4096;
/// Of one section; the kernel has no link for more places.
const MOST_ENTRIES: usize = 1 << 20;
pub(super) const ENTRY_SIZE: usize = 32;

/// An entry of a marker section and its address.
pub(super) type Entry = (u64, [u8; ENTRY_SIZE]);

pub(super) struct Image<'a> {
    bytes: &'a [u8],
    /// By address: a file may have thousands, and every field is looked up.
    segments: Vec<&'a Segment>,
}

impl<'a> Image<'a> {
    pub(super) fn new(bytes: &'a [u8], layout: &'a Layout) -> Self {
        let mut segments: Vec<&Segment> =
            layout.segments.iter().filter(|segment| !segment.addresses.is_empty()).collect();
        segments.sort_by_key(|segment| segment.addresses.start);
        Self { bytes, segments }
    }

    /// The segment with all of these bytes, in the file or not.
    pub(super) fn segment(&self, address: u64, size: u64) -> Option<&'a Segment> {
        let after = self.segments.partition_point(|s| s.addresses.start <= address);
        let segment = *self.segments.get(after.checked_sub(1)?)?;
        (address.checked_add(size)? <= segment.addresses.end).then_some(segment)
    }

    /// Where these bytes are in the file.
    pub(super) fn file_offset(&self, address: u64, size: u64) -> Option<u64> {
        let segment = self.segment(address, size)?;
        let within = address - segment.addresses.start;
        let in_file = within.checked_add(size)? <= segment.file_size;
        in_file.then(|| segment.offset.checked_add(within))?
    }

    pub(super) fn bytes<const SIZE: usize>(&self, address: u64) -> Option<[u8; SIZE]> {
        let start = usize::try_from(self.file_offset(address, SIZE as u64)?).ok()?;
        self.bytes.get(start..start.checked_add(SIZE)?)?.try_into().ok()
    }

    /// The text that starts at an address, without the zero byte that ends it.
    pub(super) fn text(&self, address: u64) -> Option<&'a [u8]> {
        let segment = self.segment(address, 1)?;
        let rest = segment.file_size.checked_sub(address - segment.addresses.start)?;
        let start = usize::try_from(self.file_offset(address, 1)?).ok()?;
        let longest = usize::try_from(rest).map_or(LONGEST_TEXT, |rest| rest.min(LONGEST_TEXT));
        let end = start.saturating_add(longest).min(self.bytes.len());
        let text = self.bytes.get(start..end)?;
        Some(&text[..memchr::memchr(0, text)?])
    }

    /// The entries of all sections of a name. Zeros are what a linker fills gaps with.
    pub(super) fn entries(&self, layout: &Layout, name: &str, flaws: &mut Flaws) -> Vec<Entry> {
        let mut entries = Vec::new();
        for section in layout.sections.iter().filter(|section| section.name == name) {
            self.section_entries(section, &mut entries, flaws);
        }
        // Two headers may name the same bytes.
        entries.sort_unstable();
        entries.dedup();
        entries
    }

    fn section_entries(&self, section: &Section, entries: &mut Vec<Entry>, flaws: &mut Flaws) {
        let (mut address, end) = (section.addresses.start, section.addresses.end);
        let is_loaded = self.file_offset(address, 1) == Some(section.offset);
        if address < end && (!is_loaded || !address.is_multiple_of(ENTRY_SIZE as u64)) {
            return flaws.add(Flaw::Section);
        }
        while address < end {
            if entries.len() == MOST_ENTRIES {
                return flaws.add(Flaw::TooMany);
            }
            let whole = (end - address >= ENTRY_SIZE as u64).then(|| self.bytes(address));
            let Some(entry) = whole.flatten() else { return flaws.add(Flaw::Section) };
            if entry != [0; ENTRY_SIZE] {
                entries.push((address, entry));
            }
            address += ENTRY_SIZE as u64;
        }
    }
}

/// The number in an entry.
pub(super) fn word(entry: &[u8; ENTRY_SIZE], at: usize) -> u32 {
    u32::from_le_bytes([entry[at], entry[at + 1], entry[at + 2], entry[at + 3]])
}

/// The address that a self-relative field of an entry means.
pub(super) fn target((address, entry): &Entry, at: usize) -> Option<u64> {
    let distance = word(entry, at).cast_signed();
    (distance != 0)
        .then(|| address.wrapping_add(at as u64).wrapping_add_signed(i64::from(distance)))
}
