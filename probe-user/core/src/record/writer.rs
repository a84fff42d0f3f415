//! Puts blocks one after the other, and an index behind them.

use super::RecordError;
use super::block::{Block, BlockKind, file_header};
use super::index::{Entry, Index};
use super::names::{End, Start};
use std::io::Write;

/// Writes a recording.
pub struct Writer<W> {
    out: W,
    written: u64,
    index: Index,
}

impl<W: Write> Writer<W> {
    pub fn new(mut out: W, start: &Start) -> Result<Self, RecordError> {
        let header = file_header();
        out.write_all(&header)?;
        let mut writer = Self { out, written: header.len() as u64, index: Index::default() };
        writer.write_json(BlockKind::Start, start)?;
        Ok(writer)
    }

    /// Adds one block. Should the process die, what was written before is whole.
    pub fn write(&mut self, block: &Block) -> Result<(), RecordError> {
        let bytes = block.to_bytes();
        self.out.write_all(&bytes)?;
        self.index.0.push(Entry {
            kind: block.kind,
            offset: self.written,
            window: block.window.clone(),
            calls: block.calls,
        });
        self.written += bytes.len() as u64;
        Ok(())
    }

    fn write_json(
        &mut self,
        kind: BlockKind,
        value: &impl serde::Serialize,
    ) -> Result<(), RecordError> {
        let contents = serde_json::to_vec(value).map_err(std::io::Error::other)?;
        self.write(&Block::new(kind, contents))
    }

    /// Bytes so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Leaves the recording as it is, without an end.
    pub fn into_inner(self) -> W {
        self.out
    }

    /// Ends the recording and gives back what it was written to.
    pub fn finish(mut self, end: &End) -> Result<W, RecordError> {
        self.write_json(BlockKind::End, end)?;
        let at = self.written;
        let index = self.index.to_block();
        self.out.write_all(&index.to_bytes())?;
        self.out.write_all(&Index::tail(at))?;
        self.out.flush()?;
        Ok(self.out)
    }
}
