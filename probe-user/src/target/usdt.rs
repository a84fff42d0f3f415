//! USDT probes: the notes that `sys/sdt.h` and its kin leave in a file.
//!
//! A probe that the compiler inlined into ten places has ten notes of one name, each with its own
//! address and maybe its own semaphore; all of them must fire, so they are kept together.

use super::elf::Layout;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All places of one `provider:name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsdtProbe {
    pub provider: Arc<str>,
    pub name: Arc<str>,
    pub sites: Vec<UsdtSite>,
}

/// One place of a USDT probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsdtSite {
    pub address: u64,
    pub file_offset: u64,
    /// Offset in the file of the counter that switches the site on: the kernel's `ref_ctr_offset`.
    pub semaphore: Option<u64>,
    /// Where the arguments are, as the note says it: `-4@%edi 8@-24(%rbp)`.
    pub arguments: Box<str>,
}

/// What the notes of a file say.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct UsdtNotes {
    /// By provider and name.
    pub(super) probes: Vec<UsdtProbe>,
    pub(super) broken: usize,
}

impl UsdtProbe {
    /// `provider:name`.
    pub fn full_name(&self) -> String {
        format!("{}:{}", self.provider, self.name)
    }
}

const NOTE_TYPE: u32 = 3;

pub(super) fn read(bytes: &[u8], layout: &Layout) -> UsdtNotes {
    let mut notes = UsdtNotes::default();
    let mut probes: BTreeMap<(String, String), Vec<UsdtSite>> = BTreeMap::new();
    for section in layout.sections.iter().filter(|section| section.name == ".note.stapsdt") {
        let size = section.addresses.end - section.addresses.start;
        let Some(mut rest) = slice(bytes, section.offset, size) else {
            notes.broken += 1;
            continue;
        };
        while !rest.is_empty() {
            // A broken length leaves no way to find the next note.
            let Some((note, tail)) = split_note(rest) else {
                notes.broken += 1;
                break;
            };
            rest = tail;
            match note.map(|body| site(body, layout)) {
                None => {}
                Some(Some((provider, name, site))) => {
                    let sites = probes.entry((provider, name)).or_default();
                    // The same place twice would be armed twice.
                    if !sites.iter().any(|seen| seen.file_offset == site.file_offset) {
                        sites.push(site);
                    }
                }
                Some(None) => notes.broken += 1,
            }
        }
    }
    notes.probes = probes
        .into_iter()
        .map(|((provider, name), mut sites)| {
            sites.sort_by_key(|site| site.address);
            UsdtProbe { provider: provider.into(), name: name.into(), sites }
        })
        .collect();
    notes
}

fn slice(bytes: &[u8], offset: u64, size: u64) -> Option<&[u8]> {
    let start = usize::try_from(offset).ok()?;
    bytes.get(start..start.checked_add(usize::try_from(size).ok()?)?)
}

/// The body of the first note, if it is one of ours, and the bytes after it.
fn split_note(bytes: &[u8]) -> Option<(Option<&[u8]>, &[u8])> {
    let word = |at: usize| {
        let word = bytes.get(at..at + 4)?;
        Some(u32::from_le_bytes(word.try_into().ok()?))
    };
    let name_size = word(0)? as usize;
    let body_size = word(4)? as usize;
    let kind = word(8)?;
    let name_end = 12usize.checked_add(name_size)?;
    let name = bytes.get(12..name_end)?;
    let body_start = name_end.checked_next_multiple_of(4)?;
    let body_end = body_start.checked_add(body_size)?;
    let body = bytes.get(body_start..body_end)?;
    let next = body_end.checked_next_multiple_of(4)?;
    let ours = kind == NOTE_TYPE && name == b"stapsdt\0";
    Some((ours.then_some(body), bytes.get(next..).unwrap_or_default()))
}

/// Provider, name and place from a note's body: three addresses and three strings.
fn site(body: &[u8], layout: &Layout) -> Option<(String, String, UsdtSite)> {
    let address = |at: usize| {
        let word = body.get(at..at + 8)?;
        Some(u64::from_le_bytes(word.try_into().ok()?))
    };
    let (pc, base, semaphore) = (address(0)?, address(8)?, address(16)?);
    let mut strings = body.get(24..)?.split(|byte| *byte == 0);
    let mut string = || strings.next().map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    let (provider, name) = (string()?, string()?);
    let arguments = string().unwrap_or_default();
    if provider.is_empty() || name.is_empty() {
        return None;
    }
    // Prelink moves the code and does not know the notes: the base section tells by how much.
    let moved = match layout.section(".stapsdt.base") {
        Some(section) if base != 0 => section.addresses.start.wrapping_sub(base),
        _ => 0,
    };
    let address = pc.wrapping_add(moved);
    let file_offset = layout.file_offset(address)?;
    if !layout.segments.iter().any(|s| s.executable && s.addresses.contains(&address)) {
        return None;
    }
    let semaphore = match semaphore {
        0 => None,
        semaphore => {
            let at = semaphore.wrapping_add(moved);
            // The kernel counts up there: a place that is not writable cannot be a semaphore.
            let writable = layout.segments.iter().any(|s| s.writable && s.addresses.contains(&at));
            Some(writable.then(|| layout.file_offset(at))??)
        }
    };
    let arguments = arguments.into();
    Some((provider, name, UsdtSite { address, file_offset, semaphore, arguments }))
}
