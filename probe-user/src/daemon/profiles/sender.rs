//! The thread that sends profiles to one receiver, in order.

use super::{Profiled, Way};
use crate::{
    daemon::{
        metrics::{catalog::Own, hub::MetricsHub},
        post::{
            Endpoint,
            queue::{ExportQueue, Exporter},
        },
    },
    ui,
};
use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::Duration,
};
use tokio::time::Instant;

/// Limit of waiting profiles.
const WAITING: usize = 4096;
/// Limit of their memory, in bytes. One has room if no other waits.
pub(super) const WAITING_BYTES: usize = 32 << 20;
/// The age up to which a profile is tried again. Receivers refuse old ones.
const PATIENCE: Duration = Duration::from_secs(600);

/// The way to the thread.
pub(super) struct Sender {
    queue: ExportQueue<Waiting>,
    bytes: Arc<AtomicUsize>,
    metrics: MetricsHub,
    dropped: Own,
}

struct Waiting {
    profiled: Arc<Profiled>,
    since: Instant,
}

impl Sender {
    pub(super) fn start(way: Way, metrics: &MetricsHub) -> io::Result<Self> {
        let bytes = Arc::new(AtomicUsize::new(0));
        let [_, dropped] = way.counters();
        let exporter = ProfileExporter {
            way,
            bytes: Arc::clone(&bytes),
            metrics: metrics.clone(),
            fails: false,
            lost: 0,
        };
        let queue = ExportQueue::start("profiles", WAITING, exporter)?;
        Ok(Self { queue, bytes, metrics: metrics.clone(), dropped })
    }

    /// Queues a profile and returns at once.
    pub(super) fn put(&self, profiled: &Arc<Profiled>) {
        let bytes = profiled.profile.bytes();
        let before = self.bytes.fetch_add(bytes, Relaxed);
        let has_room = before == 0 || before.saturating_add(bytes) <= WAITING_BYTES;
        let job = Waiting { profiled: Arc::clone(profiled), since: Instant::now() };
        if !has_room || !self.queue.put(job) {
            self.bytes.fetch_sub(bytes, Relaxed);
            self.metrics.count_own(self.dropped);
        }
    }

    pub(super) fn finish(&self) {
        self.queue.finish();
    }
}

/// The thread's state.
struct ProfileExporter {
    way: Way,
    /// The memory of profiles that were not taken yet.
    bytes: Arc<AtomicUsize>,
    metrics: MetricsHub,
    /// True once a failure was logged.
    fails: bool,
    /// The number of profiles that were lost since then.
    lost: u64,
}

impl Exporter<Waiting> for ProfileExporter {
    async fn deliver(&mut self, job: &Waiting) {
        let Self { way, bytes, metrics, fails, lost } = self;
        let (name, endpoint) = (way.name(), way.endpoint().clone());
        let told = |why: &str| tell(fails, name, &endpoint, why);
        let sent = way.send(&job.profiled, metrics, job.since + PATIENCE, told).await;
        bytes.fetch_sub(job.profiled.profile.bytes(), Relaxed);
        let [taken, dropped] = way.counters();
        metrics.count_own(if matches!(sent, Ok(true)) { taken } else { dropped });
        match sent {
            Ok(_) if std::mem::take(fails) => {
                let lost = std::mem::take(lost);
                ui::say(&format!(
                    "profiles can be sent to {name} at {endpoint} again; {lost} were given up"
                ));
            }
            Ok(_) => {}
            Err(error) => {
                *lost += 1;
                tell(fails, name, &endpoint, &format!("{error:#}"));
            }
        }
    }

    fn lose(&mut self, job: &Waiting) {
        self.bytes.fetch_sub(job.profiled.profile.bytes(), Relaxed);
        let [_, dropped] = self.way.counters();
        self.metrics.count_own(dropped);
        if !std::mem::replace(&mut self.fails, true) {
            let (name, endpoint) = (self.way.name(), self.way.endpoint());
            ui::say(&format!(
                "{name} at {endpoint} does not take the last profiles in time: they are lost"
            ));
        }
    }
}

/// Tells of a failure, unless one was told since the last success.
fn tell(fails: &mut bool, name: &str, endpoint: &Endpoint, why: &str) {
    if !std::mem::replace(fails, true) {
        ui::say(&format!(
            "profiles cannot be sent to {name} at {endpoint}: {why}; temporary failures are tried \
             again, and lost profiles are counted"
        ));
    }
}
