//! Takes reports from the sessions, and passes each to the queue of its output.

use super::queue::{Queue, Rest};
use crate::{
    daemon::config::{Output, Reports},
    ui,
};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// Time limit of the last reports of all outputs.
const PATIENCE: Duration = Duration::from_secs(3);

pub(crate) struct Writer {
    /// `None` once it is finished.
    queues: Mutex<Option<HashMap<Output, Queue>>>,
    lost: Arc<AtomicU64>,
}

impl Writer {
    /// Makes a writer. `lost` counts reports that cannot be written.
    pub(crate) fn new(lost: Arc<AtomicU64>) -> Self {
        Self { queues: Mutex::new(Some(HashMap::new())), lost }
    }

    pub(crate) fn write(&self, reports: &Reports, text: String) {
        let mut queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner);
        match queues.as_mut().and_then(|queues| self.queue(queues, &reports.output)) {
            Some(queue) => queue.put(reports, text),
            None => drop(self.lost.fetch_add(1, Ordering::Relaxed)),
        }
    }

    fn queue<'a>(
        &self,
        queues: &'a mut HashMap<Output, Queue>,
        output: &Output,
    ) -> Option<&'a Queue> {
        if !queues.contains_key(output) {
            let queue = Queue::start(output, Arc::clone(&self.lost));
            let queue = queue.inspect_err(|error| ui::say(&format!("a report is lost: {error}")));
            queues.insert(output.clone(), queue.ok()?);
        }
        queues.get(output)
    }

    /// Returns the number of reports that could not be written.
    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    /// Waits until all is written or given up: an output may never answer.
    pub(crate) fn finish(&self) {
        let queues = self.queues.lock().unwrap_or_else(PoisonError::into_inner).take();
        let rests: Vec<Rest> = queues.into_iter().flatten().map(|(_, q)| q.close()).collect();
        let until = Instant::now() + PATIENCE;
        rests.into_iter().for_each(|rest| rest.wait(until));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
    use std::{
        fs::{self, File},
        io::{Read as _, Write as _},
        path::{Path, PathBuf},
    };

    fn to(path: &Path) -> Reports {
        let output = Output::File(path.to_owned());
        Reports { output, rotate_bytes: u64::MAX, ..Reports::default() }
    }

    fn pipe(folder: &Path) -> PathBuf {
        let path = folder.join("pipe");
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
        path
    }

    /// Opens both ends of a pipe, without blocking.
    fn open(pipe: &Path) -> File {
        let flags = OFlags::RDWR | OFlags::NONBLOCK;
        rustix::fs::open(pipe, flags, Mode::empty()).unwrap().into()
    }

    #[test]
    fn an_output_that_takes_nothing_silences_no_other() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, file) = (pipe(folder.path()), folder.path().join("web.jsonl"));
        let mut full = open(&pipe);
        while full.write(&[0; 4096]).is_ok() {}
        let writer = Writer::new(Arc::default());
        for _ in 0..20 {
            writer.write(&to(&pipe), "lost\n".into());
            writer.write(&to(&file), "kept\n".into());
        }
        let begun = Instant::now();
        while fs::read_to_string(&file).unwrap_or_default() != "kept\n".repeat(20) {
            assert!(begun.elapsed() < Duration::from_secs(15), "they are held up");
            std::thread::sleep(Duration::from_millis(5));
        }
        writer.finish();
        assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
        assert_eq!(writer.lost(), 20);
    }

    #[test]
    fn a_pipe_that_nobody_reads_costs_reports_until_somebody_does() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = pipe(folder.path());
        let writer = Writer::new(Arc::default());
        writer.write(&to(&pipe), "lost\n".into());
        while writer.lost() == 0 {
            std::thread::sleep(Duration::from_millis(5));
        }
        let mut reader = open(&pipe);
        // More bytes than the pipe has room for.
        let long = "x".repeat(1 << 20) + "\n";
        writer.write(&to(&pipe), long.clone());
        let mut seen: Vec<u8> = Vec::new();
        while seen.len() < long.len() {
            let mut part = [0; 4096];
            match reader.read(&mut part) {
                Ok(bytes) => seen.extend(&part[..bytes]),
                Err(_) => std::thread::sleep(Duration::from_millis(1)),
            }
        }
        assert_eq!(seen, long.as_bytes());
        writer.finish();
        assert_eq!(writer.lost(), 1);
    }
}
