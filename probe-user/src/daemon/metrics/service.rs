//! The thread that answers scrapes and exports, apart from all that traces.

use super::{
    hosts::Hosts,
    http,
    hub::MetricsHub,
    listen::{Bound, Listen},
    otlp,
};
use anyhow::Context as _;
use std::{
    io,
    net::SocketAddr,
    thread::JoinHandle,
    time::{Duration, SystemTime},
};
use tokio::sync::oneshot;

/// The default address, which only this machine can reach.
pub(crate) const LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9779);
/// Time limit of the last export, after which the daemon ends.
const LAST_EXPORT: Duration = Duration::from_secs(3);

#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// `None` if nobody scrapes.
    pub listen: Option<Listen>,
    /// The group that may use the socket besides root.
    pub group: Option<u32>,
    /// Names under which the address may be asked.
    pub hosts: Vec<String>,
    pub otlp: Option<otlp::Options>,
}

impl Default for Options {
    fn default() -> Self {
        Self { listen: Some(Listen::Address(LISTEN)), group: None, hosts: Vec::new(), otlp: None }
    }
}

/// The running service. On drop, it exports a last time and ends.
pub(crate) struct Service {
    #[cfg(test)]
    address: Option<SocketAddr>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    pub(crate) fn start(options: Options, metrics: MetricsHub) -> anyhow::Result<Self> {
        let bound = options.listen.as_ref().map(|listen| listen.bind(options.group)).transpose()?;
        let (address, hosts) =
            (bound.as_ref().and_then(Bound::address), Hosts::new(&options.hosts));
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot start the event loop of the metrics")?;
        let (stop, stopped) = oneshot::channel();
        let main = move || {
            let server = bound.map(|bound| http::serve(bound, hosts, metrics.clone()));
            runtime.block_on(main(server, options.otlp, metrics, stopped));
            // A name that nobody resolves would hold up the end.
            runtime.shutdown_background();
        };
        let thread = std::thread::Builder::new().name("metrics".into()).spawn(main);
        let thread = thread.context("cannot start the thread of the metrics")?;
        if let Some(address) = address {
            tracing::info!("metrics: http://{address}/metrics");
        }
        Ok(Self {
            #[cfg(test)]
            address,
            stop: Some(stop),
            thread: Some(thread),
        })
    }

    /// Returns its address, with the port that the kernel chose for port 0.
    #[cfg(test)]
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        self.address
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        drop(self.stop.take());
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            tracing::warn!("the thread of the metrics panicked");
        }
    }
}

async fn main(
    server: Option<impl Future<Output = io::Result<()>> + Send + 'static>,
    otlp: Option<otlp::Options>,
    metrics: MetricsHub,
    stopped: oneshot::Receiver<()>,
) {
    let start = SystemTime::now();
    if let Some(server) = server {
        tokio::spawn(async {
            if let Err(error) = server.await {
                tracing::warn!("cannot answer scrapes: {error}");
            }
        });
    }
    if let Some(options) = &otlp {
        tokio::spawn(otlp::run(metrics.clone(), options.clone(), start));
    }
    // The other end is dropped, never used.
    let _ = stopped.await;
    if let Some(options) = &otlp {
        let until = tokio::time::Instant::now() + LAST_EXPORT;
        let export = otlp::send_metrics(&metrics, options, start, until);
        match tokio::time::timeout(LAST_EXPORT, export).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!("metrics: {error:#}"),
            Err(_) => tracing::warn!("metrics: the last export took too long"),
        }
    }
}
