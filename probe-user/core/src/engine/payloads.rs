//! Values beside events, from their release until the chunk of their call is made.
//!
//! Calls know nothing of them, so a call without values costs nothing more. A payload has the time at
//! which its call began. It waits while that call is open, and goes into the chunk made after.

use crate::engine::threads::Thread;
use crate::recording::payloads::{MOST_PAYLOADS, OfThread};
use crate::units::ThreadId;
use crate::values::RingPayload;
use std::collections::HashSet;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Payloads {
    held: Vec<OfThread>,
    /// As many as there was no room for here, and in the rings.
    dropped: u64,
    lost_in_rings: u64,
    /// Of both, those that chunks tell of.
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

    /// Takes those up to `to` whose calls are not open in any of these threads.
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

    /// How many were lost since the start.
    pub(crate) fn lost(&self) -> u64 {
        self.dropped.saturating_add(self.lost_in_rings)
    }

    /// How many were lost since the last time.
    pub(crate) fn take_lost(&mut self) -> u64 {
        let lost = self.lost();
        lost.saturating_sub(std::mem::replace(&mut self.told, lost))
    }
}
