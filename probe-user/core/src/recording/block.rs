//! The frame around each block of a recording: its kind, its length and checksums.

use super::harvest::Harvest;
use super::{ReadAt, RecordError};
use crate::units::{Nanos, ThreadId};
use std::borrow::Cow;

/// The first bytes of a file.
const MAGIC: [u8; 8] = *b"\x89CTRACE\n";
pub(crate) const VERSION: u32 = 1;
/// Length of the file header: magic, version, four reserved bytes.
pub(crate) const FILE_HEADER: usize = 16;

/// The first bytes of a block.
const BLOCK_MAGIC: [u8; 4] = *b"CTRB";
pub(crate) const BLOCK_HEADER: usize = 24;
const COMPRESSED: u16 = 1;
/// Largest contents of a block, before and after compression.
const MAX_LEN: u32 = 64 << 20;
/// Largest contents of a chunk. Lower than [`MAX_LEN`]: several threads hold a chunk each.
pub(super) const MAX_CHUNK: u32 = 32 << 20;
/// A block header states the number of definitions before it modulo this. The field has 15 bits; 0
/// means not stated.
pub(crate) const TOLD_MODULO: u64 = (1 << 15) - 1;
/// Compression level: fast, and good enough because contents are packed already.
const LEVEL: i32 = 1;

/// The kind of a block's contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockKind {
    /// The target, the machine and the settings: JSON.
    Start,
    /// New functions, threads and objects: JSON.
    Names,
    /// New nodes of the tree of call paths.
    Paths,
    /// A chunk of calls.
    Calls,
    /// The end of the recording: JSON.
    End,
    /// The offsets of the other blocks.
    Index,
    /// Values of the calls in the preceding chunk, all of them integers.
    Payloads,
    /// Values of the calls in the preceding chunk, of any type.
    TypedPayloads,
    /// Values of the calls in the preceding chunk, long texts among them.
    LongPayloads,
}

impl BlockKind {
    const ALL: [Self; 9] = [
        Self::Start,
        Self::Names,
        Self::Paths,
        Self::Calls,
        Self::End,
        Self::Index,
        Self::Payloads,
        Self::TypedPayloads,
        Self::LongPayloads,
    ];

    pub(crate) fn to_wire(self) -> u16 {
        Self::ALL.iter().position(|&kind| kind == self).map_or(0, |place| place as u16 + 1)
    }

    pub(crate) fn from_wire(wire: u16) -> Option<Self> {
        Self::ALL.get(usize::from(wire).checked_sub(1)?).copied()
    }

    /// True if later blocks cannot be understood without it.
    pub(crate) fn defines(self) -> bool {
        matches!(self, Self::Names | Self::Paths)
    }

    /// True if it holds the values of the calls in the chunk before it.
    pub(crate) fn is_of_values(self) -> bool {
        matches!(self, Self::Payloads | Self::TypedPayloads | Self::LongPayloads)
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Contents {
    Packed(Vec<u8>),
    Calls(Harvest),
}

/// A block without its frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The kind of its contents.
    pub kind: BlockKind,
    contents: Contents,
    /// The time window and number of calls of a chunk, for the index.
    pub(crate) window: std::ops::Range<u64>,
    pub(crate) calls: u64,
    /// The threads that a chunk mentions, and those that ended and that no later chunk mentions.
    pub(crate) threads: Vec<ThreadId>,
    pub(crate) ended: Vec<ThreadId>,
    /// The block of payloads that follows a chunk.
    payloads: Option<Box<Block>>,
}

impl Block {
    /// Returns the time window of a chunk.
    pub fn window(&self) -> std::ops::Range<Nanos> {
        Nanos(self.window.start)..Nanos(self.window.end)
    }

    /// Returns the number of calls that ended in a chunk.
    pub fn calls(&self) -> u64 {
        self.calls
    }

    pub(crate) fn new(kind: BlockKind, contents: Vec<u8>) -> Self {
        let (threads, ended, payloads) = Default::default();
        let contents = Contents::Packed(contents);
        Self { kind, contents, window: 0..0, calls: 0, threads, ended, payloads }
    }

