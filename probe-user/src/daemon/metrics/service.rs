//! The thread that answers scrapes and exports: one for both, apart from all that traces.

use super::{http, hub::Metrics, otlp};
use anyhow::{Context as _, bail};
use std::{
    net::{SocketAddr, TcpListener},
    thread::JoinHandle,
    time::{Duration, SystemTime},
};
use tokio::sync::oneshot;

/// Only this machine can reach it, unless somebody asks for more.
pub const LISTEN: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST), 9779);
/// For the last export, after which the daemon ends.
const LAST_EXPORT: Duration = Duration::from_secs(3);

#[derive(Clone, Debug)]
pub struct Options {
    /// Nowhere, if nobody scrapes.
    pub listen: Option<SocketAddr>,
    pub otlp: Option<otlp::Options>,
}

impl Default for Options {
    fn default() -> Self {
        Self { listen: Some(LISTEN), otlp: None }
    }
}

/// Runs until it is dropped, which exports a last time.
pub struct Service {
    address: Option<SocketAddr>,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Service {
    pub fn start(options: Options, metrics: Metrics) -> anyhow::Result<Self> {
        let listener = options.listen.map(bind).transpose()?;
        let address = listener.as_ref().map(|listener| listener.local_addr()).transpose()?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot start the event loop of the metrics")?;
        let (stop, stopped) = oneshot::channel();
        let main = move || runtime.block_on(main(listener, options.otlp, metrics, stopped));
        let thread = std::thread::Builder::new().name("metrics".into()).spawn(main);
        let thread = thread.context("cannot start the thread of the metrics")?;
        if let Some(address) = address {
            tracing::info!("metrics: http://{address}/metrics");
        }
        Ok(Self { address, stop: Some(stop), thread: Some(thread) })
    }

    /// Where it listens, with the port that the kernel chose for port 0.
    pub fn address(&self) -> Option<SocketAddr> {
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

fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    let listener = match TcpListener::bind(address) {
        Ok(listener) => listener,
        Err(error) => bail!(
            "cannot listen for scrapes on {address}: {error}; `listen` in [metrics] of the \
             configuration takes another address"
        ),
    };
    listener.set_nonblocking(true)?;
    Ok(listener)
}

async fn main(
    listener: Option<TcpListener>,
    otlp: Option<otlp::Options>,
    metrics: Metrics,
    stopped: oneshot::Receiver<()>,
) {
    let start = SystemTime::now();
    let server = listener.map(tokio::net::TcpListener::from_std);
    match server {
        Some(Ok(listener)) => drop(tokio::spawn(http::serve(listener, metrics.clone()))),
        Some(Err(error)) => tracing::warn!("cannot answer scrapes: {error}"),
        None => {}
    }
    if let Some(options) = &otlp {
        tokio::spawn(otlp::run(metrics.clone(), options.clone(), start));
    }
    // Its other end is dropped, never used.
    let _ = stopped.await;
    if let Some(options) = &otlp {
        let until = tokio::time::Instant::now();
        let export = otlp::export(&metrics, options, start, until);
        match tokio::time::timeout(LAST_EXPORT, export).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!("metrics: {error:#}"),
            Err(_) => tracing::warn!("metrics: the last export took too long"),
        }
    }
}
