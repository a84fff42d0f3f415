//! Reads the loader's instructions in an object's dynamic section, by small reads through the
//! program headers. The file is not trusted: all numbers are checked where they are used.

use super::budget::{MOST_LIBRARIES, SearchBudget, TooMuch};
use object::elf as constants;
use std::fs::File;

/// The kernel's longest name or path, with its end.
pub(super) const LONGEST_PATH: usize = 4096;
/// The longest search path that is read. Those of Nix take some ten kilobytes.
const LONGEST_LIST: usize = 64 << 10;
/// The kernel's limit of program headers.
const MOST_SEGMENTS: u16 = (65536 / SEGMENT) as u16;
/// Far more than any linker writes, apart from the names of libraries.
const MOST_ENTRIES: usize = 4 * MOST_LIBRARIES;
const HEADER: usize = 64;
const SEGMENT: usize = 56;
const ENTRY: usize = 16;

/// The kind of request for a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// DT_NEEDED and DT_FILTER: the program does not start without it.
    Must,
    /// DT_AUXILIARY: its absence is no error.
    May,
}

/// The parts of a dynamic section that decide what is loaded from where.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Dynamic {
    pub(super) needed: Vec<(Need, Vec<u8>)>,
    pub(super) soname: Option<Vec<u8>>,
    pub(super) rpath: Option<Vec<u8>>,
    pub(super) runpath: Option<Vec<u8>>,
    /// DF_1_NODEFLIB: excludes the default directories.
    pub(super) no_default: bool,
}

/// The kind of a file, as a loader of 64-bit x86 programs sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FileKind {
    Object(Dynamic),
    /// An object for another machine or class. The loader searches on.
    Foreign,
    /// A file that cannot be loaded.
    Broken,
}

impl FileKind {
    pub(super) fn read(file: &File, budget: &mut SearchBudget) -> Result<Self, TooMuch> {
        let header = budget.read(file, 0, HEADER)?;
        let class = header.get(4);
        if header.len() < HEADER || !header.starts_with(b"\x7fELF") || header[5] != 1 {
            // The loader checks the class before the byte order.
            let foreign = header.starts_with(b"\x7fELF") && class == Some(&1);
            return Ok(if foreign { Self::Foreign } else { Self::Broken });
        }
        if class != Some(&2) || u16_at(&header, 18) != constants::EM_X86_64.0 {
            return Ok(Self::Foreign);
        }
        let kind = u16_at(&header, 16);
        let count = u16_at(&header, 56);
        if ![constants::ET_DYN.0, constants::ET_EXEC.0].contains(&kind)
            || usize::from(u16_at(&header, 54)) != SEGMENT
            || count > MOST_SEGMENTS
        {
            return Ok(Self::Broken);
        }
        let table = budget.read(file, u64_at(&header, 32), usize::from(count) * SEGMENT)?;
        let segments = Segments(table.chunks_exact(SEGMENT).map(Segment::new).collect());
        segments.dynamic(file, budget).map(Self::Object)
    }
}

struct Segment {
    kind: u32,
    offset: u64,
    address: u64,
    file_size: u64,
}

impl Segment {
    fn new(header: &[u8]) -> Self {
        Self {
            kind: u32::from_le_bytes(std::array::from_fn(|at| header[at])),
            offset: u64_at(header, 8),
            address: u64_at(header, 16),
            file_size: u64_at(header, 32),
        }
    }
}

struct Segments(Vec<Segment>);

impl Segments {
    /// Returns the file offset of the byte at an address, and how many bytes follow it. Later
    /// segments lie on top.
    fn place(&self, address: u64) -> Option<(u64, u64)> {
        let loaded = self.0.iter().rev().filter(|segment| segment.kind == constants::PT_LOAD.0);
        loaded.into_iter().find_map(|segment| {
            let within = address.checked_sub(segment.address)?;
            let rest = segment.file_size.checked_sub(within).filter(|rest| *rest > 0)?;
            Some((segment.offset.checked_add(within)?, rest))
        })
    }

