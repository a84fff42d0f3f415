//! Callers of a lock: how long each waited for it, and kept others waiting.

use super::event::Caller;
use std::collections::{BTreeSet, HashMap};

/// Callers of one lock that are told apart, at most, and once all locks together know many. Those that
/// come later are one, [`Caller::Unknown`].
pub(super) const MOST: usize = 256;
pub(super) const FEW: usize = 8;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallerSums {
    /// Its contended calls, and those that have not ended.
    pub(crate) waits: u64,
    pub(crate) wait_ns: u64,
    /// The waits of others that its holds were part of.
    pub(crate) blocked: u64,
    pub(crate) blocked_ns: u64,
}

#[derive(Debug, Default)]
pub(super) struct Callers(HashMap<Caller, CallerSums>);

impl Callers {
    pub(super) fn waited(&mut self, caller: Caller, duration: u64, tell_few: bool) {
        let sums = self.of(caller, tell_few);
        sums.waits += 1;
        sums.wait_ns = sums.wait_ns.saturating_add(duration);
    }

    /// Adds that a wait was for this caller for so long.
    pub(super) fn kept_waiting(&mut self, caller: Caller, duration: u64, tell_few: bool) {
        let sums = self.of(caller, tell_few);
        sums.blocked += 1;
        sums.blocked_ns = sums.blocked_ns.saturating_add(duration);
    }

    fn of(&mut self, caller: Caller, tell_few: bool) -> &mut CallerSums {
        let most = if tell_few { FEW } else { MOST };
        let is_known = self.0.len() < most || self.0.contains_key(&caller);
        self.0.entry(if is_known { caller } else { Caller::Unknown }).or_default()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns this many that waited longest, and as many that kept others waiting longest, in the order
    /// of both times.
    pub(super) fn into_longest(self, most: usize) -> Vec<(Caller, CallerSums)> {
        let mut all: Vec<_> = self.0.into_iter().collect();
        let sort_by = |all: &mut Vec<(Caller, CallerSums)>, time: fn(&CallerSums) -> u64| {
            all.sort_by(|(a, x), (b, y)| time(y).cmp(&time(x)).then_with(|| a.cmp(b)));
        };
        let mut longest = BTreeSet::new();
        for time in [|of: &CallerSums| of.wait_ns, |of: &CallerSums| of.blocked_ns] {
            sort_by(&mut all, time);
            let some = all.iter().take(most).filter(|(_, sums)| time(sums) > 0);
            longest.extend(some.map(|(caller, _)| *caller));
        }
        all.retain(|(caller, _)| longest.contains(caller));
        sort_by(&mut all, |of| of.wait_ns.saturating_add(of.blocked_ns));
        all
    }
}
