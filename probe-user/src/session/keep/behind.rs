//! A thread that packs and writes blocks. The session is held up only when the thread is far
//! behind. It also says when something is written.

use anyhow::{Context, anyhow};
use ctrace_core::recording::Block;
use std::{
    sync::mpsc::{SyncSender, sync_channel},
    thread::JoinHandle,
};

/// The number of sets of blocks that may wait: about 34 MB.
const WAITING: usize = 64;

/// Something to do, in turn.
enum Job {
    Write(Vec<Block>),
    Call(Box<dyn FnOnce() + Send>),
}

/// The thread and its output, until it is [joined](Self::join).
pub(crate) struct Behind<T> {
    sender: SyncSender<Job>,
    handle: JoinHandle<anyhow::Result<T>>,
}

/// The thread has ended because of an error.
#[derive(Debug)]
pub(crate) struct Gone;

impl<T: Send + 'static> Behind<T> {
    /// Starts the thread. `write` is called for each block until it returns `false`.
    pub(crate) fn start(
        name: &str,
        open: impl FnOnce() -> anyhow::Result<T> + Send + 'static,
        mut write: impl FnMut(&mut T, Block) -> anyhow::Result<bool> + Send + 'static,
    ) -> anyhow::Result<Self> {
        let (sender, receiver) = sync_channel::<Job>(WAITING);
        let run = move || {
            let mut to = open()?;
            for job in receiver {
                match job {
                    Job::Call(call) => call(),
                    Job::Write(blocks) => {
                        for block in blocks {
                            if !write(&mut to, block)? {
                                return Ok(to);
                            }
                        }
                    }
                }
            }
            Ok(to)
        };
        let handle = std::thread::Builder::new().name(name.into()).spawn(run);
        Ok(Self { sender, handle: handle.context("cannot start a thread")? })
    }

    pub(crate) fn write(&self, blocks: Vec<Block>) -> Result<(), Gone> {
        if blocks.is_empty() {
            return Ok(());
        }
        self.sender.send(Job::Write(blocks)).map_err(|_| Gone)
    }

    /// Calls this on the thread when everything so far is written.
    pub(crate) fn then(&self, call: impl FnOnce() + Send + 'static) -> Result<(), Gone> {
        self.sender.send(Job::Call(Box::new(call))).map_err(|_| Gone)
    }

    /// Waits until everything is written; returns the error if there was one.
    pub(crate) fn join(self) -> anyhow::Result<T> {
        drop(self.sender);
        self.handle.join().map_err(|_| anyhow!("the thread that writes panicked"))?
    }
}
