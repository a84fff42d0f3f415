//! Holds back stderr while the screen is up, since its lines would garble the screen. They appear
//! on the screen one at a time, and on stderr when the screen is gone.

use crate::top::run::ScreenEvent;
use anyhow::Context;
use std::{
    collections::VecDeque,
    io::{self, BufRead, BufReader, PipeReader},
    os::fd::{AsFd, OwnedFd},
    sync::{Arc, Mutex, PoisonError, mpsc::SyncSender},
    thread::JoinHandle,
};

/// The number of lines to keep.
const KEPT: usize = 100;

type Lines = Arc<Mutex<VecDeque<String>>>;

pub(super) struct Held {
    stderr: OwnedFd,
    lines: Lines,
    reader: Option<JoinHandle<()>>,
}

impl Held {
    pub(super) fn begin(events: SyncSender<ScreenEvent>) -> anyhow::Result<Self> {
        let (from, to) = io::pipe().context("cannot make a pipe")?;
        let stderr = io::stderr().as_fd().try_clone_to_owned().context("stderr is closed")?;
        let lines = Lines::default();
        let kept = Arc::clone(&lines);
        let reader = std::thread::Builder::new().name("stderr".into());
        let reader = reader.spawn(move || read(from, &kept, &events))?;
        rustix::stdio::dup2_stderr(&to).context("cannot hold back stderr")?;
        Ok(Self { stderr, lines, reader: Some(reader) })
    }

    /// Returns the real stderr.
    pub(super) fn stderr(&self) -> io::Result<OwnedFd> {
        self.stderr.try_clone()
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // This closes the pipe, and so ends the reader.
        if rustix::stdio::dup2_stderr(&self.stderr).is_err() {
            return;
        }
        let ended = self.reader.take().map(JoinHandle::join);
        debug_assert!(ended.is_some());
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().for_each(|line| eprintln!("{line}"));
    }
}

fn read(from: PipeReader, kept: &Lines, events: &SyncSender<ScreenEvent>) {
    for line in BufReader::new(from).split(b'\n').map_while(Result::ok) {
        let line = String::from_utf8_lossy(&line).into_owned();
        let mut lines = kept.lock().unwrap_or_else(PoisonError::into_inner);
        if lines.len() == KEPT {
            lines.pop_front();
        }
        lines.push_back(line.clone());
        drop(lines);
        // If the screen is busy, the line is still kept.
        let _ = events.try_send(ScreenEvent::Said(line));
    }
}
