//! The blocks of a file without an index, found one after the other, also behind damage.
//!
//! Ids are counted by position, so what comes behind damage means something only if no names and
//! paths were in what is damaged. Each block tells how many of these come before it.

use super::block::{self, BLOCK_HEADER, BlockKind, Header};
use super::index::{Entry, Index};
use super::{ReadAt, RecordError};
use std::ops::Range;

/// What a search found.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    pub(crate) index: Index,
    /// Where there are no blocks, or none that can be trusted.
    pub(crate) gaps: Vec<Range<u64>>,
}

/// Blocks are told apart modulo this: so many have room in longer gaps only.
const LONGEST_GAP: u64 = block::TOLD_MODULO * BLOCK_HEADER as u64;
/// Looked through at first, as gaps may be many and short, and at most at once.
const PIECES: Range<usize> = 1 << 10..1 << 16;

pub(crate) fn scan(source: &impl ReadAt) -> Result<Blocks, RecordError> {
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
        // Payloads are found behind their chunk.
        if let Some(kind) = header.kind.filter(|kind| *kind != BlockKind::Payloads) {
            definitions += u64::from(kind.defines());
            found.index.0.push(Entry { kind, offset: at, window: 0..0, calls: 0 });
        }
        // Nothing behind it holds calls.
        if header.kind == Some(BlockKind::End) {
            break;
        }
        offset = header.end(at);
    }
    Ok(found)
}

/// The first header from `offset` on, and where it is.
fn block_from(
    source: &impl ReadAt,
    mut offset: u64,
    piece: &mut [u8],
) -> Result<Option<(u64, Header)>, RecordError> {
    if let Some(header) = block::header_at(source, offset)? {
        return Ok(Some((offset, header)));
    }
    let mut size = PIECES.start;
    loop {
        let read = source.read_at(&mut piece[..size], offset)?;
        let whole = (read + 1).saturating_sub(BLOCK_HEADER);
        let header = |at| Some((offset + at as u64, Header::parse(&piece[at..read])?));
        match (0..whole).find_map(header) {
            None if read == size => {
                offset += whole as u64;
                size = (2 * size).min(PIECES.end);
            }
            found => return Ok(found),
        }
    }
}
