//! Locks where calls are missing.

use super::*;

const SECOND: u64 = 1_000_000_000;

/// Records what is contended at this time, and in other chunks one call long before and one long after.
/// The kernel's count tells of a loss in the chunk of this number.
fn with_loss_in(chunk: usize) -> LocksReport {
    let mut trace = lock_trace();
    let at = |seconds: u64, of: LockCall| LockCall {
        from: of.from + seconds * SECOND,
        to: of.to + seconds * SECOND,
        ..of
    };
    let pair = [call(1, LOCK_IT, 100, 110), call(1, UNLOCK, 150, 160)];
    let chunks = [
        (5, pair.map(|of| at(1, of)).to_vec()),
        (15, vec![]),
        (20, vec![at(20, call(2, LOCK_IT, 0, 10))]),
        (21, vec![at(21, call(2, UNLOCK, 0, 10))]),
        (22, vec![at(22, call(3, LOCK_IT, 0, 10)), at(22, call(3, UNLOCK, 40, 50))]),
        (27, vec![]),
        (40, pair.map(|of| at(30, of)).to_vec()),
    ];
    for (number, (end, calls)) in chunks.into_iter().enumerate() {
        if number == chunk {
            trace.engine.set_lost_events(5, 0);
        }
        for of in &calls {
            trace.begin(of);
            trace.finish(of);
        }
        trace.chunk(end * SECOND + 500);
    }
    report_of(&open(trace.end(41 * SECOND)))
}

/// The chunk that tells of a loss may be one before, or one after, that in which calls are missing.
#[test]
fn holds_where_calls_are_missing_are_unknown() {
    for chunk in [2, 3, 4] {
        let report = with_loss_in(chunk);
        assert_eq!(report.lossy_stretches, 1);
        let lock = only_lock(report);
        // The holds long before and long after count.
        assert_eq!(numbers(&lock), (4, 0, 0, 40 + 40), "{chunk}");
        assert_eq!((lock.holds, lock.unknown_holds, lock.open_holds), (2, 2, 0), "{chunk}");
    }
    // All but the first one are far away.
    assert_eq!(only_lock(with_loss_in(0)).unknown_holds, 1);
}

/// The release of a reader was not seen. Its later acquisitions are no nested ones.
#[test]
fn a_hold_that_is_over_hides_no_others() {
    let again = |tid, take, release, from: u64| {
        [call(tid, take, from, from + 10), call(tid, release, from + 30, from + 31)]
    };
    for (take, other, release, unlike) in
        [(READ, WRITE, RW_UNLOCK, false), (LOCK_IT, LOCK_IT, UNLOCK, true)]
    {
        let mut calls = vec![call(1, take, 100, 110)];
        calls.extend(again(2, other, release, 200));
        (3..6).for_each(|nth| calls.extend(again(1, take, release, nth * 100)));
        // A mutex that tells no type may be recursive.
        let calls: Vec<_> =
            calls.into_iter().map(|of| LockCall { untyped: unlike, ..of }).collect();
        let lock = lock_of(&calls, &[]);
        assert_eq!((lock.acquisitions, lock.nested), (5, 0), "{take}");
        assert_eq!((lock.holds, lock.unknown_holds, lock.hold_ns), (4, 1, Nanos(4 * 20)), "{take}");
    }
}

#[test]
fn a_write_lock_is_never_nested() {
    let calls = [
        call(1, READ, 100, 110),
        call(1, WRITE, 200, 210),
        call(1, RW_UNLOCK, 300, 310),
        call(1, WRITE, 400, 410),
        call(1, WRITE, 500, 510),
        call(1, RW_UNLOCK, 600, 610),
    ];
    let lock = lock_of(&calls, &[]);
    assert_eq!((lock.acquisitions, lock.nested, lock.shared), (4, 0, 1));
    assert_eq!((lock.hold_ns, lock.unknown_holds), (Nanos(90 + 90), 2));
    let nested = [
        call(1, READ, 100, 110),
        call(1, READ, 200, 210),
        call(1, RW_UNLOCK, 300, 310),
        call(1, RW_UNLOCK, 400, 410),
    ];
    let lock = lock_of(&nested, &[]);
    assert_eq!((lock.acquisitions, lock.nested, lock.hold_ns), (1, 1, Nanos(290)));
}

