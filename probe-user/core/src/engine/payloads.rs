//! The values of events, from their release until the chunk of their call is made.
//!
//! Calls do not refer to them, so a call without values costs nothing more. A payload has the start
//! time of its call. It waits while that call is open, and goes into the next chunk.

use crate::engine::threads::Thread;
use crate::recording::payloads::{MOST_PAYLOADS, OfThread};
use crate::units::ThreadId;
use crate::values::RingPayload;
use std::collections::HashSet;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Payloads {
    held: Vec<OfThread>,
    /// The number of payloads that did not fit here; the next field counts those lost in the rings.
    dropped: u64,
    lost_in_rings: u64,
    /// The number of losses, of both kinds, that chunks have reported.
    told: u64,
}

impl Payloads {
    pub(crate) fn set_lost_in_rings(&mut self, payloads: u64) {
        self.lost_in_rings = payloads;
    }

    pub(crate) fn hold(&mut self, thread: ThreadId, payload: RingPayload) {
        match self.held.len() < MOST_PAYLOADS {
            true => self.held.push(OfThread { thread, payload }),
            false => self.dropped += 1,
        }
    }

    /// Removes and returns those up to `to` whose calls are not open in any of these threads.
    pub(crate) fn take_ended<'a>(
        &mut self,
        to: u64,
        threads: impl Iterator<Item = &'a Thread>,
    ) -> Vec<OfThread> {
        if self.held.is_empty() {
            return Vec::new();
        }
        let open: HashSet<(ThreadId, u64)> = threads
            .flat_map(|thread| {
                let id = thread.stacks.account.thread();
                thread.stacks.open().into_iter().map(move |frame| (id, frame.start))
            })
            .collect();
        let is_due = |held: &mut OfThread| {
            let time = held.payload.time.0;
            time <= to && !open.contains(&(held.thread, time))
        };
        self.held.extract_if(.., is_due).collect()
    }

    /// Returns the number of losses since the last time.
    pub(crate) fn take_lost(&mut self) -> u64 {
        let lost = self.dropped.saturating_add(self.lost_in_rings);
        lost.saturating_sub(std::mem::replace(&mut self.told, lost))
    }
}
