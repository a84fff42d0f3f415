//! Exports slow calls as spans by OTLP, like metrics.
//!
//! A session passes on its flight recorder's calls. A thread of their own turns them into spans and
//! sends them. Nothing waits for a receiver: calls without room, beyond the limit or not accepted
//! are counted. `docs/metrics.md` has more.

mod encode;
mod limit;
#[cfg(test)]
mod receiver_tests;

use super::{
    ids::TargetName,
    metrics::{catalog::Own, hub::MetricsHub, otlp::Receiver},
    post::queue::{Ending, ExportQueue, Exporter},
    random_ids::Ids,
};
use crate::{session::keep::flight::Flown, ui};
use encode::{About, encode};
use limit::Limit;
use std::{io, time::Duration};
use tokio::time::Instant;

/// Limit of waiting flight recordings.
const WAITING: usize = 16;
/// Time for a receiver that refuses temporarily. A longer time would delay later calls.
const PATIENCE: Duration = Duration::from_secs(20);
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

/// The way to the thread that exports slow calls.
pub(crate) struct Spans {
    queue: ExportQueue<Job>,
    metrics: MetricsHub,
}

impl Spans {
    pub(crate) fn start(options: Options, metrics: MetricsHub) -> io::Result<Self> {
        let exporter = SpanExporter {
            limit: Limit::new(options.a_minute),
            receiver: options.receiver,
            metrics: metrics.clone(),
            ids: Ids::new(),
            fails: false,
        };
        Ok(Self { queue: ExportQueue::start("spans", WAITING, exporter)?, metrics })
    }

    /// Queues a job and returns at once.
    pub(crate) fn enqueue(&self, job: Job) {
        let calls = job.calls;
        if !self.queue.put(job) {
            self.metrics.count_more(Own::SlowCallsDropped, calls);
        }
    }

    /// Takes no more jobs. What waits is sent or given up.
    pub(crate) fn close(&self) -> Option<Ending> {
        self.queue.close()
    }
}

/// The thread's state.
struct SpanExporter {
    receiver: Receiver,
    limit: Limit,
    metrics: MetricsHub,
    ids: Ids,
    /// True once a failure was logged.
    fails: bool,
}

impl Exporter<Job> for SpanExporter {
    async fn deliver(&mut self, job: &Job) {
        let exported = self.send(job).await;
        let sent = *exported.as_ref().unwrap_or(&0);
        self.metrics.count_more(Own::SlowCalls, sent);
        self.metrics.count_more(Own::SlowCallsDropped, job.calls.saturating_sub(sent));
        match exported {
            Ok(0) => {}
            Ok(_) => {
                if std::mem::take(&mut self.fails) {
                    let endpoint = &self.receiver.endpoint;
                    ui::say(&format!("slow calls can be exported to {endpoint} again"));
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

    fn lose(&mut self, job: &Job) {
        self.metrics.count_more(Own::SlowCallsDropped, job.calls);
    }
}

impl SpanExporter {
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
        let receiver = &self.receiver;
        let left_out = receiver.send(body, &self.metrics, now + PATIENCE, |_| {}).await?;
        left_out.iter().for_each(|left_out| left_out.warn(&receiver.endpoint));
        let branches = trees.iter().flat_map(|tree| &tree.branches);
        Ok(branches.filter(|branch| branch.is_slow).count() as u64)
    }
}
