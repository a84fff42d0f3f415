//! The file that a session records into.

mod files;
mod segments;
#[cfg(test)]
mod segments_tests;

use segments::Segments;
pub use segments::{Kept, Limit};

use super::behind::{Behind, Gone};
use anyhow::{Context, anyhow};
use ctrace_core::record::{Block, End, Start};
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

pub struct Recording {
    path: PathBuf,
    /// Until the recording begins.
    segments: Option<Segments>,
    thread: Option<Behind<Segments>>,
    written: Arc<AtomicU64>,
}

impl Recording {
    /// Opens the file, before anything is attached. A file that is there is replaced only if it is a
    /// recording.
    pub fn create(path: &Path, limit: Limit) -> anyhow::Result<Self> {
        let written = Arc::new(AtomicU64::new(0));
        let segments = Segments::create(path, limit, Arc::clone(&written))?;
        Ok(Self { path: path.to_owned(), segments: Some(segments), thread: None, written })
    }

    /// Calls count from now on.
    pub fn begin(&mut self, start: Start) -> anyhow::Result<()> {
        let mut segments = self.segments.take().context("the recording has begun already")?;
        let open = move || segments.begin(start).map(|()| segments);
        let write = |segments: &mut Segments, block| segments.write(block).map(|()| true);
        self.thread = Some(Behind::start("writer", open, write)?);
        Ok(())
    }

    pub fn write(&mut self, blocks: Vec<Block>) -> anyhow::Result<()> {
        match self.thread.as_ref().map_or(Err(Gone), |thread| thread.write(blocks)) {
            Ok(()) => Ok(()),
            Err(Gone) => Err(self.failure()),
        }
    }

    /// What ended the thread.
    fn failure(&mut self) -> anyhow::Error {
        let error = match self.thread.take().map(Behind::join) {
            Some(Err(error)) => error,
            _ => anyhow!("the thread that writes it ended"),
        };
        error.context(format!(
            "cannot write {} (what was recorded before is whole: `ctrace report` shows it)",
            self.path.display()
        ))
    }

    /// Writes the end, and says what there is.
    pub fn finish(&mut self, end: End) -> anyhow::Result<Kept> {
        let Some(thread) = self.thread.take() else { return Err(self.failure()) };
        let finished = thread.join().and_then(|segments| segments.finish(end));
        finished.with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Bytes on disk.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }
}