    fn dynamic(&self, file: &File, budget: &mut SearchBudget) -> Result<Dynamic, TooMuch> {
        let mut dynamic = Dynamic::default();
        let segment = self.0.iter().rfind(|segment| segment.kind == constants::PT_DYNAMIC.0);
        let Some((offset, rest)) = segment.and_then(|segment| self.place(segment.address)) else {
            return Ok(dynamic);
        };
        let entries = entries(file, offset, rest, budget)?;
        let value = |tag| entries.iter().rfind(|entry| entry.0 == tag).map(|entry| entry.1);
        dynamic.no_default =
            value(constants::DT_FLAGS_1.0).unwrap_or(0) & constants::DF_1_NODEFLIB.0 != 0;
        let Some(strings) = value(constants::DT_STRTAB.0).and_then(|at| self.place(at)) else {
            return Ok(dynamic);
        };
        let mut text = |at: u64, most: usize| -> Result<Option<Vec<u8>>, TooMuch> {
            let (start, rest) = strings;
            let Some(rest) = rest.checked_sub(at) else { return Ok(None) };
            text(file, start.saturating_add(at), rest, most, budget)
        };
        for (tag, at) in &entries {
            let need = match constants::DynamicTag(*tag) {
                constants::DT_NEEDED | constants::DT_FILTER => Need::Must,
                constants::DT_AUXILIARY => Need::May,
                _ => continue,
            };
            if dynamic.needed.len() == MOST_LIBRARIES {
                return Err(TooMuch::Libraries);
            }
            dynamic.needed.extend(text(*at, LONGEST_PATH)?.map(|name| (need, name)));
        }
        let mut of = |tag, most| value(tag).map_or(Ok(None), |at| text(at, most));
        dynamic.soname = of(constants::DT_SONAME.0, LONGEST_PATH)?;
        dynamic.runpath = of(constants::DT_RUNPATH.0, LONGEST_LIST)?;
        dynamic.rpath = of(constants::DT_RPATH.0, LONGEST_LIST)?;
        Ok(dynamic)
    }
}

/// Reads tags and values up to the end of the section.
fn entries(
    file: &File,
    offset: u64,
    rest: u64,
    budget: &mut SearchBudget,
) -> Result<Vec<(i64, u64)>, TooMuch> {
    // Most sections have some thirty entries.
    const STEP: usize = 64 * ENTRY;
    let mut entries = Vec::new();
    let mut at = 0;
    while at < rest {
        let length = rest.saturating_sub(at).min(STEP as u64) as usize;
        let bytes = budget.read(file, offset.saturating_add(at), length)?;
        for entry in bytes.chunks_exact(ENTRY) {
            let tag = u64_at(entry, 0) as i64;
            if tag == constants::DT_NULL.0 {
                return Ok(entries);
            }
            if entries.len() == MOST_ENTRIES {
                return Err(TooMuch::Libraries);
            }
            entries.push((tag, u64_at(entry, 8)));
        }
        if bytes.len() < STEP {
            break;
        }
        at += STEP as u64;
    }
    Ok(entries)
}

/// Reads a text up to its end, unless it is longer than `most` with its end.
fn text(
    file: &File,
    offset: u64,
    rest: u64,
    most: usize,
    budget: &mut SearchBudget,
) -> Result<Option<Vec<u8>>, TooMuch> {
    const STEP: usize = 256;
    let most = most.min(usize::try_from(rest).unwrap_or(usize::MAX));
    let mut text = Vec::new();
    while text.len() < most {
        let length = STEP.min(most - text.len());
        let bytes = budget.read(file, offset.saturating_add(text.len() as u64), length)?;
        if let Some(end) = memchr::memchr(0, &bytes) {
            text.extend_from_slice(&bytes[..end]);
            return Ok(Some(text));
        }
        if bytes.len() < length {
            break;
        }
        text.extend_from_slice(&bytes);
    }
    Ok(None)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes([bytes[at], bytes[at + 1]])
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|byte| bytes[at + byte]))
}
