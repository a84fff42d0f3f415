//! Passes reports to one output through a queue and a thread, so that a blocked output delays no
//! session and no other output. Lost reports are counted. The log says when losses begin and end.

use super::file::File;
use crate::{
    daemon::config::{Output, Reports},
    ui,
};
use std::{
    io::{self, Write as _},
    sync::{
        Arc,
        atomic::{AtomicU64, AtomicUsize, Ordering},
        mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel},
    },
    time::Instant,
};

/// The limit of waiting reports.
const WAITING: usize = 256;
/// The limit of bytes that are not written yet. A report of any size has room if no other waits.
const WAITING_BYTES: usize = 32 << 20;

pub(super) struct Queue {
    jobs: SyncSender<Job>,
    rest: Rest,
}

/// The reports left when no more come.
pub(super) struct Rest {
    shared: Arc<Shared>,
    end: Receiver<()>,
}

struct Job {
    reports: Reports,
    text: String,
}

struct Shared {
    output: Output,
    /// The number of reports that are neither written nor lost.
    waiting: AtomicU64,
    /// The bytes of reports that are not written yet.
    bytes: AtomicUsize,
    /// The number of reports without room since the last written one.
    dropped: AtomicU64,
    /// The number of lost reports of all outputs.
    lost: Arc<AtomicU64>,
}

impl Queue {
    pub(super) fn start(output: &Output, lost: Arc<AtomicU64>) -> io::Result<Self> {
        let (jobs, coming) = sync_channel(WAITING);
        let (at_end, end) = channel();
        let (waiting, dropped) = (AtomicU64::new(0), AtomicU64::new(0));
        let (output, bytes) = (output.clone(), AtomicUsize::new(0));
        let shared = Arc::new(Shared { output, waiting, bytes, dropped, lost });
        let file = match &shared.output {
            Output::Stdout => None,
            Output::File(path) => Some(File::new(path)),
        };
        let mut way = Way { shared: Arc::clone(&shared), file, failed: 0 };
        let thread = std::thread::Builder::new().name("reports".into());
        thread.spawn(move || way.write_all(&coming, at_end))?;
        Ok(Self { jobs, rest: Rest { shared, end } })
    }

    pub(super) fn put(&self, reports: &Reports, text: String) {
        let shared = &self.rest.shared;
        let size = text.len();
        shared.waiting.fetch_add(1, Ordering::Relaxed);
        let before = shared.bytes.fetch_add(size, Ordering::Relaxed);
        let has_room = before == 0 || before.saturating_add(size) <= WAITING_BYTES;
        if has_room && self.jobs.try_send(Job { reports: reports.clone(), text }).is_ok() {
            return;
        }
        shared.bytes.fetch_sub(size, Ordering::Relaxed);
        shared.waiting.fetch_sub(1, Ordering::Relaxed);
        shared.lost.fetch_add(1, Ordering::Relaxed);
        if shared.dropped.fetch_add(1, Ordering::Relaxed) == 0 {
            ui::say(&format!(
                "{} does not take reports as fast as they come: some are lost, and counted",
                shared.place()
            ));
        }
    }

    /// Closes the queue: no more reports come.
    pub(super) fn close(self) -> Rest {
        self.rest
    }
}

impl Rest {
    /// Waits until all is written or given up.
    pub(super) fn wait(self, until: Instant) {
        let left = until.saturating_duration_since(Instant::now());
        if self.end.recv_timeout(left) != Err(RecvTimeoutError::Timeout) {
            return;
        }
        let given_up = self.shared.waiting.swap(0, Ordering::Relaxed);
        self.shared.lost.fetch_add(given_up, Ordering::Relaxed);
        if given_up > 0 {
            ui::say(&format!(
                "{} does not take its last reports in time: {given_up} are lost",
                self.shared.place()
            ));
        }
    }
}

impl Shared {
    fn place(&self) -> String {
        match &self.output {
            Output::Stdout => "stdout".to_owned(),
            Output::File(path) => path.display().to_string(),
        }
    }

    /// Takes one waiting report. Returns `false` if it was given up before.
    fn take(&self) -> bool {
        let less = |waiting: u64| waiting.checked_sub(1);
        self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }
}

/// The thread's state.
struct Way {
    shared: Arc<Shared>,
    /// `None` means stdout.
    file: Option<File>,
    /// Reports lost since this began.
    failed: u64,
}

impl Way {
    /// Writes all jobs, then drops `_at_end`.
    fn write_all(&mut self, jobs: &Receiver<Job>, _at_end: Sender<()>) {
        while let Ok(Job { reports, text }) = jobs.recv() {
            let written = match &mut self.file {
                Some(file) => file.write(text.as_bytes(), &reports),
                None => {
                    let mut out = io::stdout().lock();
                    out.write_all(text.as_bytes()).and_then(|()| out.flush())
                }
            };
            self.shared.bytes.fetch_sub(text.len(), Ordering::Relaxed);
            if !self.shared.take() {
                return;
            }
            self.judge(written);
        }
    }

    fn judge(&mut self, written: io::Result<()>) {
        let place = self.shared.place();
        match written {
            Ok(()) => {
                let dropped = self.shared.dropped.swap(0, Ordering::Relaxed);
                let lost = std::mem::take(&mut self.failed) + dropped;
                if lost > 0 {
                    ui::say(&format!("reports can be written to {place} again; {lost} were lost"));
                }
            }
            Err(error) => {
                self.shared.lost.fetch_add(1, Ordering::Relaxed);
                self.failed += 1;
                if self.failed == 1 {
                    ui::say(&format!(
                        "cannot write reports to {place}: {error}; the next ones are tried all the \
                         same, and lost ones are counted"
                    ));
                }
            }
        }
    }
}
