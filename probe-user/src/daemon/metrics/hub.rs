//! The metrics that all threads of the daemon share.
//!
//! A session hands in its finished intervals on its own thread. A scrape first asks every session
//! for its current interval, with a time limit; without an answer, the last known data is used.
//! Answers are also taken in on the session's thread, in order with its intervals.

use super::{
    accumulator::{Accumulator, Bounds},
    by_value::CallsOfValue,
    catalog::{self, OF_OWN, OWN, Own},
    family::{Families, Family, Labels},
    health,
    latency::Edges,
    plots::NumbersOfPlot,
};
use crate::{
    daemon::ids::SessionId,
    session::keep::live::{Command, Snapshot},
};
use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};
use tokio::sync::{mpsc::UnboundedSender, oneshot};

/// Time limit for the answers of all sessions together.
const ANSWERS: Duration = Duration::from_secs(2);
/// The pause before a session is asked again, as a multiple of its last answer's time, since each
/// answer needs a report.
const REST: u32 = 20;

#[derive(Clone)]
pub(crate) struct MetricsHub(Arc<Shared>);

struct Shared {
    accumulator: Mutex<Accumulator>,
    sessions: Mutex<HashMap<SessionId, Respondent>>,
    own: [Arc<AtomicU64>; OWN],
    last_scrape: Mutex<Option<Duration>>,
    edges: Edges,
}

/// The way to ask a session, and the earliest next time.
struct Respondent {
    commands: UnboundedSender<Command>,
    not_before: Option<Instant>,
    waits: bool,
}

impl MetricsHub {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self(Arc::new(Shared {
            edges: bounds.edges.clone(),
            accumulator: Mutex::new(Accumulator::new(bounds)),
            sessions: Mutex::default(),
            own: Default::default(),
            last_scrape: Mutex::default(),
        }))
    }

    /// Sets the configured targets, with their budgets in percent.
    pub(crate) fn configure<'a>(
        &self,
        targets: impl Iterator<Item = (&'a str, Option<f64>)> + Clone,
    ) {
        let mut accumulator = lock(&self.0.accumulator);
        accumulator.keep(|name| targets.clone().any(|(target, _)| target == name));
        targets.for_each(|(target, budget)| accumulator.add_target(target, budget));
    }

    /// Adds a session that is about to begin.
    pub(crate) fn begin(&self, id: SessionId, target: &str) {
        lock(&self.0.accumulator).begin(id, target);
    }

    /// Records that a session's probes are in place, and that it can be asked.
    pub(crate) fn armed(&self, id: SessionId, commands: UnboundedSender<Command>) {
        lock(&self.0.accumulator).armed(id);
        let asked = Respondent { commands, not_before: None, waits: false };
        lock(&self.0.sessions).insert(id, asked);
    }

    /// Takes a finished interval of a session, on the session's thread.
    pub(crate) fn observe(&self, id: SessionId, snapshot: &Snapshot) {
        lock(&self.0.accumulator).observe(id, snapshot);
    }

    /// Takes calls of a session by their values, on the session's thread.
    pub(crate) fn observe_values(
        &self,
        id: SessionId,
        argument: &str,
        most: usize,
        calls: Vec<CallsOfValue>,
    ) {
        lock(&self.0.accumulator).observe_values(id, argument, most, calls);
    }

    /// Records that calls of a session are told apart by their values no more.
    pub(crate) fn lose_values(&self, id: SessionId) {
        lock(&self.0.accumulator).lose_values(id);
    }

    /// Takes numbers that a session's process plotted, on the session's thread.
    pub(crate) fn observe_plots(&self, id: SessionId, numbers: Vec<NumbersOfPlot>) {
        lock(&self.0.accumulator).observe_plots(id, numbers);
    }

    /// Records that plots of a session are counted no more.
    pub(crate) fn lose_plots(&self, id: SessionId) {
        lock(&self.0.accumulator).lose_plots(id);
    }

    /// Removes a session that is over or could not begin.
    pub(crate) fn end(&self, id: SessionId) {
        lock(&self.0.sessions).remove(&id);
        lock(&self.0.accumulator).end(id);
    }

    pub(crate) fn count_own(&self, own: Own) {
        self.count_more(own, 1);
    }

    pub(crate) fn count_more(&self, own: Own, count: u64) {
        self.0.own[own as usize].fetch_add(count, Relaxed);
    }

    /// Returns a counter, for code that counts itself.
    pub(crate) fn counter(&self, own: Own) -> Arc<AtomicU64> {
        Arc::clone(&self.0.own[own as usize])
    }

    pub(crate) fn edges(&self) -> &Edges {
        &self.0.edges
    }

    /// Returns all metrics as of now.
    pub(crate) async fn scrape(&self) -> Vec<Family> {
        let begun = Instant::now();
        self.ask_sessions().await;
        let mut families = Families::default();
        lock(&self.0.accumulator).tell(&mut families);
        for (metric, count) in OF_OWN.iter().zip(&self.0.own) {
            families.push(metric, Labels::new(), count.load(Relaxed) as f64);
        }
        if let Some(last) = lock(&self.0.last_scrape).replace(begun.elapsed()) {
            families.push(&catalog::SCRAPE_DURATION, Labels::new(), last.as_secs_f64());
        }
        health::tell(&mut families);
        families.finish()
    }

    async fn ask_sessions(&self) {
        let until = tokio::time::Instant::now() + ANSWERS;
        for answer in self.0.ask() {
            // A session that ended meanwhile has delivered everything.
            if tokio::time::timeout_at(until, answer).await.is_err() {
                self.count_own(Own::Unanswered);
            }
        }
    }
}

impl Shared {
    /// Asks all sessions that may be asked now.
    fn ask(self: &Arc<Self>) -> Vec<oneshot::Receiver<()>> {
        let now = Instant::now();
        let mut sessions = lock(&self.sessions);
        let ready = sessions
            .iter_mut()
            .filter(|(_, asked)| !asked.waits && asked.not_before.is_none_or(|then| then <= now));
        let asked = ready.filter_map(|(&id, asked)| {
            let (answer, answered) = oneshot::channel();
            let shared = Arc::clone(self);
            let take = move |snapshot: Snapshot| {
                shared.answered(id, &snapshot, now);
                // The scrape may no longer wait.
                let _ = answer.send(());
            };
            asked.commands.send(Command::Peek(Box::new(take))).ok()?;
            asked.waits = true;
            Some(answered)
        });
        asked.collect()
    }

    fn answered(&self, id: SessionId, snapshot: &Snapshot, since: Instant) {
        lock(&self.accumulator).look(id, snapshot);
        if let Some(asked) = lock(&self.sessions).get_mut(&id) {
            asked.waits = false;
            asked.not_before = Some(Instant::now() + since.elapsed() * REST);
        }
    }
}

/// Ignores poisoning: the sums of a thread that panicked are still sums.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