    pub(crate) fn of_calls(calls: Harvest, ended: Vec<ThreadId>, payloads: Option<Self>) -> Self {
        Self {
            kind: BlockKind::Calls,
            window: calls.window.clone(),
            calls: calls.len() as u64,
            threads: calls.threads().collect(),
            contents: Contents::Calls(calls),
            ended,
            payloads: payloads.map(Box::new),
        }
    }

    /// Packs the contents: they take less memory, and writing them again does not pack them again.
    pub fn pack(&mut self) {
        self.contents = Contents::Packed(self.contents().into_owned());
    }

    /// Returns the number of bytes of the packed contents.
    pub fn packed_len(&self) -> usize {
        self.contents().len() + self.payloads().map_or(0, Self::packed_len)
    }

    /// Returns the contents as they are in the file before compression.
    pub(crate) fn contents(&self) -> Cow<'_, [u8]> {
        match &self.contents {
            Contents::Packed(bytes) => Cow::Borrowed(bytes),
            Contents::Calls(calls) => Cow::Owned(calls.encode()),
        }
    }

    /// Returns the block of payloads that follows a chunk.
    pub(crate) fn payloads(&self) -> Option<&Self> {
        self.payloads.as_deref()
    }

    /// Returns the block as it is in the file, without what [`tell`] adds.
    pub(crate) fn to_bytes(&self, compress: bool) -> Vec<u8> {
        let contents = self.contents();
        let compressed = compress.then(|| zstd::bulk::compress(&contents, LEVEL).ok());
        let compressed = compressed.flatten().filter(|c| c.len() < contents.len());
        let stored = compressed.as_deref().unwrap_or(&contents);
        let flags = if compressed.is_some() { COMPRESSED } else { 0 };
        let mut bytes = Vec::with_capacity(BLOCK_HEADER + stored.len());
        bytes.extend(BLOCK_MAGIC);
        bytes.extend(self.kind.to_wire().to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        bytes.extend((stored.len() as u32).to_le_bytes());
        bytes.extend((contents.len() as u32).to_le_bytes());
        bytes.extend(crc32fast::hash(stored).to_le_bytes());
        bytes.extend(crc32fast::hash(&bytes).to_le_bytes());
        bytes.extend(stored);
        bytes
    }
}

/// Encodes the number of name and path blocks that precede a block.
pub(crate) fn told(definitions: u64) -> u16 {
    (definitions % TOLD_MODULO) as u16 + 1
}

/// Writes the number of preceding name and path blocks into the header of a block.
pub(crate) fn tell(bytes: &mut [u8], definitions: u64) {
    let flags = u16::from(bytes[6]) & COMPRESSED | told(definitions) << 1;
    bytes[6..8].copy_from_slice(&flags.to_le_bytes());
    let sum = crc32fast::hash(&bytes[..20]);
    bytes[20..BLOCK_HEADER].copy_from_slice(&sum.to_le_bytes());
}

/// True if a file that begins with `head` is a recording.
pub fn is_recording(head: &[u8]) -> bool {
    head.starts_with(&MAGIC)
}

pub(crate) fn file_header() -> [u8; FILE_HEADER] {
    let mut bytes = [0; FILE_HEADER];
    bytes[..8].copy_from_slice(&MAGIC);
    bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
    bytes
}

pub(crate) fn check_file_header(bytes: &[u8]) -> Result<(), RecordError> {
    let (Some(magic), Some(version)) = (bytes.get(..8), word(bytes, 8)) else {
        return Err(RecordError::NotARecording);
    };
    match version {
        _ if magic != MAGIC => Err(RecordError::NotARecording),
        VERSION => Ok(()),
        found if found > VERSION => Err(RecordError::Newer { found, known: VERSION }),
        _ => Err(RecordError::Malformed("there is no such version of the format")),
    }
}

/// Checks a checksum. Any sum passes under a fuzzer, which could not get past it otherwise.
fn is_sum(sum: u32, of: &[u8]) -> bool {
    cfg!(fuzzing) || crc32fast::hash(of) == sum
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

/// A block's header, checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BlockHeader {
    /// `None` for a kind that a later ctrace added.
    pub(crate) kind: Option<BlockKind>,
    /// The number of name and path blocks before it, as encoded by [`told`]. Earlier versions of
    /// ctrace did not write it.
    pub(crate) definitions: Option<u16>,
    compressed: bool,
    pub(crate) stored: u32,
    pub(crate) len: u32,
    check: u32,
}

impl BlockHeader {
    /// Returns `None` unless `bytes` begin with a whole, valid header.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..BLOCK_HEADER).filter(|bytes| bytes.starts_with(&BLOCK_MAGIC))?;
        let kinds = word(bytes, 4)?;
        let flags = (kinds >> 16) as u16;
        let header = Self {
            kind: BlockKind::from_wire(kinds as u16),
            definitions: Some(flags >> 1).filter(|told| *told > 0),
            compressed: flags & COMPRESSED != 0,
            stored: word(bytes, 8)?,
            len: word(bytes, 12)?,
            check: word(bytes, 16)?,
        };
        let sound = is_sum(word(bytes, 20)?, &bytes[..20])
            && header.stored <= MAX_LEN
            && header.len <= MAX_LEN
            && (header.compressed || header.stored == header.len);
        sound.then_some(header)
    }

