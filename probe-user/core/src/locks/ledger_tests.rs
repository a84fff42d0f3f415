//! Tests of what a ledger does not tell apart, or forgets.

use super::event::{Attempt, Caller, Change, LockEvent, LockId};
use super::ledger::{Ledger, LockFacts, MANY_CALLERS, MANY_PAST_HOLDS, MOST_HOLDERS, MOST_LOCKS};
use super::{LockKind, Mode, callers, history};
use crate::units::{Pid, ThreadId};

const LOCK: u64 = 0x5000;

fn event(thread: u32, time: u64, change: Change) -> LockEvent {
    LockEvent {
        time,
        thread: ThreadId(thread),
        lock: LockId { pid: Pid(7), address: LOCK },
        kind: LockKind::RwLock,
        caller: Caller::Address(u64::from(thread)),
        function: "pthread_rwlock_timedwrlock",
        from: Some(u64::from(thread)),
        change,
    }
}

fn taken(thread: u32, mode: Mode, since: u64, time: u64) -> LockEvent {
    event(thread, time, Change::Taken { mode, since, recursive: None, attempt: Attempt::Called })
}

fn released(thread: u32, time: u64) -> LockEvent {
    event(thread, time, Change::Released)
}

fn add(ledger: &mut Ledger, events: impl IntoIterator<Item = LockEvent>) {
    events.into_iter().for_each(|event| ledger.add(&event));
}

#[track_caller]
fn only(ledger: Ledger) -> LockFacts {
    let mut facts = ledger.finish();
    assert_eq!(facts.len(), 1);
    facts.remove(0)
}

/// From 1,000 on, threads take the lock one after the other, for 10 each. Returns when that is over.
fn hold_one_after_the_other(ledger: &mut Ledger, threads: u32, mode: Mode) -> u64 {
    let start = |thread: u32| 1_000 + 10 * u64::from(thread);
    for thread in 0..threads {
        let (from, to) = (start(thread), start(thread + 1));
        add(ledger, [taken(100 + thread, mode, from, from), released(100 + thread, to)]);
    }
    start(threads)
}

#[test]
fn a_wait_in_which_many_held_the_lock_says_that_some_are_not_blamed() {
    let most = history::MOST as u32;
    for (threads, partly, blamed) in [(most, 0, most), (most + 1, 1, most), (most + 50, 1, most)] {
        let mut ledger = Ledger::default();
        let end = hold_one_after_the_other(&mut ledger, threads, Mode::Exclusive);
        add(&mut ledger, [taken(1, Mode::Exclusive, 1_000, end)]);
        // Another one later has to do with none of them.
        add(&mut ledger, [released(1, end + 5), taken(2, Mode::Exclusive, end, end + 6)]);
        let sums = only(ledger).sums;
        assert_eq!((sums.contended, sums.partly_blamed), (2, partly), "{threads}");
        assert_eq!(sums.blocked_ns, 10 * u64::from(blamed) + 5);
    }
}

/// Only the forgotten writer excluded it.
#[test]
fn a_reader_whose_writer_is_forgotten_is_marked() {
    for (readers, contended, partly) in [(5, 1, 0), (history::MOST as u32 + 5, 0, 1)] {
        let mut ledger = Ledger::default();
        add(&mut ledger, [taken(1, Mode::Exclusive, 900, 900), released(1, 1_000)]);
        let end = hold_one_after_the_other(&mut ledger, readers, Mode::Shared);
        add(&mut ledger, [taken(2, Mode::Shared, 950, end)]);
        let sums = only(ledger).sums;
        assert_eq!((sums.contended, sums.partly_blamed), (contended, partly), "{readers}");
    }
}

#[test]
fn locks_together_remember_a_limited_number_of_holds() {
    let mut ledger = Ledger::default();
    ledger.past_holds = MANY_PAST_HOLDS + 1;
    let end = hold_one_after_the_other(&mut ledger, 20, Mode::Exclusive);
    add(&mut ledger, [taken(1, Mode::Exclusive, 1_000, end)]);
    let sums = only(ledger).sums;
    assert_eq!((sums.partly_blamed, sums.blocked_ns), (1, 10 * history::FEW as u64));
}

