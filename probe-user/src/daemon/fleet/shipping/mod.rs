//! Has the files of the folder sent to an object store, by `ctrace-store`.
//!
//! This is a program of its own ([`program`]): root's daemon speaks no HTTPS. It runs without any
//! capability, and knows of the daemon's environment what is about stores ([`child`]). Its lines
//! ([`lines`]) tell what happens. One thread starts it, starts it again when it has ended, and ends it.
//! Nothing waits for it: files that are not sent stay in their folder.

mod child;
mod lines;
mod others;
mod program;
mod reasons;
mod worker;

use crate::daemon::{config, metrics::hub::MetricsHub};
use ctrace_core::fleet::partition;
use std::{
    io,
    path::PathBuf,
    process::ExitStatus,
    sync::{
        Mutex, PoisonError,
        mpsc::{Sender, SyncSender, channel, sync_channel},
    },
};

pub(in crate::daemon) use program::refusal;

/// The key of a machine's folder.
const HOST: &str = "host";

/// Limit of orders and lines that wait for the thread. A child that tells more has to wait.
const MOST_ORDERS: usize = 64;

/// The way to the thread.
pub(super) struct Shipping(Mutex<SyncSender<Order>>);

/// A folder, and the store that its files go to.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wanted {
    folder: PathBuf,
    /// This machine's folder in those of the tables.
    host: String,
    store: String,
}

/// A job of the thread.
enum Order {
    Configure(Option<Wanted>),
    /// A line of the child with this number.
    Told(u64, lines::Line),
    /// The child with this number has ended, or could not be started.
    Ended(u64, io::Result<ExitStatus>),
    /// End the child, drop the sender and end.
    Finish(Sender<()>),
}

impl Shipping {
    pub(super) fn start(config: &config::Fleet, metrics: &MetricsHub) -> io::Result<Self> {
        let (orders, coming) = sync_channel(MOST_ORDERS);
        let mut worker = worker::Worker::new(metrics.clone(), orders.clone(), coming);
        std::thread::Builder::new().name("shipping".into()).spawn(move || worker.run())?;
        let shipping = Self(Mutex::new(orders));
        shipping.configure(config);
        Ok(shipping)
    }

    /// Goes on as another configuration says. What stays the same is not disturbed.
    pub(super) fn configure(&self, config: &config::Fleet) {
        self.order(Order::Configure(wanted(config)));
    }

    /// Has the last files sent, for a bounded time.
    pub(super) fn finish(&self) {
        let (done, end) = channel();
        self.order(Order::Finish(done));
        // The thread bounds the time. Nothing is sent: the sender goes when it ends.
        let _ = end.recv();
    }

    fn order(&self, order: Order) {
        let orders = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The thread ends with the daemon only.
        let _ = orders.send(order);
    }
}

fn wanted(config: &config::Fleet) -> Option<Wanted> {
    let (folder, store) = (config.folder.clone()?, config.store.clone()?);
    // As `--host` of ctrace-store has it.
    let host = partition::folder(HOST, &super::writer::host(config));
    let host = host.strip_prefix(HOST)?.strip_prefix('=')?.to_owned();
    Some(Wanted { folder, host, store })
}
