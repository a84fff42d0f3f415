//! `ctrace ui`: serves the timeline of a recording to a browser on this machine.
//!
//! Whoever knows the address can read the recording, so it has a random token, and [`gate`] refuses
//! all else: other tokens, other host names (DNS rebinding), requests from other pages. [`http`] has
//! the limits on connections, [`api`] the answers: pictures ([`picture`]), single calls
//! ([`call`]), reports of a range, and searches. [`page`] has the files of the page.
//!
//! The page computes nothing about calls, and the server draws nothing.

mod answer;
mod api;
mod call;
mod gate;
mod http;
mod page;
mod params;
mod picture;
#[cfg(test)]
mod tests;

use anyhow::Context as _;
use api::Api;
use ctrace_core::{
    recording::{ReadAt, Recording},
    timeline::{Timeline, TimelineError},
};
use gate::Gate;
use page::Page;
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};
use std::{
    net::{Ipv4Addr, SocketAddr, TcpListener},
    path::PathBuf,
    sync::{Arc, OnceLock, atomic::AtomicU64},
};
use tokio::sync::oneshot;

/// What is served, and where.
pub(crate) struct Options {
    /// The port; 0 lets the kernel choose.
    pub port: u16,
    /// The folder of the page's files, instead of those in the program.
    pub folder: Option<PathBuf>,
    /// The recording's files, as the command line has them.
    pub files: Vec<String>,
}

/// A recording and its timeline, as soon as all calls were read.
struct Source<R> {
    recording: Recording<R>,
    timeline: OnceLock<Result<Timeline, TimelineError>>,
    /// The number of calls that were read so far.
    read: AtomicU64,
}

/// A server that listens.
pub(crate) struct Server<R> {
    listener: TcpListener,
    gate: Gate,
    api: Arc<Api<R>>,
    page: Page,
}

impl<R: ReadAt + Send + Sync + 'static> Server<R> {
    /// Listens, and begins to read the calls.
    pub(crate) fn start(recording: Recording<R>, options: Options) -> anyhow::Result<Self> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, options.port));
        let listener = TcpListener::bind(address)
            .with_context(|| format!("cannot listen on {address}: --port takes another port"))?;
        listener.set_nonblocking(true)?;
        let gate = Gate::new(listener.local_addr()?.port())?;
        let page = Page::new(options.folder);
        let (timeline, read) = (OnceLock::new(), AtomicU64::new(0));
        let source = Arc::new(Source { recording, timeline, read });
        let api = Arc::new(Api::new(Arc::clone(&source), &options.files));
        let build = move || {
            let built = Timeline::build(&source.recording, &source.read);
            // Only this thread sets it.
            let _ = source.timeline.set(built);
        };
        std::thread::Builder::new()
            .name("timeline".into())
            .spawn(build)
            .context("cannot start a thread")?;
        Ok(Self { listener, gate, api, page })
    }

    /// Returns the address for a browser.
    pub(crate) fn url(&self) -> String {
        self.gate.url()
    }

    /// Answers until `stop` is used or dropped.
    pub(crate) fn serve(self, stop: oneshot::Receiver<()>) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot start the event loop of the server")?;
        let Self { listener, gate, api, page } = self;
        let served = runtime.block_on(async {
            tokio::select! {
                served = http::serve(listener, gate, api, page) => served,
                _ = stop => Ok(()),
            }
        });
        // A long report need not end.
        runtime.shutdown_background();
        Ok(served?)
    }
}

/// Returns what Ctrl-C and SIGTERM use.
pub(crate) fn stopped_by_signals() -> anyhow::Result<oneshot::Receiver<()>> {
    let (stop, stopped) = oneshot::channel();
    let mut signals = Signals::new([SIGINT, SIGTERM]).context("cannot listen for signals")?;
    let wait = move || {
        signals.forever().next();
        drop(stop);
    };
    let thread = std::thread::Builder::new().name("signals".into());
    thread.spawn(wait).context("cannot start a thread")?;
    Ok(stopped)
}
