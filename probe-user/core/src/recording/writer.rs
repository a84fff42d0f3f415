//! Writes blocks, and finally their index.

use super::block::{self, BLOCK_HEADER, Block, BlockHeader, BlockKind, file_header};
use super::index::{ChunkEntry, Entry, Index, MOST_OF_ENTRY, TAIL};
use super::names::{End, Start};
use super::payloads;
use super::{ReadAt, RecordError};
use crate::units::Nanos;
use std::io::{self, Write};

/// A block as it is in a file, with the payloads that follow if it is a chunk.
pub struct Framed {
    entry: Entry,
    bytes: Vec<u8>,
    payloads: Vec<u8>,
}

impl Framed {
    /// Reads the bytes of a chunk without unpacking them.
    pub fn read(source: &dyn ReadAt, chunk: &ChunkEntry) -> Result<Self, RecordError> {
        let bytes = block::bytes_at(source, chunk.offset)?;
        let behind = chunk.offset.saturating_add(bytes.len() as u64);
        let payloads = match block::header_at(source, behind)? {
            _ if behind >= chunk.end => Vec::new(),
            Some(BlockHeader { kind: Some(kind), .. }) if kind.is_of_values() => {
                block::bytes_at(source, behind)?
            }
            Some(_) => Vec::new(),
            // They are damaged: the copy says so.
            None => {
                let lost = payloads::encode(Vec::new(), 1, chunk.to.0, &[]);
                lost.map(|lost| lost.to_bytes(false)).unwrap_or_default()
            }
        };
        let window = chunk.from.0..chunk.to.0;
        let kind = BlockKind::Calls;
        Ok(Self { entry: Entry { kind, offset: 0, window, calls: chunk.calls }, bytes, payloads })
    }

    /// Returns the number of bytes that it takes in the file.
    pub fn size(&self) -> u64 {
        (self.bytes.len() + self.payloads.len()) as u64
    }
}

/// Writes a recording.
pub struct Writer<W> {
    out: W,
    written: u64,
    index: Index,
    /// Number of name and path blocks so far.
    definitions: u64,
    compress: bool,
}

impl<W: Write> Writer<W> {
    /// Begins a recording.
    pub fn new(out: W, start: &Start) -> io::Result<Self> {
        Self::begin(out, start, true)
    }

    /// Begins a recording that is read again soon, so compression does not pay.
    pub fn uncompressed(out: W, start: &Start) -> io::Result<Self> {
        Self::begin(out, start, false)
    }

    fn begin(mut out: W, start: &Start, compress: bool) -> io::Result<Self> {
        let header = file_header();
        out.write_all(&header)?;
        let written = header.len() as u64;
        let mut writer = Self { out, written, index: Index::default(), definitions: 0, compress };
        writer.write_json(BlockKind::Start, start)?;
        Ok(writer)
    }

    /// Adds a block. If the process dies meanwhile, earlier blocks stay readable.
    pub fn write(&mut self, block: &Block) -> io::Result<()> {
        self.add(self.frame(block))
    }

    /// Packs a block without adding it.
    pub fn frame(&self, block: &Block) -> Framed {
        let window = block.window.clone();
        let entry = Entry { kind: block.kind, offset: 0, window, calls: block.calls };
        let payloads = block.payloads().map(|payloads| payloads.to_bytes(self.compress));
        let bytes = block.to_bytes(self.compress);
        Framed { entry, bytes, payloads: payloads.unwrap_or_default() }
    }

    pub(crate) fn write_json(
        &mut self,
        kind: BlockKind,
        value: &impl serde::Serialize,
    ) -> io::Result<()> {
        let contents = serde_json::to_vec(value)?;
        self.write(&Block::new(kind, contents))
    }

    /// Adds a packed block, such as one of another recording with the same ids.
    pub fn add(&mut self, Framed { entry, mut bytes, mut payloads }: Framed) -> io::Result<()> {
        block::tell(&mut bytes, self.definitions);
        if !payloads.is_empty() {
            block::tell(&mut payloads, self.definitions);
            // In one write: a kill hardly ever parts a chunk and its payloads.
            bytes.append(&mut payloads);
        }
        self.out.write_all(&bytes)?;
        let size = bytes.len() as u64;
        self.definitions += u64::from(entry.kind.defines());
        self.index.0.push(Entry { offset: self.written, ..entry });
        self.written += size;
        Ok(())
    }

    /// Flushes the output.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    /// Returns the end of the last chunk.
    pub fn last_time(&self) -> Nanos {
        Nanos(self.index.0.iter().map(|entry| entry.window.end).max().unwrap_or(0))
    }

    /// Returns the number of chunks.
    pub fn chunks(&self) -> usize {
        self.index.0.iter().filter(|entry| entry.kind == BlockKind::Calls).count()
    }

    /// Returns the newest chunks: as many as make up `enough` bytes, but at most `most` bytes
    /// including their index entries.
    pub fn newest_chunks(&self, enough: u64, most: u64) -> Vec<ChunkEntry> {
        let (mut kept, mut bytes, mut end) = (Vec::new(), 0, self.written);
        for entry in self.index.0.iter().rev() {
            let (size, behind) = (end - entry.offset, end);
            end = entry.offset;
            if entry.kind != BlockKind::Calls {
                continue;
            }
            let entries = (kept.len() as u64 + 1) * MOST_OF_ENTRY;
            if bytes >= enough || bytes + size + entries > most {
                break;
            }
            bytes += size;
            kept.push(ChunkEntry::new(entry, behind));
        }
        kept.reverse();
        kept
    }

    /// Returns the number of bytes so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Returns an upper bound on the size once ended, without the contents of [`End`].
    pub fn size_when_ended(&self) -> u64 {
        let blocks = self.index.0.len() as u64 + 2;
        self.written + blocks * MOST_OF_ENTRY + 2 * BLOCK_HEADER as u64 + TAIL as u64
    }

    /// Returns the output without ending the recording.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// Ends the recording and returns the output.
    pub fn finish(mut self, end: &End) -> io::Result<W> {
        self.write_json(BlockKind::End, end)?;
        let at = self.written;
        self.write(&self.index.to_block())?;
        self.out.write_all(&Index::tail(at))?;
        self.out.flush()?;
        Ok(self.out)
    }
}
