//! Waits for the entry handlers that run.
//!
//! A call gets its return probe when its entry handler has ended. A handler that began before its process
//! was forgotten may do so after a sweep has listed the thread. The kernel waits for all running handlers
//! when it removes a probe, wherever that is. So one of our own is placed and removed.

use crate::bpf::{features::OwnPlace, machine::clock::now};
use std::{
    sync::{Mutex, PoisonError},
    thread::sleep,
    time::Duration,
};

/// Where the kernel cannot be asked: a handler takes microseconds, and does not sleep.
const INSTEAD: Duration = Duration::from_millis(100);

/// The time from before which no handler runs.
#[derive(Default)]
pub(super) struct Handlers {
    gone_before: Mutex<u64>,
}

impl Handlers {
    /// Waits until no handler runs that began before this time, which has passed.
    pub(super) fn wait_for_those_before(&self, time: u64) {
        let mut gone_before = self.gone_before.lock().unwrap_or_else(PoisonError::into_inner);
        if *gone_before >= time {
            return;
        }
        let begun = now().0;
        match OwnPlace::find().and_then(|place| place.probe()) {
            // The kernel waits here.
            Ok(link) => drop(link),
            Err(_) => sleep(INSTEAD),
        }
        *gone_before = begun;
    }
}
