//! `ctrace ui`: serves the timeline of a recording, or of a session that goes on ([`shown`]), to a
//! browser on this machine.
//!
//! A large recording is shown before all of its calls were read ([`draft`]), and its timeline is kept for the next
//! time ([`saved`]).
//!
//! Whoever knows the address can read the recording, so it has a random token, and [`gate`] refuses
//! all else: other tokens, other host names (DNS rebinding), requests from other pages. [`http`] has
//! the limits on connections, [`api`] the answers ([`asked`]): pictures ([`picture`]), single calls
//! ([`call`]), reports of a range ([`range`]), and searches. [`page`] has the files of the page,
//! and [`site`] which of all these a path leads to: two recordings can be compared.
//!
//! The page computes nothing about calls, and the server draws nothing.

mod answer;
mod api;
mod asked;
#[cfg(test)]
mod browser_tests;
#[cfg(test)]
mod browser_threads_tests;
mod call;
#[cfg(test)]
mod compare_tests;
mod draft;
#[cfg(test)]
mod draft_tests;
#[cfg(test)]
mod frames_tests;
mod gate;
mod http;
#[cfg(test)]
mod life_tests;
#[cfg(test)]
mod live_tests;
mod page;
mod params;
mod picture;
mod points;
#[cfg(test)]
mod points_tests;
mod range;
pub(crate) mod saved;
mod shown;
mod site;
#[cfg(test)]
mod tests;

use crate::session::keep::live_calls::LiveLook;
use anyhow::Context as _;
use api::Api;
use ctrace_core::{
    recording::{Recording, replay::OwnThreads},
    timeline::TimelineError,
};
use gate::Gate;
use page::Page;
use saved::Saved;
use shown::{Shown, Source};
use signal_hook::{
    consts::{SIGINT, SIGTERM},
    iterator::Signals,
};
use site::{Site, Verdicts};
use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener},
    path::{Path, PathBuf},
    sync::Arc,
};
use tokio::sync::oneshot;

/// The number of attempts to find a port that is free for IPv4 and IPv6.
const TRIES: usize = 16;

/// What is served, and where.
pub(crate) struct Options {
    /// The port; 0 lets the kernel choose.
    pub port: u16,
    /// The folder of the page's files, instead of those in the program.
    pub folder: Option<PathBuf>,
    /// The recording's files, as the command line has them. A live page has none.
    pub files: Vec<String>,
    /// The folder for timelines of large recordings, if they are kept.
    pub cache: Option<PathBuf>,
}

/// Why there will be no pictures.
#[derive(Debug, thiserror::Error)]
enum NoTimeline {
    #[error("the recording {0}")]
    Refused(#[from] TimelineError),
    #[error(
        "ctrace failed while it read the recording: please report it, with what `ctrace ui` printed"
    )]
    Failed,
}

/// A server that listens.
pub(crate) struct Server {
    listeners: Vec<TcpListener>,
    gate: Gate,
    site: Site,
    page: Page,
}

impl Server {
    /// Listens, and shows the newest calls of a session.
    pub(crate) fn live(look: LiveLook, options: Options) -> anyhow::Result<Self> {
        let shown = Arc::new(Shown::live());
        let site = Site::One(api(Arc::clone(&shown), &options.files)?);
        let server = Self::new(site, options)?;
        spawn(move || shown.follow(&look))?;
        Ok(server)
    }

    /// Listens, and begins to read the calls of a recording.
    pub(crate) fn start(recording: Recording, options: Options) -> anyhow::Result<Self> {
        let (source, api) = of_recording(recording, &options.files, options.cache.as_deref())?;
        let server = Self::new(Site::One(api), options)?;
        spawn(move || {
            source.sketch();
            source.build();
        })?;
        Ok(server)
    }

    /// Listens, and begins to compare a recording with an older one, which has these files.
    pub(crate) fn compare(
        recording: Recording,
        (old, old_files): (Recording, Vec<String>),
        options: Options,
    ) -> anyhow::Result<Self> {
        let files = [&old_files, &options.files].map(|files| files.join(" + "));
        let cache = options.cache.as_deref();
        let (old, old_api) = of_recording(old, &old_files, cache)?;
        let (new, new_api) = of_recording(recording, &options.files, cache)?;
        let verdicts = Arc::<Verdicts>::default();
        let site = Site::Two { old: old_api, new: new_api, verdicts: Arc::clone(&verdicts) };
        let server = Self::new(site, options)?;
        spawn(move || {
            let both = [&old, &new];
            both.iter().for_each(|source| source.sketch());
            both.iter().for_each(|source| source.build());
            let [old_file, new_file] = files;
            verdicts.find((&old, old_file), (&new, new_file));
        })?;
        Ok(server)
    }

    fn new(site: Site, options: Options) -> anyhow::Result<Self> {
        let (listeners, port) = listen(options.port)?;
        let gate = Gate::new(port)?;
        let page = Page::new(options.folder);
        Ok(Self { listeners, gate, site, page })
    }

    /// Returns the address for a browser.
    pub(crate) fn url(&self) -> String {
        self.gate.url()
    }

    /// Answers until `stop` is used or dropped.
    pub(crate) fn serve(self, stop: oneshot::Receiver<()>) -> anyhow::Result<()> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.context("cannot start the event loop of the server")?;
        let Self { listeners, gate, site, page } = self;
        let served = runtime.block_on(async {
            tokio::select! {
                served = http::serve(listeners, gate, site, page) => served,
                _ = stop => Ok(()),
            }
        });
        // A long report need not end.
        runtime.shutdown_background();
        Ok(served?)
    }
}

fn api(shown: Arc<Shown>, files: &[String]) -> anyhow::Result<Arc<Api>> {
    Ok(Arc::new(Api::new(shown, OwnThreads::start()?, files)))
}

/// Returns the source of a recording, which is not read yet, and the answers about it.
fn of_recording(
    recording: Recording,
    files: &[String],
    cache: Option<&Path>,
) -> anyhow::Result<(Arc<Source>, Arc<Api>)> {
    let cache = cache.filter(|_| shown::is_large(&recording));
    let source = Source::new(recording, cache.and_then(|folder| Saved::find(folder, files)));
    let api = api(Arc::new(Shown::recording(Arc::clone(&source))), files)?;
    Ok((source, api))
}

fn spawn(work: impl FnOnce() + Send + 'static) -> anyhow::Result<()> {
    let thread = std::thread::Builder::new().name("timeline".into());
    thread.spawn(work).context("cannot start a thread")?;
    Ok(())
}

/// Listens on this machine, for IPv4 and IPv6, so that `localhost` is this server whichever a browser asks
/// first. Returns also the port, which is the same for both.
fn listen(port: u16) -> anyhow::Result<(Vec<TcpListener>, u16)> {
    let bind = |address: SocketAddr| {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        io::Result::Ok(listener)
    };
    let mut tries = 1..=TRIES;
    loop {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let refused =
            |address: SocketAddr| format!("cannot listen on {address}: --port takes another port");
        let four = bind(address).with_context(|| refused(address))?;
        let chosen = four.local_addr()?.port();
        let address = SocketAddr::from((Ipv6Addr::LOCALHOST, chosen));
        match bind(address) {
            Ok(six) => return Ok((vec![four, six], chosen)),
            // Another port may be free for both.
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                if port != 0 || tries.next().is_none() {
                    return Err(error).with_context(|| refused(address));
                }
            }
            // The machine has no IPv6.
            Err(_) => return Ok((vec![four], chosen)),
        }
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
