//! A last look at the traced processes, when all probes are gone.

use super::Session;
use crate::{
    bpf,
    heal::{self, InUse},
};
use std::time::{Duration, Instant};

impl Session {
    /// Removes what the kernel may have left of the probes. Nothing is left if they were taken away
    /// in the usual way.
    pub(crate) fn verify(&self) {
        /// The limit for children that are followed: each look takes a few milliseconds.
        const MOST: usize = 64;
        /// No look begins after this time.
        const LIMIT: Duration = Duration::from_secs(5);
        /// Time limit for the removal from one of them.
        const EACH: Duration = Duration::from_secs(3);
        bpf::wait_for_healing();
        let until = Instant::now() + LIMIT;
        let mut in_use = InUse::default();
        let pids = self.target.alive();
        for pid in pids.into_iter().take(MOST).take_while(|_| Instant::now() < until) {
            match heal::process(pid, EACH, Some(&mut in_use)) {
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
