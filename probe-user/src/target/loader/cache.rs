//! Reads `/etc/ld.so.cache`, in which ldconfig lists the libraries of this machine.
//!
//! There are two formats: an old one, and a new one that stands alone or follows an old one.
//! Offsets count from the new part, but those of its extension from the file's start.

use super::budget::{SearchBudget, TooMuch};
use super::dynamic::LONGEST_PATH;
use super::processor::{FIRST_WITHOUT_LEGACY, Processor};
use std::fs::File;

const OLD: &[u8] = b"ld.so-1.7.0";
const OLD_HEADER: usize = 16;
const OLD_ENTRY: usize = 12;
const NEW: &[u8] = b"glibc-ld.so.cache1.1";
const NEW_HEADER: usize = 48;
const NEW_ENTRY: usize = 24;
/// Flags of a glibc library for x86-64. Other kinds, such as 32-bit ones, have others.
const X86_64: u32 = 0x0303;
/// In an entry's hardware bits: the low half is the number of a `glibc-hwcaps` directory.
const IS_NUMBER: u64 = 1 << 62;
/// In the same field, the psABI level that the library itself requires, from 0.
const LEVEL: std::ops::Range<u32> = 32..42;
const EXTENSION: u32 = 0xeaa4_2174;
const DIRECTORY_NAMES: u32 = 1;

/// More bytes than any machine has; a hundred thousand libraries take ten million.
const LONGEST: usize = 16 << 20;

/// The file's bytes, and the places of its tables.
#[derive(Debug)]
pub(super) struct Cache {
    bytes: Vec<u8>,
    entries: usize,
    count: usize,
    entry: usize,
    /// The base of offsets of texts.
    texts: usize,
    /// Offsets of the names of `glibc-hwcaps` directories, by number.
    directory_names: Vec<u32>,
}

impl Cache {
    /// Returns `None` for a cache that glibc would reject, too.
    pub(super) fn read(file: &File, budget: &mut SearchBudget) -> Result<Option<Self>, TooMuch> {
        let length = file.metadata().ok().and_then(|meta| usize::try_from(meta.len()).ok());
        match length {
            Some(length) if length <= LONGEST => Ok(Self::new(budget.read(file, 0, length)?)),
            _ => Ok(None),
        }
    }

    fn new(bytes: Vec<u8>) -> Option<Self> {
        if bytes.starts_with(NEW) {
            return Self::new_format(bytes, 0);
        }
        if !bytes.starts_with(OLD) {
            return None;
        }
        let count = u32_at(&bytes, OLD.len().next_multiple_of(4))? as usize;
        let end = count.checked_mul(OLD_ENTRY)?.checked_add(OLD_HEADER)?;
        if end > bytes.len() {
            return None;
        }
        let new = end.next_multiple_of(8);
        if bytes.get(new..).is_some_and(|rest| rest.starts_with(NEW)) {
            return Self::new_format(bytes, new);
        }
        let entries = OLD_HEADER;
        let directory_names = Vec::new();
        Some(Self { bytes, entries, count, entry: OLD_ENTRY, texts: end, directory_names })
    }

    fn new_format(bytes: Vec<u8>, start: usize) -> Option<Self> {
        let count = u32_at(&bytes, start + 20)? as usize;
        // The mark of a machine with the other byte order. Old caches have 0 there.
        const BIG_ENDIAN: u8 = 3;
        if *bytes.get(start + 28)? & 3 == BIG_ENDIAN {
            return None;
        }
        let entries = start + NEW_HEADER;
        if count.checked_mul(NEW_ENTRY)?.checked_add(entries)? > bytes.len() {
            return None;
        }
        let directory_names = directory_names(&bytes, start).unwrap_or_default();
        Some(Self { bytes, entries, count, entry: NEW_ENTRY, texts: start, directory_names })
    }

    /// Returns the path of a library's best variant for this CPU and glibc 2.`version`.
    pub(super) fn find(&self, name: &[u8], processor: Processor, version: u32) -> Option<&[u8]> {
        let mut best: Option<(u32, &[u8])> = None;
        for at in 0..self.count {
            let at = self.entries + at * self.entry;
            let text = |at| self.rest(self.texts.checked_add(u32_at(&self.bytes, at)? as usize)?);
            let is_name =
                |text: &[u8]| text.strip_prefix(name).is_some_and(|it| it.first() == Some(&0));
            if u32_at(&self.bytes, at) != Some(X86_64) || !text(at + 4).is_some_and(is_name) {
                continue;
            }
            let Some(worth) = self.worth(at, processor, version) else { continue };
            // The first of equals wins.
            if best.is_none_or(|(known, _)| worth > known) {
                best = text(at + 8).and_then(up_to_end).map(|path| (worth, path)).or(best);
            }
        }
        best.map(|(_, path)| path)
    }

    /// Returns the rank of a variant, `None` where it cannot be used.
    fn worth(&self, at: usize, processor: Processor, version: u32) -> Option<u32> {
        if self.entry == OLD_ENTRY {
            return Some(0);
        }
        let wants = u64_at(&self.bytes, at + 16)?;
        let level = (wants >> LEVEL.start) as u32 & ((1 << LEVEL.len()) - 1);
        if wants & IS_NUMBER != 0 && wants >> LEVEL.end == IS_NUMBER >> LEVEL.end {
            let name = *self.directory_names.get(wants as u32 as usize)?;
            let directory = processor.level_of(up_to_end(self.rest(name as usize)?)?)?;
            return (level < processor.level).then_some(directory);
        }
        if wants == 0 {
            return Some(0);
        }
        let usable = version < FIRST_WITHOUT_LEGACY && wants & !processor.legacy_bits() == 0;
        usable.then_some(0)
    }

    fn rest(&self, at: usize) -> Option<&[u8]> {
        self.bytes.get(at..)
    }
}

/// Returns a text that is no longer than a path can be.
fn up_to_end(rest: &[u8]) -> Option<&[u8]> {
    let rest = &rest[..rest.len().min(LONGEST_PATH)];
    Some(&rest[..memchr::memchr(0, rest)?])
}

fn directory_names(bytes: &[u8], start: usize) -> Option<Vec<u32>> {
    let extension = u32_at(bytes, start + 32)? as usize;
    if extension == 0 || u32_at(bytes, extension)? != EXTENSION {
        return None;
    }
    let count = u32_at(bytes, extension.checked_add(4)?)? as usize;
    let sections = bytes.get(extension.checked_add(8)?..)?.chunks_exact(16).take(count);
    let section = sections.into_iter().find(|it| u32_at(it, 0) == Some(DIRECTORY_NAMES))?;
    let (offset, size) = (u32_at(section, 8)? as usize, u32_at(section, 12)? as usize);
    let names = bytes.get(offset..offset.checked_add(size)?)?;
    Some(names.chunks_exact(4).filter_map(|name| u32_at(name, 0)).collect())
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}

#[cfg(test)]
#[path = "cache_tests.rs"]
mod tests;
