//! Loads the DWARF sections, and bounds their cost before they are parsed.
//!
//! A byte of DWARF may become a hundred in memory, and a byte of a compressed section a thousand.
//! The parsers trust the file, so its size is checked here first.

use super::lines::Reader;
use crate::target::elf::ElfFile;
use crate::target::read::source::Source;
use flate2::read::ZlibDecoder;
use gimli::{
    DebugLine, DebugLineOffset, Dwarf, EndianSlice, LittleEndian, Reader as _, Section as _,
    SectionId,
};
use object::{CompressedFileRange, CompressionFormat, Object as _, ObjectSection as _};
use ruzstd::decoding::StreamingDecoder;
use std::io::{self, BufReader, Read};
use std::sync::Arc;

/// Bytes unpacked between two checks of the clock.
const STEP: usize = 1 << 20;
/// The largest zstd window: unpacked bytes that zstd keeps.
const LARGEST_WINDOW: u64 = 100 << 20;
/// The largest section of locations that is loaded.
const LARGEST_LOCATIONS: u64 = 32 << 20;
/// An entry with more attributes counts as damaged.
const MOST_ATTRIBUTES: u64 = 4096;

/// Loads the sections for lines, inlined functions and parameters. Returns `None` when one is refused or the
/// file is broken. A section that cannot be unpacked is empty.
pub(crate) fn load(source: &Source, file: &ElfFile<'_>) -> Option<Dwarf<Reader>> {
    let section = |id: SectionId| -> Result<Reader, ()> {
        let bytes = match is_needed(id) && is_small_enough(file, id) {
            true => section(file, source, id.name()),
            false => None,
        };
        Ok(Reader::new(bytes.unwrap_or_default(), LittleEndian))
    };
    Dwarf::load(section).ok()
}

fn is_needed(id: SectionId) -> bool {
    matches!(
        id,
        SectionId::DebugAbbrev
            | SectionId::DebugAddr
            | SectionId::DebugInfo
            | SectionId::DebugLine
            | SectionId::DebugLineStr
            | SectionId::DebugLoc
            | SectionId::DebugLocLists
            | SectionId::DebugRanges
            | SectionId::DebugRngLists
            | SectionId::DebugStr
            | SectionId::DebugStrOffsets
    )
}

/// Returns whether a section may be loaded. Locations only confirm where arguments are: without them,
/// arguments are not read by name, and lines still are.
fn is_small_enough(file: &ElfFile<'_>, id: SectionId) -> bool {
    let is_locations = matches!(id, SectionId::DebugLoc | SectionId::DebugLocLists);
    let size = || file.section_by_name(id.name()).map_or(0, |section| section.size());
    !is_locations || size() <= LARGEST_LOCATIONS
}

fn section(file: &ElfFile<'_>, source: &Source, name: &str) -> Option<Arc<[u8]>> {
    // object also finds the old `.zdebug_` names.
    let range = file.section_by_name(name)?.compressed_file_range().ok()?;
    match range.format {
        CompressionFormat::None => source.copy(range.offset, range.uncompressed_size),
        _ => unpack(source, &range),
    }
}

fn unpack(source: &Source, range: &CompressedFileRange) -> Option<Arc<[u8]>> {
    let budget = source.budget();
    let mut unpacked = source.shared(range.uncompressed_size)?;
    let _window = budget.lend(range.uncompressed_size.min(LARGEST_WINDOW)).ok()?;
    let packed = Packed {
        source,
        at: range.offset,
        end: range.offset.checked_add(range.compressed_size)?.min(source.length()),
    };
    let packed = BufReader::with_capacity(64 << 10, packed);
    let mut reader: Box<dyn Read + '_> = match range.format {
        CompressionFormat::Zlib => Box::new(ZlibDecoder::new(packed)),
        CompressionFormat::Zstandard => Box::new(StreamingDecoder::new(packed).ok()?),
        _ => return None,
    };
    for part in Arc::get_mut(&mut unpacked)?.chunks_mut(STEP) {
        budget.check().ok()?;
        reader.read_exact(part).ok()?;
    }
    drop(reader);
    Some(unpacked)
}

/// The bytes of a compressed section, as a stream.
struct Packed<'a> {
    source: &'a Source,
    at: u64,
    end: u64,
}

impl Read for Packed<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = buffer.len().min(usize::try_from(self.end - self.at).unwrap_or(usize::MAX));
        let bytes = self.source.peek(self.at, most);
        buffer[..bytes.len()].copy_from_slice(&bytes);
        self.at += bytes.len() as u64;
        Ok(bytes.len())
    }
}

/// Estimates the memory of the first table of abbreviations in these bytes. Returns `None` where it
/// is broken, or an entry has too many attributes.
pub(super) fn abbreviations_cost(bytes: Option<&[u8]>) -> Option<u64> {
    /// The size in gimli, with room to grow.
    const ENTRY: u64 = 224;
    const ATTRIBUTE: u64 = 32;
    const IMPLICIT: u64 = 0x21;
    let mut bytes = EndianSlice::new(bytes?, LittleEndian);
    let mut cost = 0;
    while bytes.read_uleb128().ok()? != 0 {
        let (_tag, _has_children) = (bytes.read_uleb128().ok()?, bytes.read_u8().ok()?);
        cost += ENTRY;
        for count in 0.. {
            let (name, form) = (bytes.read_uleb128().ok()?, bytes.read_uleb128().ok()?);
            if (name, form) == (0, 0) {
                break;
            }
            if form == IMPLICIT {
                bytes.read_sleb128().ok()?;
            }
            if count == MOST_ATTRIBUTES {
                return None;
            }
            cost += ATTRIBUTE;
        }
    }
    Some(cost)
}

/// Returns the length that the header of a line table claims.
pub(super) fn line_header_length(
    lines: &DebugLine<Reader>,
    offset: DebugLineOffset<usize>,
) -> Option<u64> {
    let mut bytes = lines.reader().clone();
    bytes.skip(offset.0).ok()?;
    let (_, format) = bytes.read_initial_length().ok()?;
    let version = bytes.read_u16().ok()?;
    if version >= 5 {
        bytes.skip(2).ok()?;
    }
    bytes.read_length(format).ok().map(|length| length as u64)
}
