//! Writes the tables of a fleet: `[fleet]` in the configuration.
//!
//! A session hands over its intervals on its own thread, as rows ([`Interval`]). One thread keeps the
//! rows of each table, unit and day ([`buffer`]) until they are worth a file, and writes it whole into
//! its folder ([`store`]). A disk that is full or away costs nothing as long as there is memory for the
//! rows: they are tried again. Rows beyond that are lost, counted and told. With an object store the
//! files wait in their folder until they are sent ([`shipping`]).

mod buffer;
mod compactor;
mod shipping;
mod store;
mod writer;

pub(super) use shipping::refusal;

use super::{
    config,
    metrics::{catalog::Own, hub::MetricsHub},
};
use crate::ui;
use ctrace_core::{fleet::rows::Interval, report::SlowAsked};
use std::{
    io,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
        mpsc::{RecvTimeoutError, Sender, channel},
    },
    time::Duration,
};

/// Limit of the memory of intervals that wait for the thread, in bytes. One has room if no other waits.
const WAITING: usize = 32 << 20;
/// Time limit of the last files.
const PATIENCE: Duration = Duration::from_secs(10);

/// The way to the thread.
pub(super) struct Fleet {
    shipping: shipping::Shipping,
    jobs: Mutex<Sender<Job>>,
    is_on: AtomicBool,
    slow: Mutex<SlowAsked>,
    /// The memory of intervals that the thread has not taken yet.
    waiting: Arc<AtomicUsize>,
    /// Rows that are in no file and never will be.
    lost: Arc<AtomicU64>,
}

/// A job of the thread.
enum Job {
    /// The unit, and the rows of an interval in it.
    Rows(Arc<str>, Box<Interval>),
    /// Close all files, and go on with another configuration.
    Configure(config::Fleet),
    /// Close all files, drop the sender and end.
    Finish(Sender<()>),
}

impl Fleet {
    pub(super) fn start(config: &config::Fleet, metrics: &MetricsHub) -> io::Result<Self> {
        let (jobs, coming) = channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let lost = metrics.counter(Own::FleetRowsLost);
        let mut writer = writer::Writer::new(config.clone(), metrics.clone(), Arc::clone(&waiting));
        let thread = std::thread::Builder::new().name("fleet".into());
        thread.spawn(move || writer.run(&coming))?;
        let is_on = AtomicBool::new(config.folder.is_some());
        let slow = Mutex::new(config.slow_calls());
        let shipping = shipping::Shipping::start(config, metrics)?;
        Ok(Self { shipping, jobs: Mutex::new(jobs), is_on, slow, waiting, lost })
    }

    /// Returns true if rows are wanted.
    pub(super) fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Returns which slow calls are wanted.
    pub(super) fn slow_calls(&self) -> SlowAsked {
        *self.slow.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the rows of an interval, in this unit.
    pub(super) fn put(&self, unit: &Arc<str>, rows: Interval) {
        let (count, bytes) = (rows.rows(), rows.bytes());
        let before = self.waiting.fetch_add(bytes, Ordering::Relaxed);
        let has_room = before == 0 || before.saturating_add(bytes) <= WAITING;
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if has_room && jobs.send(Job::Rows(Arc::clone(unit), Box::new(rows))).is_ok() {
            return;
        }
        self.waiting.fetch_sub(bytes, Ordering::Relaxed);
        if self.lost.fetch_add(count, Ordering::Relaxed) == 0 {
            ui::say(
                "the folder of the fleet does not answer: rows of tables are lost, and counted",
            );
        }
    }

    /// Closes all files, and goes on as another configuration says.
    pub(super) fn configure(&self, config: &config::Fleet) {
        self.is_on.store(config.folder.is_some(), Ordering::Relaxed);
        *self.slow.lock().unwrap_or_else(PoisonError::into_inner) = config.slow_calls();
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        // The thread ends with the daemon only.
        let _ = jobs.send(Job::Configure(config.clone()));
        self.shipping.configure(config);
    }

    /// Closes all files, and waits until they are written or given up.
    pub(super) fn finish(&self) {
        let (done, end) = channel();
        let jobs = self.jobs.lock().unwrap_or_else(PoisonError::into_inner);
        if jobs.send(Job::Finish(done)).is_ok()
            && end.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout)
        {
            ui::say("the folder of the fleet does not take its last files in time: they are lost");
        }
        self.shipping.finish();
    }
}
