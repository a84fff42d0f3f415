//! Exports slow calls as spans by OTLP, like metrics.
//!
//! A session passes on its flight recorder's calls. A thread of their own turns them into spans and
//! sends them. Nothing waits for a receiver: calls without room, beyond the limit or not accepted
//! are counted. `docs/metrics.md` has more.

mod encode;
mod ids;
mod limit;
#[cfg(test)]
mod receiver_tests;

use super::{
    ids::TargetName,
    metrics::{
        catalog::Own,
        hub::MetricsHub,
        otlp::{Endpoint, Receiver},
    },
};
use crate::{session::keep::flight::Flown, ui};
use encode::{About, encode};
use ids::Ids;
use limit::Limit;
use std::{
    io,
    sync::{Mutex, PoisonError},
    thread::JoinHandle,
    time::Duration,
};
use tokio::{
    sync::{mpsc, oneshot},
    time::Instant,
};

/// Limit of waiting flight recordings.
const WAITING: usize = 16;
/// Time for a receiver that refuses temporarily. A longer time would delay later calls.
const PATIENCE: Duration = Duration::from_secs(20);
/// Time limit for all waiting calls before the daemon ends.
const LAST: Duration = Duration::from_secs(3);
/// Limit of calls inside a slow one that become spans.
const INSIDE: usize = 100;

/// The receiver, and the limit of slow calls.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub receiver: Receiver,
    pub a_minute: u32,
}

/// The slow calls of a session.
pub(crate) struct Job {
    pub target: TargetName,
    /// The number of slow calls.
    pub calls: u64,
    pub flown: Flown,
}

/// The exporter of slow calls.
pub(crate) struct Spans {
    running: Mutex<Option<Running>>,
    metrics: MetricsHub,
}

struct Running {
    jobs: mpsc::Sender<Job>,
    /// Only dropped, to stop the thread.
    stop: oneshot::Sender<()>,
    thread: JoinHandle<()>,
}

impl Spans {
    pub(crate) fn start(options: Options, metrics: MetricsHub) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let (jobs, arriving) = mpsc::channel(WAITING);
        let (stop, stopped) = oneshot::channel();
        let exporter = Exporter {
            limit: Limit::new(options.a_minute),
            receiver: options.receiver,
            metrics: metrics.clone(),
            ids: Ids::new(),
            fails: false,
        };
        let main = move || runtime.block_on(exporter.run(arriving, stopped));
        let thread = std::thread::Builder::new().name("spans".into()).spawn(main)?;
        let running = Mutex::new(Some(Running { jobs, stop, thread }));
        Ok(Self { running, metrics })
    }

    /// Queues a job and returns at once.
    pub(crate) fn enqueue(&self, job: Job) {
        let calls = job.calls;
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        let is_sent = running.as_ref().is_some_and(|running| running.jobs.try_send(job).is_ok());
        if !is_sent {
            self.metrics.count_more(Own::SlowCallsDropped, calls);
        }
    }

    /// Waits until all is sent or given up.
    pub(crate) fn finish(&self) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Running { jobs, stop, thread }) = running {
            drop((jobs, stop));
            if thread.join().is_err() {
                tracing::warn!("the thread of the spans panicked");
            }
        }
    }
}

/// The thread's state.
struct Exporter {
    receiver: Receiver,
    limit: Limit,
    metrics: MetricsHub,
    ids: Ids,
    /// True once a failure was logged.
    fails: bool,
}

impl Exporter {
    async fn run(mut self, mut jobs: mpsc::Receiver<Job>, stopped: oneshot::Receiver<()>) {
        let late = async {
            let _ = stopped.await;
            tokio::time::sleep(LAST).await;
        };
        let all = async {
            while let Some(job) = jobs.recv().await {
                self.deliver(job).await;
            }
        };
        tokio::select! {
            () = all => {}
            () = late => {}
        }
    }

    async fn deliver(&mut self, job: Job) {
        let exported = self.send(&job).await;
        let sent = *exported.as_ref().unwrap_or(&0);
        self.metrics.count_more(Own::SlowCalls, sent);
        self.metrics.count_more(Own::SlowCallsDropped, job.calls.saturating_sub(sent));
        let Endpoint { host, port, .. } = &self.receiver.endpoint;
        match exported {
            Ok(0) => {}
            Ok(_) => {
                if std::mem::take(&mut self.fails) {
                    ui::say(&format!("slow calls can be exported to {host}:{port} again"));
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut self.fails, true) {
                    ui::say(&format!(
                        "slow calls are not exported as spans: {error:#}; the next ones are tried all \
                         the same, and lost ones are counted"
                    ));
                }
            }
        }
    }

    /// Sends a job. Returns the number of exported slow calls.
    async fn send(&mut self, job: &Job) -> anyhow::Result<u64> {
        let now = Instant::now();
        let room = self.limit.room(now);
        if room == 0 {
            return Ok(0);
        }
        let (recording, trees) = job.flown.slow_calls(room, INSIDE)?;
        if trees.is_empty() {
            return Ok(0);
        }
        self.limit.take(trees.len());
        let about = About {
            target: &job.target,
            resource: &self.receiver.resource,
            unix_offset_ns: ui::output::wall::unix_offset_ns(),
        };
        let body = encode(&recording, &trees, &about, &mut self.ids);
        self.receiver.send(body, &self.metrics, now + PATIENCE).await?;
        let branches = trees.iter().flat_map(|tree| &tree.branches);
        Ok(branches.filter(|branch| branch.is_slow).count() as u64)
    }
}
