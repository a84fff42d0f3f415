//! The single waits for locks, for whoever shows them over time.

use super::event::LockId;

/// Waits that are kept, at most.
pub(crate) const MOST_WAITS: usize = 1 << 20;

/// A wait of one thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LockWait {
    pub(crate) lock: LockId,
    pub(crate) since: u64,
    /// `None` if it has not ended.
    pub(crate) until: Option<u64>,
}

/// The waits of all locks, in the order of their ends.
#[derive(Debug, Default)]
pub(crate) struct Waits {
    pub(crate) each: Vec<LockWait>,
    /// The number of those that found no room, and the earliest beginning of them.
    pub(crate) left_out: u64,
    pub(crate) left_out_from: Option<u64>,
    /// The number of those whose thread has ended in them: when is not known.
    pub(crate) without_end: u64,
}

impl Waits {
    pub(super) fn add(&mut self, wait: LockWait) {
        if self.each.len() < MOST_WAITS {
            self.each.push(wait);
            return;
        }
        self.left_out += 1;
        let from = self.left_out_from.unwrap_or(wait.since);
        self.left_out_from = Some(from.min(wait.since));
    }
}
