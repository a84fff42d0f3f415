//! The number of threads that wait for a lock, over time.

use super::follow;
use crate::locks::event::LockId;
use crate::locks::ledger::Ledger;
use crate::locks::waits::{LockWait, Waits};
use crate::recording::replay::count::count;
use crate::recording::replay::lens::Lens;
use crate::recording::{ChunkEntry, Recording};
use crate::units::Pid;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A lock that threads waited for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct WaitedLock {
    pub(crate) pid: Pid,
    /// As reports have it. Of several that a process calls the same, each has its address behind it.
    pub(crate) name: String,
}

/// A moment from which on another number of threads waits for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WaitChange {
    pub(crate) time: u64,
    /// The place among the locks.
    pub(crate) lock: usize,
    pub(crate) waiting: u64,
}

/// The waits for all locks.
#[derive(Debug, Default)]
pub(crate) struct LockWaits {
    pub(crate) locks: Vec<WaitedLock>,
    /// In order of time.
    pub(crate) changes: Vec<WaitChange>,
    /// What is missing, by names for readers.
    pub(crate) told: Vec<(&'static str, u64)>,
}

/// Returns the waits that the view `locks` counts. Only what happens in the window counts; waits that
/// began before are shown from its start on.
pub(crate) fn lock_waits(
    recording: &Recording,
    lens: &Lens<'_>,
    chunks: &[ChunkEntry],
) -> LockWaits {
    // All calls of the chosen threads count, which no other call decides.
    let counted = count(recording, lens, &[]);
    let Some(mut followed) = follow(recording, lens, chunks, &counted, Ledger::with_each_wait())
    else {
        return LockWaits::default();
    };
    let events = followed.ledger.beyond;
    let Waits { each, left_out, left_out_from, without_end } =
        followed.ledger.each_wait.take().unwrap_or_default();
    let facts = followed.ledger.finish();
    let sum = |of: fn(&crate::locks::ledger::LockSums) -> u64| {
        facts.iter().map(|lock| of(&lock.sums)).fold(0, u64::saturating_add)
    };
    let mut told = vec![
        ("lock_calls_unclear", sum(|sums| sums.unclear)),
        ("lock_calls_with_forgotten_holders", sum(|sums| sums.partly_blamed)),
        ("lock_events_left_out", events),
        ("lock_lossy_stretches", followed.lossy_stretches),
        ("lock_waits_left_out", left_out),
        ("lock_waits_without_end", without_end.saturating_add(followed.unknown_waits)),
    ];
    told.extend(left_out_from.map(|from| ("lock_waits_left_out_from_ns", from)));
    let places: BTreeMap<LockId, usize> = each.iter().map(|wait| (wait.lock, 0)).collect();
    let places: BTreeMap<LockId, usize> = places.into_keys().zip(0..).collect();
    let named = places.keys().map(|lock| (*lock, followed.names.of(*lock))).collect();
    let changes = changes(&each, &places, lens.window.start);
    LockWaits { locks: told_apart(named), changes, told }
}

/// Names locks so that no two of a process have the same name.
fn told_apart(named: Vec<(LockId, Arc<str>)>) -> Vec<WaitedLock> {
    let mut same: BTreeMap<(Pid, &str), u64> = BTreeMap::new();
    for (lock, name) in &named {
        *same.entry((lock.pid, name)).or_default() += 1;
    }
    let one = |(lock, name): &(LockId, Arc<str>)| {
        let name = match same[&(lock.pid, &**name)] {
            1 => name.to_string(),
            _ => format!("{name} {:#x}", lock.address),
        };
        WaitedLock { pid: lock.pid, name }
    };
    named.iter().map(one).collect()
}

/// Returns the numbers of waiting threads from `start` on.
fn changes(waits: &[LockWait], places: &BTreeMap<LockId, usize>, start: u64) -> Vec<WaitChange> {
    let mut ends: Vec<(u64, usize, bool)> = Vec::with_capacity(2 * waits.len());
    for LockWait { lock, since, until } in waits {
        let lock = places[lock];
        ends.push(((*since).max(start), lock, true));
        ends.extend(until.map(|until| (until.max(start), lock, false)));
    }
    ends.sort_unstable();
    let mut waiting = vec![0_u64; places.len()];
    let mut changes = Vec::new();
    for of in ends.chunk_by(|a, b| (a.0, a.1) == (b.0, b.1)) {
        let (time, lock, _) = of[0];
        let begun = of.iter().filter(|(.., begins)| *begins).count() as u64;
        let now = (waiting[lock] + begun).saturating_sub(of.len() as u64 - begun);
        if now != waiting[lock] {
            waiting[lock] = now;
            changes.push(WaitChange { time, lock, waiting: now });
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lock(address: u64) -> LockId {
        LockId { pid: Pid(7), address }
    }

    fn wait(address: u64, since: u64, until: u64) -> LockWait {
        LockWait { lock: lock(address), since, until: (until > 0).then_some(until) }
    }

    #[test]
    fn threads_are_counted_while_they_wait() {
        let places = BTreeMap::from([(lock(0x50), 0), (lock(0x60), 1)]);
        let waits = [
            wait(0x50, 100, 400),
            wait(0x50, 200, 300),
            // One begins as another ends: as many wait as before.
            wait(0x50, 300, 350),
            wait(0x60, 250, 250),
            wait(0x60, 120, 0),
            // It began before the part that is asked for.
            wait(0x60, 10, 140),
        ];
        let found: Vec<_> = changes(&waits, &places, 90)
            .iter()
            .map(|change| (change.time, change.lock, change.waiting))
            .collect();
        let expected = [
            (90, 1, 1),
            (100, 0, 1),
            (120, 1, 2),
            (140, 1, 1),
            (200, 0, 2),
            (350, 0, 1),
            (400, 0, 0),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn locks_of_one_name_have_their_addresses() {
        let other = LockId { pid: Pid(8), address: 0x50 };
        let named =
            [(lock(0x50), "heap"), (lock(0x60), "heap"), (lock(0x70), "a"), (other, "heap")];
        let named = named.map(|(lock, name)| (lock, Arc::from(name))).into();
        let names: Vec<_> = told_apart(named).into_iter().map(|lock| lock.name).collect();
        assert_eq!(names, ["heap 0x50", "heap 0x60", "a", "heap"]);
    }
}
