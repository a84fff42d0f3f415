//! Finds the blocks of a file without an index, also behind damage.
//!
//! Ids are counted by position. Blocks behind damage are therefore usable only if the damaged part
//! held no names or paths. To show this, each block states how many such blocks precede it.

use super::block::{self, BLOCK_HEADER, BlockHeader, BlockKind};
use super::index::{Entry, Index};
use super::{ReadAt, RecordError};
use std::ops::Range;

/// The result of a scan.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    pub(crate) index: Index,
    /// Parts of the file without usable blocks.
    pub(crate) gaps: Vec<Range<u64>>,
}

/// Gaps must be shorter than this. A longer one has room for so many definitions that the stated
/// number, which is modulo [`block::TOLD_MODULO`], could match by wrapping around.
const LONGEST_GAP: u64 = block::TOLD_MODULO * BLOCK_HEADER as u64;
/// Bytes read at a time while searching a gap: few at first, because gaps may be many and short.
const PIECES: Range<usize> = 1 << 10..1 << 16;

pub(crate) fn scan(source: &dyn ReadAt) -> Result<Blocks, RecordError> {
    let (mut found, mut offset) = (Blocks::default(), block::FILE_HEADER as u64);
    let (mut definitions, mut piece) = (0, vec![0; PIECES.end]);
    let end = Index::find(source)?.map_or(source.len()?, |(end, _)| end);
    while offset < end {
        let block = block_from(source, offset, &mut piece)?.filter(|(at, header)| {
            let is_told = match header.definitions {
                Some(told) => told == block::told(definitions) && at - offset < LONGEST_GAP,
                None => *at == offset && found.gaps.is_empty(),
            };
            is_told && header.end(*at) <= end
        });
        let Some((at, header)) = block else {
            found.gaps.push(offset..end);
            break;
        };
        if at > offset {
            found.gaps.push(offset..at);
        }
        // Payloads need no entry: they are found behind their chunk.
        if let Some(kind) = header.kind.filter(|kind| !kind.is_of_values()) {
            definitions += u64::from(kind.defines());
            found.index.0.push(Entry { kind, offset: at, window: 0..0, calls: 0 });
        }
        // No calls follow it.
        if header.kind == Some(BlockKind::End) {
            break;
        }
        offset = header.end(at);
    }
    Ok(found)
}

/// Returns the first header at or after `offset`, and its offset.
fn block_from(
    source: &dyn ReadAt,
    mut offset: u64,
    piece: &mut [u8],
) -> Result<Option<(u64, BlockHeader)>, RecordError> {
    if let Some(header) = block::header_at(source, offset)? {
        return Ok(Some((offset, header)));
    }
    let mut size = PIECES.start;
    loop {
        let read = source.read_at(&mut piece[..size], offset)?;
        let whole = (read + 1).saturating_sub(BLOCK_HEADER);
        let header = |at| Some((offset + at as u64, BlockHeader::parse(&piece[at..read])?));
        match (0..whole).find_map(header) {
            None if read == size => {
                offset += whole as u64;
                size = (2 * size).min(PIECES.end);
            }
            found => return Ok(found),
        }
    }
}
