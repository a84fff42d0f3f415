//! What each caller of a lock waited for it, and how long it kept others waiting.

use super::event::Caller;
use std::collections::HashMap;

/// Callers of one lock that are told apart. Those that come later are one, [`Caller::Unknown`].
const MOST: usize = 256;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallerSums {
    /// Its contended calls.
    pub(crate) waits: u64,
    pub(crate) wait_ns: u64,
    /// The waits of others that its holds were part of.
    pub(crate) blocked: u64,
    pub(crate) blocked_ns: u64,
}

#[derive(Debug, Default)]
pub(super) struct Callers(HashMap<Caller, CallerSums>);

impl Callers {
    pub(super) fn waited(&mut self, caller: Caller, duration: u64) {
        let sums = self.of(caller);
        sums.waits += 1;
        sums.wait_ns = sums.wait_ns.saturating_add(duration);
    }

    pub(super) fn kept_waiting(&mut self, caller: Caller, duration: u64) {
        let sums = self.of(caller);
        sums.blocked += 1;
        sums.blocked_ns = sums.blocked_ns.saturating_add(duration);
    }

    fn of(&mut self, caller: Caller) -> &mut CallerSums {
        let is_known = self.0.len() < MOST || self.0.contains_key(&caller);
        self.0.entry(if is_known { caller } else { Caller::Unknown }).or_default()
    }

    /// Returns all, in the order of what they waited and kept others waiting.
    pub(super) fn into_sorted(self) -> Vec<(Caller, CallerSums)> {
        let mut all: Vec<_> = self.0.into_iter().collect();
        let weight = |sums: &CallerSums| sums.wait_ns.saturating_add(sums.blocked_ns);
        all.sort_by(|(a, x), (b, y)| weight(y).cmp(&weight(x)).then_with(|| a.cmp(b)));
        all
    }
}
