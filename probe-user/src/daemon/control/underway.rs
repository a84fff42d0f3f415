//! Tracks recordings that a client waits for: they must end before the daemon does.

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
    /// True if no more recordings may begin.
    is_over: bool,
}

/// A running recording. It is dropped after its answer.
pub(super) struct One<'a>(&'a Underway);

impl Underway {
    /// Registers a recording that `stop` ends early. Returns `None` if it is too late.
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

    /// Ends all, and waits until they have ended or the time is up.
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