/// Further callers are one, whose times are those of all of them.
#[test]
fn callers_beyond_the_limit_are_one() {
    for (known, most) in [(0, callers::MOST), (MANY_CALLERS + 1, callers::FEW)] {
        let mut ledger = Ledger::default();
        ledger.known_callers = known;
        add(&mut ledger, [taken(1, Mode::Exclusive, 0, 1)]);
        // The holder is one of the callers.
        let waiters = most as u32 + 4;
        for thread in 2..2 + waiters {
            let waits = Change::TimedOut { mode: Mode::Exclusive, since: 100 };
            add(&mut ledger, [event(thread, 200, waits)]);
        }
        let LockFacts { sums, callers, .. } = only(ledger);
        assert_eq!(sums.contended, u64::from(waiters));
        let others = callers.iter().find(|(caller, _)| *caller == Caller::Unknown).unwrap().1;
        assert_eq!((others.waits, others.wait_ns), (5, 500), "{most}");
        let holder = callers.iter().find(|(caller, _)| *caller == Caller::Address(1)).unwrap().1;
        assert_eq!((holder.blocked, holder.blocked_ns), (u64::from(waiters), sums.blocked_ns));
    }
}

#[test]
fn holders_beyond_the_limit_are_unknown() {
    let mut ledger = Ledger::default();
    let most = MOST_HOLDERS as u32;
    add(&mut ledger, (0..most + 3).map(|thread| taken(thread, Mode::Shared, 10, 10)));
    add(&mut ledger, (0..most + 3).map(|thread| released(thread, 20)));
    let sums = only(ledger).sums;
    assert_eq!(sums.acquisitions, u64::from(most) + 3);
    assert_eq!((sums.holds.count, sums.unknown_holds), (u64::from(most), 3));
}

#[test]
fn events_of_locks_beyond_the_limit_are_counted() {
    let mut ledger = Ledger::default();
    for nth in 0..MOST_LOCKS as u64 + 2 {
        let lock = LockId { pid: Pid(7), address: LOCK + 64 * nth };
        let of = [taken(1, Mode::Exclusive, 10, 10), released(1, 20)];
        add(&mut ledger, of.map(|event| LockEvent { lock, ..event }));
    }
    assert_eq!(ledger.beyond, 4);
    assert_eq!(ledger.finish().len(), MOST_LOCKS);
}

/// A function of musl jumps to another one. Where that is not traced, it is not known what became of the
/// call.
#[test]
fn a_call_that_goes_on_in_another_function_is_one() {
    let passed = || LockEvent { function: "pthread_rwlock_wrlock", ..event(1, 12, Change::Passed) };
    let next = taken(1, Mode::Exclusive, 13, 20);
    let of_another_call = LockEvent { from: Some(4), ..next };
    for (next, unclear) in [(next, 0), (of_another_call, 1)] {
        let mut ledger = Ledger::default();
        add(&mut ledger, [passed(), next, released(1, 30)]);
        let sums = only(ledger).sums;
        assert_eq!((sums.acquisitions, sums.unclear, sums.holds.total), (1, unclear, 10));
    }
    let mut ledger = Ledger::default();
    add(&mut ledger, [passed()]);
    assert_eq!(only(ledger).sums.unclear, 1);
    // A wait for a condition, which has released the lock at its beginning.
    let mut ledger = Ledger::default();
    let parted = LockEvent { function: "pthread_cond_wait", ..event(1, 15, Change::Parted) };
    let timed =
        |time, change| LockEvent { function: "pthread_cond_timedwait", ..event(1, time, change) };
    add(&mut ledger, [taken(1, Mode::Exclusive, 5, 6), parted]);
    add(&mut ledger, [LockEvent { time: 16, change: Change::Passed, ..parted }]);
    add(&mut ledger, [timed(17, Change::Parted), timed(90, Change::Rejoined { since: 17 })]);
    add(&mut ledger, [released(1, 95)]);
    let sums = only(ledger).sums;
    assert_eq!((sums.conditions.count, sums.conditions.total, sums.unclear), (1, 73, 0));
    assert_eq!((sums.holds.count, sums.holds.total, sums.unknown_holds), (2, 9 + 5, 0));
}
