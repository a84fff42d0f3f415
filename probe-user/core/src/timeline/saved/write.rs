//! Writes a tree as bytes.

use super::MARK;
use crate::recording::varint::put;
use crate::timeline::cell::{RowKey, Span};
use crate::timeline::pyramid::{Node, Pyramid};
use crate::timeline::tile::Tile;
use crc32fast::Hasher;
use std::io::{self, Write};

/// Bytes that are gathered before they are written.
const GATHERED: usize = 1 << 16;

/// Writes and adds to the checksum.
struct Sink<W> {
    out: W,
    checksum: Hasher,
    gathered: Vec<u8>,
}

pub(super) fn pyramid(pyramid: &Pyramid, header: &[u8], out: impl Write) -> io::Result<()> {
    let mut sink = Sink { out, checksum: Hasher::new(), gathered: Vec::new() };
    sink.out.write_all(&MARK)?;
    sink.numbers([header.len() as u64])?;
    sink.bytes(header)?;
    let facts = &pyramid.facts;
    sink.numbers([facts.threads.len() as u64])?;
    for (id, of) in &facts.threads {
        sink.numbers([id.0.into(), of.depths.into(), of.calls, of.first.0, of.last.0])?;
    }
    sink.numbers([facts.lost.len() as u64])?;
    for (from, to) in &facts.lost {
        sink.numbers([*from, *to])?;
    }
    sink.numbers([facts.unreadable_calls])?;
    sink.calls(&pyramid.loose)?;
    match &pyramid.root {
        None => sink.numbers([0])?,
        Some(root) => {
            sink.numbers([1])?;
            sink.node(root)?;
        }
    }
    sink.flush()?;
    sink.out.write_all(&sink.checksum.finalize().to_le_bytes())
}

impl<W: Write> Sink<W> {
    fn numbers<const N: usize>(&mut self, numbers: [u64; N]) -> io::Result<()> {
        numbers.into_iter().for_each(|number| put(&mut self.gathered, number));
        if self.gathered.len() >= GATHERED { self.flush() } else { Ok(()) }
    }

    fn bytes(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.flush()?;
        self.checksum.update(bytes);
        self.out.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.checksum.update(&self.gathered);
        self.out.write_all(&self.gathered)?;
        self.gathered.clear();
        Ok(())
    }

    fn node(&mut self, node: &Node) -> io::Result<()> {
        self.numbers([node.from, node.to, node.chunk as u64])?;
        match &node.tile {
            None => self.numbers([0])?,
            Some(tile) => {
                self.numbers([1])?;
                self.tile(tile)?;
            }
        }
        self.calls(&node.own)?;
        self.numbers([node.children.len() as u64])?;
        node.children.iter().try_for_each(|child| self.node(child))
    }

    fn tile(&mut self, tile: &Tile) -> io::Result<()> {
        self.numbers([tile.from, tile.level.into(), tile.levels.into(), tile.rows.len() as u64])?;
        for (key, place) in &tile.rows {
            self.numbers([key.thread.0.into(), key.depth.into(), (*place).into()])?;
        }
        self.numbers([tile.bytes().len() as u64])?;
        self.bytes(tile.bytes())
    }

    fn calls(&mut self, calls: &[(RowKey, Span)]) -> io::Result<()> {
        self.numbers([calls.len() as u64])?;
        for (key, span) in calls {
            let key = [key.thread.0.into(), key.depth.into()];
            self.numbers(key)?;
            self.numbers([span.start.0, span.duration.0, span.path.into(), span.ended as u64])?;
        }
        Ok(())
    }
}
