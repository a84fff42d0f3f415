//! Exports by OTLP over HTTP, usually to a collector on this machine.
//!
//! Every metric is cumulative, so a failed export loses nothing: the next one includes its numbers.
//! Nothing here runs on a thread that traces.

mod answer;
pub(crate) mod encode;
#[cfg(test)]
pub(crate) mod fixtures;
#[cfg(test)]
mod receiver_tests;

use super::{catalog::Own, hub::MetricsHub};
use crate::{
    daemon::post::{Endpoint, PostFailure, Request, deliver},
    host_name::host_name,
};
use answer::{LeftOut, left_out};
use ctrace_core::formats::protobuf::Message;
use encode::{Times, attribute, encode};
use hyper::header::{HeaderName, HeaderValue};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

/// The receiver of metrics, and the interval.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub receiver: Receiver,
    pub interval: Duration,
}

/// The address of a receiver, and the resource to export as.
#[derive(Clone, Debug)]
pub(crate) struct Receiver {
    pub endpoint: Endpoint,
    pub headers: Vec<(HeaderName, HeaderValue)>,
    pub resource: Resource,
}

/// The exporting resource, with optional attributes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Resource {
    pub more: Vec<(String, String)>,
}

impl Resource {
    /// Makes the resource of these attributes. Given ones replace them, or are added.
    pub(crate) fn message<'a>(&self, own: impl IntoIterator<Item = (&'a str, Message)>) -> Message {
        let is_given = |key: &str| self.more.iter().any(|(other, _)| other == key);
        let own = own.into_iter().filter(|(key, _)| !is_given(key)).map(|(_, own)| own);
        let more = self.more.iter().map(|(key, value)| attribute(key, value));
        let mut out = Message::default();
        own.chain(more).for_each(|attribute| _ = out.message(1, &attribute));
        out
    }

    /// Makes the resource that ctrace itself is.
    pub(crate) fn of_ctrace(&self) -> Message {
        let host = host_name();
        let pid = std::process::id();
        let own = [
            ("service.name", "ctrace".to_owned()),
            ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
            ("service.instance.id", format!("{host}:{pid}")),
            ("host.name", host),
            ("process.pid", pid.to_string()),
            ("process.executable.name", "ctrace".to_owned()),
        ];
        self.message(own.iter().map(|(key, value)| (*key, attribute(key, value))))
    }
}

/// Exports at each interval until it is dropped.
pub(crate) async fn run(metrics: MetricsHub, options: Options, start: SystemTime) {
    let first = Instant::now() + options.interval;
    let mut ticks = interval_at(first, options.interval);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let until = Instant::now() + options.interval;
        if let Err(error) = send_metrics(&metrics, &options, start, until).await {
            metrics.count_own(Own::OtlpGivenUp);
            tracing::warn!("metrics: {error:#}");
        }
    }
}

/// Sends the current metrics, with attempts until the given time.
pub(crate) async fn send_metrics(
    metrics: &MetricsHub,
    options: &Options,
    start: SystemTime,
    until: Instant,
) -> anyhow::Result<()> {
    let times = Times { start, now: SystemTime::now() };
    let families = metrics.scrape().await;
    let body = encode(&families, &options.receiver.resource.of_ctrace(), times);
    drop(families);
    let left_out = options.receiver.send(body, metrics, until, |_| {}).await?;
    left_out.iter().for_each(|left_out| left_out.warn(&options.receiver.endpoint));
    Ok(())
}

impl Receiver {
    /// Sends a request, with attempts until the given time. `failed` is called for each one that fails.
    /// Returns what the receiver left out: that must not be sent again.
    pub(crate) async fn send(
        &self,
        body: Vec<u8>,
        metrics: &MetricsHub,
        until: Instant,
        mut failed: impl FnMut(&PostFailure),
    ) -> anyhow::Result<Option<LeftOut>> {
        let request = Request {
            path: self.endpoint.path.clone(),
            content_type: HeaderValue::from_static("application/x-protobuf"),
            headers: self.headers.clone(),
            token: None,
            body: body.into(),
            temporary: &[],
            doubtful: &[],
        };
        let failed = |failure: &PostFailure| {
            metrics.count_own(Own::OtlpFailures);
            failed(failure);
        };
        let answer = deliver(&self.endpoint, &request, until, failed).await?;
        metrics.count_own(Own::OtlpExports);
        Ok(left_out(&answer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use opentelemetry_proto::tonic::resource::v1;
    use prost::Message as _;

    #[test]
    fn given_attributes_come_before_ours() {
        let more = vec![("service.name".to_owned(), "shop".to_owned())];
        let read = v1::Resource::decode(&*Resource { more }.of_ctrace().0).expect("a resource");
        let named = read.attributes.iter().filter(|one| one.key == "service.name");
        assert_eq!(named.count(), 1);
        assert_eq!(fixtures::text(&read.attributes, "service.name").as_deref(), Some("shop"));
        assert_eq!(read.attributes.len(), 6);
    }
}
