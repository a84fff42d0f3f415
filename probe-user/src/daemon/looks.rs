//! Keeps finished intervals for clients that look at a session repeatedly, so that they learn of an
//! interval that ends between two looks. Without such clients, nothing is kept.

use crate::session::keep::live::Snapshot;
use ctrace_core::units::Nanos;
use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The time after which a client counts as gone. It exceeds the default interval.
const PATIENCE: Nanos = Nanos(100_000_000_000);
/// The number of newest intervals to keep. Short ones end faster than anybody looks.
const MOST: usize = 16;

/// The looks at one session.
#[derive(Default)]
pub(crate) struct Looks(Mutex<EndedIntervals>);

#[derive(Default)]
struct EndedIntervals {
    last_look: Option<Nanos>,
    /// The kept intervals, from old to new.
    ended: VecDeque<Arc<Snapshot>>,
}

impl Looks {
    /// Records a look.
    pub(crate) fn look(&self, now: Nanos) {
        self.lock().last_look = Some(now);
    }

    /// Returns whether another look is expected.
    pub(crate) fn is_wanted(&self, now: Nanos) -> bool {
        self.lock().is_wanted(now)
    }

    /// Keeps a finished interval, if another look is expected.
    pub(crate) fn keep(&self, snapshot: Snapshot, now: Nanos) {
        let mut kept = self.lock();
        if !kept.is_wanted(now) {
            *kept = EndedIntervals::default();
            return;
        }
        kept.ended.push_back(Arc::new(snapshot));
        let is_old = |kept: &EndedIntervals| {
            let first = kept.ended.front();
            first.is_some_and(|first| now.since(first.report.end_ns) > PATIENCE)
        };
        while kept.ended.len() > MOST || is_old(&kept) {
            kept.ended.pop_front();
        }
    }

    /// Returns the kept intervals that ended after `since` and not after `until`.
    pub(crate) fn ended(&self, since: Nanos, until: Nanos) -> Vec<Arc<Snapshot>> {
        let kept = self.lock();
        let is_between = |ended: &&Arc<Snapshot>| {
            let end = ended.report.end_ns;
            end > since && end <= until
        };
        kept.ended.iter().filter(is_between).cloned().collect()
    }

    fn lock(&self) -> MutexGuard<'_, EndedIntervals> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EndedIntervals {
    fn is_wanted(&self, now: Nanos) -> bool {
        self.last_look.is_some_and(|last| now.since(last) <= PATIENCE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::daemon::metrics::fixtures::snapshot;

    const SECOND: u64 = 1_000_000_000;

    fn at(second: u64) -> Nanos {
        Nanos(second * SECOND)
    }

    /// Returns the ends of the intervals for a client that knows all up to `since`.
    fn ends(looks: &Looks, since: u64, until: u64) -> Vec<u64> {
        let ended = looks.ended(at(since), at(until));
        ended.iter().map(|ended| ended.report.end_ns.0 / SECOND).collect()
    }

    fn keep(looks: &Looks, from: u64, to: u64) {
        looks.keep(snapshot(from * SECOND, to * SECOND, &[]), at(to));
    }

    #[test]
    fn intervals_are_kept_while_somebody_looks() {
        let looks = Looks::default();
        keep(&looks, 0, 60);
        looks.look(at(61));
        keep(&looks, 60, 120);
        looks.look(at(121));
        keep(&looks, 120, 180);
        assert_eq!(ends(&looks, 61, 180), [120, 180]);
        assert_eq!(ends(&looks, 121, 180), [180]);
        assert_eq!(ends(&looks, 121, 179), [0; 0]);
        assert!(looks.is_wanted(at(221)) && !looks.is_wanted(at(222)));
        keep(&looks, 180, 240);
        assert_eq!(ends(&looks, 0, 300), [0; 0]);
    }

    #[test]
    fn so_many_are_kept_and_so_old() {
        let looks = Looks::default();
        looks.look(at(0));
        (0..100).for_each(|second| keep(&looks, second, second + 1));
        assert_eq!(ends(&looks, 0, 100).len(), MOST);
        looks.look(at(100));
        keep(&looks, 100, 190);
        assert_eq!(ends(&looks, 0, 200).first(), Some(&90));
    }
}