    /// Returns the end of a block whose header is at `offset`.
    pub(crate) fn end(&self, offset: u64) -> u64 {
        offset + BLOCK_HEADER as u64 + u64::from(self.stored)
    }

    /// Checks and unpacks the bytes behind the header.
    pub(crate) fn contents(&self, stored: Vec<u8>) -> Result<Vec<u8>, RecordError> {
        if !is_sum(self.check, &stored) {
            return Err(RecordError::Malformed("a check sum is wrong"));
        }
        if !self.compressed {
            return Ok(stored);
        }
        let contents = zstd::bulk::decompress(&stored, self.len as usize)
            .map_err(|_| RecordError::Malformed("a block cannot be unpacked"))?;
        match contents.len() == self.len as usize {
            true => Ok(contents),
            false => Err(RecordError::Malformed("a block is shorter than it says")),
        }
    }
}

/// Reads the header at `offset`.
pub(crate) fn header_at(
    source: &dyn ReadAt,
    offset: u64,
) -> Result<Option<BlockHeader>, RecordError> {
    let mut bytes = [0; BLOCK_HEADER];
    let read = source.read_at(&mut bytes, offset)?;
    Ok(BlockHeader::parse(&bytes[..read]))
}

/// Reads the contents of the block at `offset`.
pub(crate) fn contents_at(
    source: &dyn ReadAt,
    offset: u64,
    header: &BlockHeader,
) -> Result<Vec<u8>, RecordError> {
    let is_of_chunk =
        header.kind.is_some_and(|kind| kind == BlockKind::Calls || kind.is_of_values());
    if is_of_chunk && header.stored.max(header.len) > MAX_CHUNK {
        return Err(RecordError::Malformed("a chunk is larger than any should be"));
    }
    let mut stored = vec![0; header.stored as usize];
    let read = source.read_at(&mut stored, offset.saturating_add(BLOCK_HEADER as u64))?;
    if read < stored.len() {
        return Err(RecordError::Malformed("a block is cut off"));
    }
    header.contents(stored)
}

/// Reads a block as it is in the file.
pub(crate) fn bytes_at(source: &dyn ReadAt, offset: u64) -> Result<Vec<u8>, RecordError> {
    let cut_off = RecordError::Malformed("a block is cut off");
    let Some(header) = header_at(source, offset)? else { return Err(cut_off) };
    let mut bytes = vec![0; BLOCK_HEADER + header.stored as usize];
    match source.read_at(&mut bytes, offset)? == bytes.len() {
        true => Ok(bytes),
        false => Err(cut_off),
    }
}
