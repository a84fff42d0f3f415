//! Recordings that somebody has asked for and waits for: they must end before the daemon does.

use crate::session::keep::live::Command;
use std::{
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tokio::sync::mpsc::UnboundedSender;

#[derive(Default)]
pub(super) struct Underway {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Default)]
struct State {
    stops: Vec<UnboundedSender<Command>>,
    count: usize,
    /// Nobody waits for what begins now.
    is_over: bool,
}

/// A recording, until this is dropped: when it has been answered for.
pub(super) struct One<'a>(&'a Underway);

impl Underway {
    /// A recording begins, which ends early when `stop` is told to; nothing if it is too late.
    pub(super) fn begin(&self, stop: UnboundedSender<Command>) -> Option<One<'_>> {
        let mut state = self.lock();
        if state.is_over {
            return None;
        }
        state.count += 1;
        state.stops.retain(|stop| !stop.is_closed());
        state.stops.push(stop);
        Some(One(self))
    }

    /// Ends all, and waits until they have ended, or for so long.
    pub(super) fn finish(&self, patience: Duration) {
        let mut state = self.lock();
        state.is_over = true;
        for stop in &state.stops {
            let _ = stop.send(Command::Stop);
        }
        let waited = self.ended.wait_timeout_while(state, patience, |state| state.count > 0);
        drop(waited);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for One<'_> {
    fn drop(&mut self) {
        self.0.lock().count -= 1;
        self.0.ended.notify_all();
    }
}
