//! The latest holds of a lock that are over: a wait that ends now was for some of them.

use super::Mode;
use super::event::Caller;
use crate::units::ThreadId;
use std::collections::VecDeque;

/// Holds that a lock remembers, at most, and once all locks together remember much.
pub(super) const MOST: usize = 256;
pub(super) const FEW: usize = 8;

/// A time in which a thread held the lock.
#[derive(Clone, Copy, Debug)]
pub(super) struct PastHold {
    pub(super) thread: ThreadId,
    pub(super) mode: Mode,
    pub(super) caller: Caller,
    pub(super) since: u64,
    pub(super) until: u64,
}

impl PastHold {
    /// Returns how long it kept a thread waiting that wanted the lock in this way from `since` to
    /// `until`; none if it did not.
    pub(super) fn kept_waiting(
        &self,
        thread: ThreadId,
        mode: Mode,
        (since, until): (u64, u64),
    ) -> Option<u64> {
        let excludes = self.mode == Mode::Exclusive || mode == Mode::Exclusive;
        let (from, to) = (self.since.max(since), self.until.min(until));
        (excludes && self.thread != thread && from < to).then(|| to - from)
    }
}

#[derive(Debug, Default)]
pub(super) struct History {
    /// In order of their ends.
    holds: VecDeque<PastHold>,
    /// The end of the last one that is forgotten.
    forgotten: u64,
}

impl History {
    /// Adds the latest hold. Returns by how many there are more than before.
    pub(super) fn push(&mut self, hold: PastHold, remember_few: bool) -> usize {
        let before = self.holds.len();
        let most = if remember_few { FEW } else { MOST };
        while self.holds.len() >= most
            && let Some(oldest) = self.holds.pop_front()
        {
            self.forgotten = oldest.until;
        }
        self.holds.push_back(hold);
        self.holds.len().saturating_sub(before)
    }

    /// Returns the holds that ended after this time, the latest first.
    pub(super) fn since(&self, time: u64) -> impl Iterator<Item = &PastHold> {
        self.holds.iter().rev().take_while(move |hold| hold.until > time)
    }

    /// Returns whether all holds that ended after this time are known.
    pub(super) fn is_whole_since(&self, time: u64) -> bool {
        self.forgotten <= time
    }
}
