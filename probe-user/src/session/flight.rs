//! The flight recorder of a session: its newest calls in memory, for a recording when something was
//! slow. Reports go on meanwhile.

use crate::target::pattern::Pattern;
use anyhow::Context;
use ctrace_core::{
    function::FunctionInfo,
    record::{Block, BlockKind, Definitions, End, Slow, Start, Writer},
    units::Nanos,
};
use std::{
    collections::VecDeque, fs::OpenOptions, io::BufWriter, os::unix::fs::OpenOptionsExt,
    path::Path, sync::Arc,
};

/// Takes a slow call of a function of this name, and what was before; not to wait for a disk.
pub type Deliver = Box<dyn FnMut(Slow, &str, Flown) + Send>;

/// What is too slow, how much is kept, and who takes it.
pub struct Asked {
    pub threshold: Nanos,
    /// None: all functions.
    pub functions: Vec<Pattern>,
    /// How far back.
    pub keep: Nanos,
    /// Bytes of calls.
    pub memory: usize,
    pub deliver: Deliver,
}

/// See the module.
pub struct Flight {
    asked: Asked,
    start: Start,
    definitions: Definitions,
    chunks: VecDeque<Arc<Block>>,
    bytes: usize,
}

/// What was in the recorder at some moment.
pub struct Flown {
    start: Start,
    definitions: Definitions,
    chunks: Vec<Arc<Block>>,
}

impl Flight {
    pub fn new(asked: Asked) -> Self {
        let (start, definitions, chunks) = Default::default();
        Self { asked, start, definitions, chunks, bytes: 0 }
    }

    pub fn begin(&mut self, start: Start) {
        self.start = start;
    }

    pub fn threshold(&self) -> Nanos {
        self.asked.threshold
    }

    pub fn is_watched(&self, function: &FunctionInfo) -> bool {
        let patterns = &self.asked.functions;
        patterns.is_empty() || patterns.iter().any(|pattern| pattern.matches_recorded(function))
    }

    pub fn take(&mut self, blocks: Vec<Block>) {
        for block in blocks {
            self.definitions.note(&block);
            if block.kind == BlockKind::Calls {
                self.bytes += block.contents.len();
                self.chunks.push_back(Arc::new(block));
            }
        }
        let newest = self.chunks.back().map_or(Nanos::ZERO, |chunk| chunk.window().end);
        let oldest = newest.since(self.asked.keep);
        while let Some(chunk) = self.chunks.front()
            && self.chunks.len() > 1
            && (chunk.window().end < oldest || self.bytes > self.asked.memory)
        {
            self.bytes -= chunk.contents.len();
            self.chunks.pop_front();
        }
        let from = self.chunks.front().map_or(newest, |chunk| chunk.window().start);
        self.definitions.forget_threads_before(from);
    }

    /// A call was slow: it is in the last chunks.
    pub fn tell(&mut self, slow: Slow, name: &str) {
        let chunks: Vec<_> = self.chunks.iter().cloned().collect();
        let from = chunks.first().map_or(self.start.start_ns, |chunk| chunk.window().start);
        let start = Start { start_ns: from, ..self.start.clone() };
        let flown = Flown { start, definitions: self.definitions.clone(), chunks };
        (self.asked.deliver)(slow, name, flown);
    }
}

impl Flown {
    /// A recording like any other.
    pub fn write(&self, path: &Path, note: String) -> anyhow::Result<()> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o640).open(path);
        let file = file.with_context(|| format!("cannot write {}", path.display()))?;
        let written = self.write_to(BufWriter::new(file), note);
        if written.is_err() {
            // Half of it is of no use, and takes what room there is.
            let _ = std::fs::remove_file(path);
        }
        written.with_context(|| format!("cannot write {}", path.display()))
    }

    fn write_to(&self, out: BufWriter<std::fs::File>, note: String) -> anyhow::Result<()> {
        let mut writer = Writer::new(out, &self.start)?;
        self.definitions.write(&mut writer)?;
        for chunk in &self.chunks {
            writer.write(chunk)?;
        }
        let end_ns = self.chunks.last().map_or(self.start.start_ns, |chunk| chunk.window().end);
        let target = self.start.target.clone();
        let out = writer.finish(&End { end_ns, target, notes: vec![note] })?;
        out.into_inner().map_err(|error| error.into_error())?;
        Ok(())
    }
}
