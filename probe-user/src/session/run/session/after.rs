//! A last look at what was traced, when all probes are gone.

use super::Session;
use crate::heal;
use std::time::{Duration, Instant};

impl Session {
    /// Removes what the kernel may have left of the probes. Nothing can be left where they were taken away
    /// in peace.
    pub(crate) fn verify(&self) {
        /// Of the children that are followed: each look takes a few milliseconds.
        const MOST: usize = 64;
        /// No look is begun with afterwards.
        const LIMIT: Duration = Duration::from_secs(5);
        /// For removing from one of them.
        const EACH: Duration = Duration::from_secs(3);
        let until = Instant::now() + LIMIT;
        let pids = self.target.alive();
        for pid in pids.into_iter().take(MOST).take_while(|_| Instant::now() < until) {
            match heal::process(pid, EACH) {
                Ok(outcome) => {
                    if let Some(line) = outcome.removal() {
                        tracing::warn!("process {}: {line}", pid.0);
                    }
                }
                // Most have ended meanwhile.
                Err(error) => tracing::debug!("{error}"),
            }
        }
    }
}
