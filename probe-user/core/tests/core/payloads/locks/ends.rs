//! Locks at the ends of what is asked for: of the recording, of a part of its time.

use super::*;

fn report_for(recording: &Recording, query: &Query) -> LocksReport {
    let extras = Extras { locks: true, ..Extras::default() };
    report_with(recording, query, meta_with(extras)).locks.expect("they were asked for")
}

/// Records calls, of which those that end at 0 do not end.
pub(super) fn recorded_open(calls: &[LockCall], end: u64) -> Recording {
    let mut trace = lock_trace();
    let mut events: Vec<(u64, bool, &LockCall)> = Vec::new();
    for of in calls {
        events.push((of.from, true, of));
        events.extend((of.to > 0).then_some((of.to, false, of)));
    }
    events.sort_by_key(|(time, ..)| *time);
    for (_, is_begin, of) in events {
        if is_begin { trace.begin(of) } else { trace.finish(of) }
    }
    open(trace.end(end))
}

/// Two threads, each of which waits for the lock that the other one holds.
#[test]
fn waits_that_do_not_end_are_told() {
    let other = |of: LockCall| LockCall { lock: B, ..of };
    let calls = [
        call(1, LOCK_IT, 100, 110),
        other(call(2, LOCK_IT, 150, 160)),
        other(call(1, LOCK_IT, 200, 0)),
        call(2, LOCK_IT, 300, 0),
    ];
    let report = report_of(&recorded_open(&calls, 5_000));
    assert_eq!(report.unknown_open_waits, 0);
    // The one that was waited for longest comes first.
    for (lock, (address, since, holder)) in
        report.locks.iter().zip([("0x6000", 200, "0x4002"), ("0x5000", 300, "0x4001")])
    {
        let waited = Nanos(5_000 - since);
        assert_eq!((&*lock.address, lock.open_waits), (address, 1));
        assert_eq!((lock.open_wait_max_ns, lock.contended), (Some(waited), 0));
        assert_eq!((lock.wait_ns, lock.blocked_ns, lock.open_holds), (Nanos(0), waited, 1));
        assert_eq!(lock.holder().map(|it| &*it.name), Some(holder));
        assert_eq!(lock.waiter().map(|it| it.wait_ns), Some(waited));
    }
    assert_eq!(report.locks.len(), 2);
}

/// A thread that waits for a condition when the trace ends does not hold the lock.
#[test]
fn a_wait_for_a_condition_that_does_not_end_is_no_hold() {
    let calls = [
        call(1, LOCK_IT, 100, 110),
        call(1, WAIT, 200, 0),
        call(2, LOCK_IT, 300, 320),
        call(2, UNLOCK, 400, 410),
    ];
    let lock = only_lock(report_of(&recorded_open(&calls, 5_000)));
    assert_eq!((numbers(&lock), lock.holds), ((2, 0, 0, 90 + 80), 2));
    assert_eq!((lock.open_waits, lock.open_holds, lock.unknown_holds), (0, 0, 0));
}

pub(super) fn window(from: u64, to: u64) -> Query {
    Query { window: Some(Nanos(from)..Nanos(to)), ..Query::default() }
}

/// The holder took the lock before the time that is asked for.
#[test]
fn a_part_of_the_time_knows_who_holds_what() {
    let recording = recorded(&contended(), &[150, 550]);
    let lock = only_lock(report_for(&recording, &window(180, 540)));
    assert_eq!(numbers(&lock), (1, 1, 320, 390));
    assert_eq!(lock.holder().map(|it| it.blocked_ns), Some(Nanos(300)));
    assert_eq!((lock.unknown_holds, lock.open_holds), (0, 1));
    // At its end a thread waits.
    let lock = only_lock(report_for(&recording, &window(180, 450)));
    assert_eq!((numbers(&lock), lock.open_waits), ((0, 0, 0, 0), 1));
    assert_eq!((lock.open_wait_max_ns, lock.blocked_ns), (Some(Nanos(250)), Nanos(250)));
    // Nothing happens in it.
    let lock = only_lock(report_for(&recording, &window(120, 130)));
    assert_eq!((numbers(&lock), lock.open_holds), ((0, 0, 0, 0), 1));
}

/// Who holds a lock is known from all calls, whatever other views show.
#[test]
fn a_choice_of_functions_leaves_out_no_lock() {
    let recording = recorded(&contended(), &[]);
    let whole = report_of(&recording);
    assert_eq!(numbers(&whole.locks[0]), (2, 1, 320, 470));
    let filter = Filter { min_duration: Nanos(25), ..Filter::default() };
    for query in [
        Query { filter, ..Query::default() },
        Query { filter: Filter { max_depth: Some(1), ..Filter::default() }, ..Query::default() },
        Query { functions: Some((0..11).map(|id| id != UNLOCK).collect()), ..Query::default() },
        Query { callers: Some((0..11).map(|id| id == OUTER).collect()), ..Query::default() },
    ] {
        assert_eq!(report_for(&recording, &query), whole);
    }
}

/// The others are not there, also not as those who hold the lock.
#[test]
fn chosen_threads_contend_with_each_other_only() {
    let mut calls = contended();
    // A third thread, which waits for the second.
    calls.extend([call(3, LOCK_IT, 560, 605), call(3, UNLOCK, 700, 710)]);
    let recording = recorded(&calls, &[300]);
    let of = |tids: &[&str]| {
        let threads = tids.iter().map(|tid| ThreadFilter::new(tid)).collect();
        let filter = Filter { threads, ..Filter::default() };
        only_lock(report_for(&recording, &Query { filter, ..Query::default() }))
    };
    assert_eq!(numbers(&of(&[])), (3, 2, 320 + 45, 390 + 80 + 95));
    assert_eq!(numbers(&of(&["2", "3"])), (2, 1, 45, 80 + 95));
    assert_eq!(numbers(&of(&["1", "3"])), (2, 0, 0, 390 + 95));
}