/// A hold that may have been taken more than once does not end in one that counts.
#[test]
fn what_may_be_nested_across_a_loss_is_unknown() {
    let mut trace = lock_trace();
    let calls = [
        recursive(1, LOCK_IT, SECOND, SECOND + 10),
        recursive(1, LOCK_IT, 20 * SECOND, 20 * SECOND + 10),
        recursive(1, UNLOCK, 20 * SECOND + 50, 20 * SECOND + 51),
        recursive(1, UNLOCK, 20 * SECOND + 90, 20 * SECOND + 91),
    ];
    for (nth, of) in calls.iter().enumerate() {
        if nth == 1 {
            trace.chunk(5 * SECOND);
            trace.engine.set_lost_events(1, 0);
            trace.chunk(6 * SECOND);
            trace.chunk(19 * SECOND);
        }
        trace.begin(of);
        trace.finish(of);
    }
    let lock = only_lock(report_of(&open(trace.end(30 * SECOND))));
    assert_eq!((lock.holds, lock.hold_ns, lock.open_holds), (0, Nanos(0), 0));
    assert_eq!(lock.unknown_holds, 3);
}

#[test]
fn calls_without_a_result_are_unclear() {
    let mut trace = lock_trace();
    let (taken, released) = (call(1, LOCK_IT, 100, 110), call(1, UNLOCK, 200, 210));
    trace.begin(&taken);
    // The values of its end were lost.
    trace.push(ret(LOCK_IT, 100, 110).on(1));
    trace.begin(&released);
    trace.finish(&released);
    let lock = only_lock(report_of(&open(trace.end(100_000))));
    assert_eq!((lock.acquisitions, lock.unclear, lock.holds, lock.unknown_holds), (0, 1, 0, 1));
}

#[test]
fn an_unlock_that_fails_ends_no_hold() {
    const NOT_THE_OWNER: u64 = 1;
    let calls = [
        call(1, LOCK_IT, 100, 110),
        failing(NOT_THE_OWNER, call(2, UNLOCK, 150, 160)),
        call(1, UNLOCK, 200, 210),
    ];
    let lock = lock_of(&calls, &[]);
    assert_eq!((numbers(&lock), lock.failed, lock.unknown_holds), ((1, 0, 0, 90), 1, 0));
}

#[test]
fn the_lock_of_a_thread_that_died_is_taken() {
    const OWNER_DIED: u64 = 130;
    let calls = [failing(OWNER_DIED, call(2, LOCK_IT, 100, 110)), call(2, UNLOCK, 200, 210)];
    let lock = lock_of(&calls, &[]);
    assert_eq!((numbers(&lock), lock.failed), ((1, 0, 0, 90), 0));
}

/// A chunk in the middle of the file is missing: in it the lock was released and taken once more.
#[test]
fn holds_across_a_gap_in_the_file_are_unknown() {
    let at = |function, seconds: u64, from: u64| {
        let start = seconds * SECOND + from;
        call(1, function, start, start + 10)
    };
    let chunks = [
        (5, vec![at(LOCK_IT, 1, 0), at(UNLOCK, 1, 50), at(LOCK_IT, 2, 0)]),
        (15, vec![at(UNLOCK, 10, 0), at(LOCK_IT, 11, 0)]),
        (25, vec![at(UNLOCK, 20, 0)]),
        (35, vec![at(LOCK_IT, 30, 0), at(UNLOCK, 30, 50)]),
    ];
    for (missing, holds, unknown, stretches) in [(None, 4, 0, 0), (Some(15), 2, 1, 1)] {
        let mut trace = lock_trace();
        for (end, calls) in &chunks {
            for of in calls {
                trace.begin(of);
                trace.finish(of);
            }
            if missing == Some(*end) {
                trace.engine.advance(Nanos(end * SECOND));
                trace.engine.end_chunk(Nanos(end * SECOND));
                assert!(!trace.engine.take_blocks().is_empty());
            } else {
                trace.chunk(end * SECOND);
            }
        }
        let report = report_of(&open(trace.end(40 * SECOND)));
        assert_eq!(report.lossy_stretches, stretches);
        let lock = only_lock(report);
        assert_eq!((lock.holds, lock.unknown_holds), (holds, unknown));
    }
}

/// The process ends while a thread waits: its call has an end, but none that was seen.
#[test]
fn a_thread_that_ends_in_its_wait_has_waited() {
    let mut trace = lock_trace();
    let taken = call(1, LOCK_IT, 100, 110);
    trace.begin(&taken);
    trace.finish(&taken);
    let waits = call(2, LOCK_IT, 300, 0);
    trace.begin(&waits);
    // Another call of the thread further out: the one inside has gone.
    trace.push(enter(OUTER, 200, 700).on(2));
    let lock = only_lock(report_of(&open(trace.end(100_000))));
    assert_eq!((lock.open_waits, lock.unclear, lock.acquisitions), (1, 0, 1));
    // When it ended was not seen.
    assert_eq!(lock.open_wait_max_ns, None);
}
