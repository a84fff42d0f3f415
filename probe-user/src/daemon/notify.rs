//! Tells the service manager, if there is one, how the daemon is.

use sd_notify::NotifyState;
use std::time::{Duration, Instant};

/// The manager, which restarts a daemon that is silent for too long.
pub(super) struct Manager {
    /// The time between signs of life.
    pause: Option<Duration>,
    next: Instant,
}

impl Manager {
    pub(super) fn new() -> Self {
        let pause = sd_notify::watchdog_enabled().map(|longest| longest / 3);
        Self { pause, next: Instant::now() }
    }

    pub(super) fn ready(&self, status: &str) {
        tell(&[NotifyState::Ready, NotifyState::Status(status)]);
    }

    pub(super) fn reloading(&self) {
        if let Ok(now) = NotifyState::monotonic_usec_now() {
            tell(&[NotifyState::Reloading, now]);
        }
    }

    pub(super) fn ending(&self, longest: Duration) {
        let micros = u32::try_from(longest.as_micros()).unwrap_or(u32::MAX);
        tell(&[NotifyState::Stopping, NotifyState::ExtendTimeoutUsec(micros)]);
    }

    /// Sends a sign of life if one is due. Returns when the next one is.
    pub(super) fn live(&mut self) -> Option<Instant> {
        let pause = self.pause?;
        let now = Instant::now();
        if now >= self.next {
            tell(&[NotifyState::Watchdog]);
            self.next = now + pause;
        }
        Some(self.next)
    }
}

fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::warn!("the service manager is not told: {error}");
    }
}
