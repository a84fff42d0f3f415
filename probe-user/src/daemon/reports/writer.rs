//! The thread that writes reports: a slow or full disk holds up no session. What cannot be written
//! is counted; it is said once when that begins, and once when it is over.

use super::file::File;
use crate::{
    daemon::config::{Output, Reports},
    ui,
};
use std::{
    collections::HashMap,
    io::{self, Write as _},
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
        mpsc::{Receiver, SyncSender, sync_channel},
    },
    thread::JoinHandle,
};

/// Reports that may wait.
const WAITING: usize = 256;

/// Takes reports.
pub struct Writer {
    sender: Mutex<Option<SyncSender<Job>>>,
    thread: Mutex<Option<JoinHandle<()>>>,
    lost: Arc<AtomicU64>,
}

struct Job {
    reports: Reports,
    text: String,
}

impl Writer {
    /// `lost` counts reports that cannot be written.
    pub fn start(lost: Arc<AtomicU64>) -> io::Result<Self> {
        let (sender, receiver) = sync_channel(WAITING);
        let mut outputs =
            Outputs { files: HashMap::new(), failing: HashMap::new(), lost: Arc::clone(&lost) };
        let thread = std::thread::Builder::new()
            .name("reports".into())
            .spawn(move || outputs.write_all(&receiver))?;
        Ok(Self { sender: Mutex::new(Some(sender)), thread: Mutex::new(Some(thread)), lost })
    }

    pub fn write(&self, reports: &Reports, text: String) {
        let sender = self.sender.lock().unwrap_or_else(PoisonError::into_inner);
        let job = Job { reports: reports.clone(), text };
        let is_sent = sender.as_ref().is_some_and(|sender| sender.try_send(job).is_ok());
        if !is_sent {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// How many could not be written.
    pub fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Returns when all is written, or given up.
    pub fn finish(&self) {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

/// On the thread.
struct Outputs {
    files: HashMap<PathBuf, File>,
    /// How many reports each output has lost since it began to fail.
    failing: HashMap<Output, u64>,
    lost: Arc<AtomicU64>,
}

impl Outputs {
    fn write_all(&mut self, jobs: &Receiver<Job>) {
        while let Ok(Job { reports, text }) = jobs.recv() {
            let written = match &reports.output {
                Output::Stdout => {
                    let mut out = io::stdout().lock();
                    out.write_all(text.as_bytes()).and_then(|()| out.flush())
                }
                Output::File(path) => {
                    let file = self.files.entry(path.clone()).or_insert_with(|| File::new(path));
                    file.write(text.as_bytes(), &reports)
                }
            };
            self.judge(&reports.output, written);
        }
    }

    fn judge(&mut self, output: &Output, written: io::Result<()>) {
        let place = || match output {
            Output::Stdout => "stdout".to_owned(),
            Output::File(path) => path.display().to_string(),
        };
        match written {
            Ok(()) => {
                if let Some(lost) = self.failing.remove(output) {
                    ui::say(&format!(
                        "reports can be written to {} again; {lost} were lost",
                        place()
                    ));
                }
            }
            Err(error) => {
                self.lost.fetch_add(1, Ordering::Relaxed);
                let lost = self.failing.entry(output.clone()).or_default();
                *lost += 1;
                if *lost == 1 {
                    ui::say(&format!(
                        "cannot write reports to {}: {error}; the next ones are tried all the same, \
                         and lost ones are counted",
                        place()
                    ));
                }
            }
        }
    }
}
