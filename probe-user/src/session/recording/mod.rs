//! The file that a session records into. A thread of its own compresses and writes, so that a slow
//! disk holds up the session only when it is far behind.

mod segments;

pub use segments::Limit;
use segments::Segments;

use anyhow::{Context, anyhow};
use ctrace_core::record::{Block, End, Start};
use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
        mpsc::{SyncSender, sync_channel},
    },
    thread::JoinHandle,
};

/// Sets of blocks that may wait for the disk: 20 MB or so.
const WAITING: usize = 64;

pub struct Recording {
    path: PathBuf,
    /// Until the recording begins.
    segments: Option<Segments>,
    thread: Option<Thread>,
    written: Arc<AtomicU64>,
}

struct Thread {
    sender: SyncSender<Vec<Block>>,
    handle: JoinHandle<anyhow::Result<Segments>>,
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
        let (sender, receiver) = sync_channel::<Vec<Block>>(WAITING);
        let handle = std::thread::Builder::new().name("writer".into()).spawn(move || {
            segments.begin(start)?;
            while let Ok(blocks) = receiver.recv() {
                blocks.into_iter().try_for_each(|block| segments.write(block))?;
            }
            Ok(segments)
        });
        self.thread = Some(Thread { sender, handle: handle.context("cannot start a thread")? });
        Ok(())
    }

    pub fn write(&mut self, blocks: Vec<Block>) -> anyhow::Result<()> {
        if blocks.is_empty() {
            return Ok(());
        }
        match &self.thread {
            Some(thread) if thread.sender.send(blocks).is_ok() => Ok(()),
            _ => Err(self.failure()),
        }
    }

    /// What ended the thread.
    fn failure(&mut self) -> anyhow::Error {
        let result = self.thread.take().map(|thread| thread.handle.join());
        let error = match result {
            Some(Ok(Err(error))) => error,
            _ => anyhow!("the thread that writes it ended"),
        };
        error.context(format!(
            "cannot write {} (what was recorded before is whole: `ctrace report` shows it)",
            self.path.display()
        ))
    }

    /// Writes the end, and says how large all is.
    pub fn finish(&mut self, end: &End) -> anyhow::Result<u64> {
        let Some(Thread { sender, handle }) = self.thread.take() else {
            return Err(self.failure());
        };
        drop(sender);
        let finished = handle.join().map_err(|_| anyhow!("the thread that writes it panicked"));
        finished
            .and_then(|segments| segments?.finish(end))
            .with_context(|| format!("cannot write {}", self.path.display()))?;
        Ok(self.written())
    }

    /// Bytes on disk.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}
