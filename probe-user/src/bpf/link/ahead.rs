//! Has the kernel ready before the first probes are placed.
//!
//! For a probe that comes some time after the last one, the kernel waits until all CPUs have passed a
//! point of rest (RCU): 10 to 25 ms. Just afterwards, further probes take microseconds. So while its
//! programs are loaded, ctrace probes a function of its own that nobody calls, in its own process, again
//! and again.

use crate::bpf::features::OwnPlace;
use std::{
    sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel},
    thread,
    time::Duration,
};

/// Shorter than the kernel stays ready: the time of at least one such wait.
const PAUSE: Duration = Duration::from_millis(6);
/// The most probes, all in place at the same time. Loading takes longer than that only on a machine that
/// is busy with other things.
const MOST: usize = 24;

/// Keeps the kernel ready until it is dropped.
pub(in crate::bpf) struct Ahead {
    _until: Sender<()>,
}

impl Ahead {
    /// Begins, on a thread of its own. `None` where it cannot: then the first probes take longer.
    pub(in crate::bpf) fn begin() -> Option<Self> {
        let (_until, over) = channel();
        let thread = thread::Builder::new().name("ctrace-ahead".into()).stack_size(256 << 10);
        thread.spawn(move || stay_ready(&over)).ok()?;
        Some(Self { _until })
    }
}

fn stay_ready(over: &Receiver<()>) {
    let Ok(place) = OwnPlace::find() else { return };
    let mut links = Vec::new();
    while links.len() < MOST
        && let Ok(link) = place.probe()
    {
        links.push(link);
        if over.recv_timeout(PAUSE) != Err(RecvTimeoutError::Timeout) {
            break;
        }
    }
    // The kernel waits for each removal; side by side, they wait for the same.
    thread::scope(|scope| {
        for link in links {
            let remove = thread::Builder::new().stack_size(64 << 10);
            // Without a thread, the failed start has dropped the link.
            let _ = remove.spawn_scoped(scope, move || drop(link));
        }
    });
}
