//! The thread that sends profiles to one receiver, in order.

use super::{Profiled, trouble::Trouble, way::Way};
use crate::{
    daemon::{
        metrics::{catalog::Own, hub::MetricsHub},
        post::{
            PostFailure,
            queue::{Ending, ExportQueue, Exporter},
        },
    },
    ui,
};
use std::{
    io,
    sync::{
        Arc, Mutex, PoisonError,
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
    account: Arc<Account>,
}

/// What both ends of the queue count and tell.
struct Account {
    /// The memory of profiles that were not taken yet.
    bytes: AtomicUsize,
    trouble: Mutex<Trouble>,
    metrics: MetricsHub,
    /// The counters of profiles that were sent, and of lost ones.
    counters: [Own; 2],
}

impl Account {
    fn tell(&self, of: impl FnOnce(&mut Trouble) -> Option<String>) {
        // Nobody waits while a line is written.
        let line = of(&mut self.trouble.lock().unwrap_or_else(PoisonError::into_inner));
        line.iter().for_each(|line| ui::say(line));
    }

    fn lost(&self, of: impl FnOnce(&mut Trouble) -> Option<String>) {
        self.metrics.count_own(self.counters[1]);
        self.tell(of);
    }
}

struct Waiting {
    profiled: Arc<Profiled>,
    /// The time after which it is given up.
    until: Instant,
}

impl Sender {
    pub(super) fn start(way: Way, metrics: &MetricsHub) -> io::Result<Self> {
        let account = Arc::new(Account {
            bytes: AtomicUsize::new(0),
            trouble: Mutex::new(Trouble::new(format!("{} at {}", way.name(), way.endpoint()))),
            metrics: metrics.clone(),
            counters: way.counters(),
        });
        let thread = way.thread();
        let exporter = ProfileExporter { way, account: Arc::clone(&account) };
        Ok(Self { queue: ExportQueue::start(thread, WAITING, exporter)?, account })
    }

    /// Queues a profile and returns at once.
    pub(super) fn put(&self, profiled: &Arc<Profiled>) {
        let (account, bytes) = (&self.account, profiled.profile.bytes());
        let before = account.bytes.fetch_add(bytes, Relaxed);
        let has_room = before == 0 || before.saturating_add(bytes) <= WAITING_BYTES;
        let job = Waiting { profiled: Arc::clone(profiled), until: Instant::now() + PATIENCE };
        if !has_room || !self.queue.put(job) {
            account.bytes.fetch_sub(bytes, Relaxed);
            account.lost(|trouble| trouble.no_room(Instant::now()));
        }
    }

    /// Takes no more profiles. What waits is sent or given up.
    pub(super) fn close(&self) -> Option<Ending> {
        self.queue.close()
    }
}

/// The thread's state.
struct ProfileExporter {
    way: Way,
    account: Arc<Account>,
}

impl Exporter<Waiting> for ProfileExporter {
    async fn deliver(&mut self, job: &Waiting) {
        let Self { way, account } = self;
        let (metrics, until) = (&account.metrics, job.until);
        let failed = |failure: &PostFailure| {
            if failure.is_temporary() {
                account.tell(|trouble| trouble.failed(&failure.why, Instant::now()));
            }
        };
        let sent = match Instant::now() < until {
            true => way.send(&job.profiled, metrics, until, failed).await,
            // Making a request of it would be in vain.
            false => Err(anyhow::anyhow!("the oldest waited for too long")),
        };
        account.bytes.fetch_sub(job.profiled.profile.bytes(), Relaxed);
        match sent {
            Ok(()) => {
                metrics.count_own(account.counters[0]);
                account.tell(Trouble::sent);
            }
            Err(error) => {
                account.lost(|trouble| trouble.lost(&format!("{error:#}"), Instant::now()));
            }
        }
    }

    fn lose(&mut self, job: &Waiting) {
        self.account.bytes.fetch_sub(job.profiled.profile.bytes(), Relaxed);
        self.account.lost(Trouble::ended);
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::fixtures::{profiled, push},
        *,
    };
    use crate::daemon::metrics::accumulator::Bounds;
    use std::net::TcpListener;

    #[test]
    fn profiles_without_room_are_told() {
        let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
        let metrics = MetricsHub::new(Bounds::default());
        let sender = Sender::start(Way::Parca(push(&silent)), &metrics).expect("a thread");
        let profiled = Arc::new(profiled(1));
        (0..5_000).for_each(|_| sender.put(&profiled));
        let lost = metrics.counter(Own::PprofProfilesDropped).load(Relaxed);
        let line = sender.account.trouble.lock().expect("whole").failed("busy", Instant::now());
        let line = line.expect("the first one");
        assert!(lost >= 900 && line.ends_with(&format!("; {lost} were lost before")), "{line}");
        sender.close().into_iter().for_each(Ending::wait);
    }

    #[test]
    fn a_profile_that_is_too_old_is_not_sent() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let metrics = MetricsHub::new(Bounds::default());
        let sender = Sender::start(Way::Parca(push(&listener)), &metrics).expect("a thread");
        let job = Waiting { profiled: Arc::new(profiled(1)), until: Instant::now() };
        sender.account.bytes.fetch_add(job.profiled.profile.bytes(), Relaxed);
        assert!(sender.queue.put(job));
        sender.close().into_iter().for_each(Ending::wait);
        let counters = [Own::PprofProfiles, Own::PprofProfilesDropped, Own::PprofFailures];
        assert_eq!(counters.map(|own| metrics.counter(own).load(Relaxed)), [0, 1, 0]);
        assert_eq!(sender.account.bytes.load(Relaxed), 0);
        listener.set_nonblocking(true).expect("a socket");
        assert!(listener.accept().is_err());
    }
}
