//! The name of a lock, which ctrace is told now and then.

use super::events;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The acquisitions from one time that a name is told to the next. An earlier one may be lost.
const PERIOD: u32 = 64;

#[derive(Debug)]
pub(super) struct Name {
    text: &'static str,
    /// The acquisitions since it was told, up to [`PERIOD`]; 0 while nobody listens. Threads that share
    /// a lock may count one acquisition for two: it does not matter.
    since: AtomicU32,
}

impl Name {
    pub(super) const fn new(text: &'static str) -> Name {
        Name { text, since: AtomicU32::new(0) }
    }

    pub(super) const fn text(&self) -> &'static str {
        self.text
    }

    /// Notes an acquisition without a wait, whose event was written or not.
    #[inline(always)]
    pub(super) fn acquired(&self, lock: u64, is_on: bool) {
        if is_on {
            self.count(lock);
        } else if self.since.load(Relaxed) != 0 {
            // Whoever listens next does not know the name.
            self.since.store(0, Relaxed);
        }
    }

    #[cold]
    #[inline(never)]
    fn count(&self, lock: u64) {
        if self.text.is_empty() {
            return;
        }
        let since = self.since.load(Relaxed);
        self.since.store((since + 1) % PERIOD, Relaxed);
        if since == 0 {
            events::name(lock, self.text);
        }
    }

    /// Tells the name after a wait.
    #[inline]
    pub(super) fn waited(&self, lock: u64) {
        if !self.text.is_empty() {
            events::name(lock, self.text);
        }
    }
}
