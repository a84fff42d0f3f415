//! The newest calls of a session, in memory: the blocks of a recording that forgets its beginning.

use ctrace_core::{
    recording::{Block, BlockKind, Definitions, End, Start, Writer},
    units::Nanos,
};
use std::{
    collections::VecDeque,
    io::{self, Write},
    sync::Arc,
};

/// The newest calls.
pub(crate) struct Newest {
    /// The time for which calls are kept.
    keep: Nanos,
    /// The most bytes of the kept calls.
    memory: usize,
    start: Start,
    definitions: Definitions,
    chunks: VecDeque<Arc<Block>>,
    bytes: usize,
}

/// What was kept at some moment.
#[derive(Clone)]
pub(crate) struct Held {
    /// Its time is that of the session.
    pub start: Start,
    definitions: Definitions,
    chunks: Vec<Arc<Block>>,
}

impl Newest {
    pub(crate) fn new(keep: Nanos, memory: usize) -> Self {
        let (start, definitions, chunks) = Default::default();
        Self { keep, memory, start, definitions, chunks, bytes: 0 }
    }

    pub(crate) fn begin(&mut self, start: Start) {
        self.start = start;
    }

    pub(crate) fn take(&mut self, blocks: Vec<Block>) {
        for mut block in blocks {
            self.definitions.note(&block);
            if block.kind == BlockKind::Calls {
                block.pack();
                self.bytes += block.packed_len();
                self.chunks.push_back(Arc::new(block));
            }
        }
        let newest = self.chunks.back().map_or(Nanos::ZERO, |chunk| chunk.window().end);
        let oldest = newest.since(self.keep);
        while let Some(chunk) = self.chunks.front()
            && self.chunks.len() > 1
            && (chunk.window().end < oldest || self.bytes > self.memory)
        {
            self.bytes -= chunk.packed_len();
            self.chunks.pop_front();
        }
        let from = self.chunks.front().map_or(newest, |chunk| chunk.window().start);
        self.definitions.forget_threads_before(from);
    }

    pub(crate) fn held(&self) -> Held {
        let (start, definitions) = (self.start.clone(), self.definitions.clone());
        Held { start, definitions, chunks: self.chunks.iter().cloned().collect() }
    }
}

impl Held {
    /// Returns the time from which calls are kept, if any are.
    pub(crate) fn from(&self) -> Option<Nanos> {
        self.chunks.first().map(|chunk| chunk.window().start)
    }

    /// Returns the time up to which calls are kept, if any are.
    pub(crate) fn to(&self) -> Option<Nanos> {
        self.chunks.last().map(|chunk| chunk.window().end)
    }

    /// Writes the blocks of a recording, and its end.
    pub(crate) fn write_to<W: Write>(&self, mut writer: Writer<W>, end: &End) -> io::Result<W> {
        self.definitions.write(&mut writer)?;
        for chunk in &self.chunks {
            writer.write(chunk)?;
        }
        writer.finish(end)
    }
}
