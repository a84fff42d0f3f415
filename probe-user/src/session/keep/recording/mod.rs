//! The file that a session records into.

mod files;
mod progress;
mod segments;
#[cfg(test)]
mod segments_tests;

pub(crate) use files::Replace;
use segments::Segments;
pub(crate) use segments::{Limit, RecordingSummary};

use super::behind::{Behind, Gone};
use crate::files::{Owner, Place};
use anyhow::{Context, anyhow};
use ctrace_core::recording::{Block, End, Start};
use progress::RecordingProgress;
use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

pub(crate) struct Recording {
    path: PathBuf,
    /// The files, until the recording begins.
    segments: Option<Segments>,
    thread: Option<Behind<Segments>>,
    progress: Arc<RecordingProgress>,
    daemon_target: Option<String>,
}

impl Recording {
    /// Opens the file, before anything is attached. An existing file is replaced only on request,
    /// and only if it is a recording.
    pub(crate) fn create(path: &Path, limit: Limit, replace: Replace) -> anyhow::Result<Self> {
        Self::at(Place::find(path, Owner::Caller)?, limit, replace)
    }

    /// Creates a new one, of this target of the daemon.
    pub(crate) fn of_daemon(path: &Path, limit: Limit, target: &str) -> anyhow::Result<Self> {
        let mut recording = Self::at(Place::find(path, Owner::Ours)?, limit, Replace::Nothing)?;
        recording.daemon_target = Some(target.to_owned());
        Ok(recording)
    }

    fn at(place: Place, limit: Limit, replace: Replace) -> anyhow::Result<Self> {
        let path = place.path().to_owned();
        let progress = Arc::new(RecordingProgress::default());
        let segments = Segments::create(place, replace, limit, Arc::clone(&progress))?;
        Ok(Self { path, segments: Some(segments), thread: None, progress, daemon_target: None })
    }

    /// Begins the recording: calls count from now on.
    pub(crate) fn begin(&mut self, start: Start) -> anyhow::Result<()> {
        let mut segments = self.segments.take().context("the recording has begun already")?;
        let start = Start { daemon_target: self.daemon_target.clone(), ..start };
        let open = move || segments.begin(start).map(|()| segments);
        let write = |segments: &mut Segments, block| segments.write(block).map(|()| true);
        self.thread = Some(Behind::start("writer", open, write)?);
        Ok(())
    }

    pub(crate) fn write(&mut self, blocks: Vec<Block>) -> anyhow::Result<()> {
        match self.thread.as_ref().map_or(Err(Gone), |thread| thread.write(blocks)) {
            Ok(()) => Ok(()),
            Err(Gone) => Err(self.failure()),
        }
    }

    /// Returns the error that ended the thread.
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

    /// Writes the end, and returns the summary.
    pub(crate) fn finish(&mut self, end: End) -> anyhow::Result<RecordingSummary> {
        let Some(thread) = self.thread.take() else { return Err(self.failure()) };
        let finished = thread.join().and_then(|segments| segments.finish(end));
        finished.with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Leaves no file behind that was not there before: nothing was there to record.
    pub(crate) fn discard(&mut self) -> anyhow::Result<()> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join()?.discard()
    }

    /// Returns the number of bytes on disk.
    pub(crate) fn written(&self) -> u64 {
        self.progress.written()
    }

    /// Takes the remarks on the writing since the last time.
    pub(crate) fn take_remarks(&self) -> Vec<String> {
        self.progress.take_remarks()
    }
}

/// Removes a new file if the recording has not begun.
impl Drop for Recording {
    fn drop(&mut self) {
        if let Some(segments) = self.segments.take() {
            segments.remove_if_new();
        }
    }
}
