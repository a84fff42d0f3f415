//! The index of a recording: the offsets of its blocks. A file that was not ended has none: see
//! `scan`.

use super::block::{self, Block, BlockKind};
use super::varint::{put, take, take_count};
use super::{ReadAt, RecordError};
use crate::units::Nanos;
use std::ops::Range;

/// The last bytes of a file that was ended, behind the offset of the index.
const TAIL_MAGIC: [u8; 8] = *b"CTRINDEX";
pub(crate) const TAIL: usize = 16;
/// Largest size of an entry: a kind, a 32-bit distance, three 64-bit numbers.
pub(crate) const MOST_OF_ENTRY: u64 = 1 + 5 + 3 * 10;

/// The index entry of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChunkEntry {
    pub(crate) offset: u64,
    /// The chunk and its payloads end here at the latest.
    pub(crate) end: u64,
    /// The start of its time window.
    pub from: Nanos,
    /// The end of its time window.
    pub to: Nanos,
    /// The number of calls that ended in it.
    pub calls: u64,
}

/// The index entry of any block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) kind: BlockKind,
    pub(crate) offset: u64,
    pub(crate) window: Range<u64>,
    pub(crate) calls: u64,
}

impl ChunkEntry {
    pub(crate) fn new(entry: &Entry, end: u64) -> Self {
        Self {
            offset: entry.offset,
            end,
            from: Nanos(entry.window.start),
            to: Nanos(entry.window.end),
            calls: entry.calls,
        }
    }
}

/// The index, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Index(pub(crate) Vec<Entry>);

impl Index {
    pub(crate) fn to_block(&self) -> Block {
        let mut out = Vec::new();
        put(&mut out, self.0.len() as u64);
        let (mut offset, mut time) = (0, 0);
        for entry in &self.0 {
            put(&mut out, entry.kind.to_wire().into());
            put(&mut out, entry.offset - offset);
            put(&mut out, entry.window.start.wrapping_sub(time));
            put(&mut out, entry.window.end.wrapping_sub(entry.window.start));
            put(&mut out, entry.calls);
            (offset, time) = (entry.offset, entry.window.end);
        }
        Block::new(BlockKind::Index, out)
    }

    fn parse(mut bytes: &[u8]) -> Result<Self, RecordError> {
        let bytes = &mut bytes;
        let (mut offset, mut free, mut time) = (0_u64, 0_u64, 0_u64);
        let entries = (0..take_count(bytes, 5)?).map(|_| {
            let kind = u16::try_from(take(bytes)?).ok().and_then(BlockKind::from_wire);
            offset = offset.wrapping_add(take(bytes)?);
            // Blocks must not overlap: otherwise a small file could list one block any number of
            // times.
            if offset < free {
                return Err(RecordError::Malformed("the index has blocks in one another"));
            }
            free = offset.saturating_add(block::BLOCK_HEADER as u64);
            let start = time.wrapping_add(take(bytes)?);
            time = start.wrapping_add(take(bytes)?);
            let calls = take(bytes)?;
            let kind =
                kind.ok_or(RecordError::Malformed("the index knows more than this ctrace"))?;
            Ok(Entry { kind, offset, window: start..time, calls })
        });
        entries.collect::<Result<_, _>>().map(Self)
    }

    /// Returns the last bytes of a file whose index is at `offset`.
    pub(crate) fn tail(offset: u64) -> [u8; TAIL] {
        let mut tail = [0; TAIL];
        tail[..8].copy_from_slice(&offset.to_le_bytes());
        tail[8..].copy_from_slice(&TAIL_MAGIC);
        tail
    }

    /// Finds the end of the last block and the start of the index; `None` if the file was not
    /// ended.
    pub(crate) fn find(source: &dyn ReadAt) -> Result<Option<(u64, u64)>, RecordError> {
        let Some(end) = source.len()?.checked_sub(TAIL as u64) else { return Ok(None) };
        let mut tail = [0; TAIL];
        if source.read_at(&mut tail, end)? < TAIL || tail[8..] != TAIL_MAGIC {
            return Ok(None);
        }
        let offset = tail[..8].iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
        Ok(Some((end, offset)))
    }

    /// Reads the index, if the file has one.
    pub(crate) fn read(source: &dyn ReadAt) -> Result<Option<Self>, RecordError> {
        let Some((_, offset)) = Self::find(source)? else { return Ok(None) };
        match block::header_at(source, offset)? {
            Some(header) if header.kind == Some(BlockKind::Index) => {
                Self::parse(&block::contents_at(source, offset, &header)?).map(Some)
            }
            _ => Ok(None),
        }
    }
}
