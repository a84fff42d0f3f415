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
mod send;

use super::{catalog::Own, hub::MetricsHub};
use anyhow::{Context as _, bail, ensure};
use encode::{Times, encode};
use hyper::{
    Uri,
    body::Bytes,
    header::{HeaderName, HeaderValue},
};
use send::{ExportFailure, post};
use std::time::{Duration, SystemTime};
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

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

/// An address like `http://localhost:4318`, with a path if it differs from the usual one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(crate) host: String,
    pub(crate) port: u16,
    pub(crate) path: String,
}

impl Endpoint {
    /// Parses an address. `usual` is the default path.
    pub(crate) fn parse(url: &str, usual: &str) -> anyhow::Result<Self> {
        let uri: Uri = url.parse().with_context(|| format!("`{url}` is no address"))?;
        match uri.scheme_str() {
            Some("http") => {}
            Some("https") => bail!(
                "`{url}`: no TLS is built in; send to a collector on this machine \
                 (http://localhost:4318), which can"
            ),
            _ => bail!("`{url}` must begin with http://"),
        }
        let host = uri.host().filter(|host| !host.is_empty());
        let host = host.with_context(|| format!("`{url}` names no host"))?;
        let path = uri.path_and_query().map_or("/", |path| path.as_str());
        let path = if path == "/" { usual } else { path };
        Ok(Self { host: host.into(), port: uri.port_u16().unwrap_or(4318), path: path.into() })
    }

    /// Returns the host and port for a socket: an IPv6 address loses its brackets.
    fn address(&self) -> (&str, u16) {
        (self.host.trim_matches(['[', ']']), self.port)
    }
}

/// The exporting resource, with optional attributes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Resource {
    pub more: Vec<(String, String)>,
}

impl Resource {
    fn attributes(&self) -> Vec<(&str, String)> {
        let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
        let mut all = vec![
            ("service.name", "ctrace".to_owned()),
            ("service.version", env!("CARGO_PKG_VERSION").to_owned()),
            ("service.instance.id", format!("{host}:{}", std::process::id())),
            ("host.name", host),
            ("process.pid", std::process::id().to_string()),
            ("process.executable.name", "ctrace".to_owned()),
        ];
        all.retain(|(key, _)| self.more.iter().all(|(other, _)| other != key));
        all.extend(self.more.iter().map(|(key, value)| (key.as_str(), value.clone())));
        all
    }
}

/// Time limit of one attempt.
const ATTEMPT: Duration = Duration::from_secs(10);
/// The pause before the second attempt. It doubles with each further one.
const BACK_OFF: Duration = Duration::from_secs(1);

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
    let body = encode(&families, &options.receiver.resource, times);
    drop(families);
    options.receiver.send(body, metrics, until).await
}

impl Receiver {
    /// Sends a request, with attempts until the given time.
    pub(crate) async fn send(
        &self,
        body: Vec<u8>,
        metrics: &MetricsHub,
        until: Instant,
    ) -> anyhow::Result<()> {
        let body = Bytes::from(body);
        let mut pause = BACK_OFF;
        loop {
            let sent = tokio::time::timeout(ATTEMPT, post(self, body.clone())).await;
            let refusal = match sent {
                Ok(Ok(left_out)) => {
                    metrics.count_own(Own::OtlpExports);
                    if let Some(what) = left_out {
                        let Endpoint { host, port, .. } = &self.endpoint;
                        tracing::warn!("metrics: {host}:{port} {what}");
                    }
                    return Ok(());
                }
                Ok(Err(refusal)) => refusal,
                Err(_) => ExportFailure::later("it did not answer in time"),
            };
            metrics.count_own(Own::OtlpFailures);
            let ExportFailure { why, again, after } = refusal;
            let Endpoint { host, port, .. } = &self.endpoint;
            let wait = after.unwrap_or(pause);
            // A receiver may ask for any wait.
            let late = Instant::now().checked_add(wait).is_none_or(|at| at >= until);
            ensure!(again && !late, "cannot export to {host}:{port}: {why}");
            sleep(wait).await;
            pause *= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_usual_path_need_not_be_given() {
        let parse = |url| Endpoint::parse(url, "/v1/metrics").map_err(|error| error.to_string());
        let endpoint = parse("http://localhost:4318").expect("an address");
        assert_eq!((endpoint.port, &*endpoint.path), (4318, "/v1/metrics"));
        let endpoint = parse("http://[::1]:9090/api/v1/otlp/v1/metrics").expect("an address");
        assert_eq!(endpoint.address(), ("::1", 9090));
        assert_eq!(endpoint.path, "/api/v1/otlp/v1/metrics");
        assert_eq!(parse("http://collector").map(|e| e.port), Ok(4318));
        for (url, why) in [("https://a", "TLS"), ("a:1", "http://"), ("ftp://a/", "http://")] {
            assert!(parse(url).is_err_and(|error| error.contains(why)), "{url}");
        }
    }

    #[test]
    fn given_attributes_come_before_ours() {
        let more = vec![("service.name".to_owned(), "shop".to_owned())];
        let resource = Resource { more };
        let names = resource.attributes();
        let names: Vec<_> = names.iter().filter(|(key, _)| *key == "service.name").collect();
        assert_eq!(names, [&("service.name", "shop".to_owned())]);
    }
}
