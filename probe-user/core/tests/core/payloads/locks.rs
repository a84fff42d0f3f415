//! Locks, from the calls of functions that take and release them.

mod addresses;
mod ends;
mod losses;
mod marked;
pub(crate) mod over_time;

use super::*;
use ctrace_common::RESULT;
use ctrace_core::locks::{CALLER, LOCK, LockKind, TYPE};
use ctrace_core::report::{LockReport, LocksReport};
use ctrace_core::units::Tid;

/// The functions, by id, behind those that each trace has.
const LOCK_IT: u32 = 3;
const TRY: u32 = 4;
const TIMED_LOCK: u32 = 5;
const UNLOCK: u32 = 6;
const WAIT: u32 = 7;
const READ: u32 = 8;
const WRITE: u32 = 9;
const RW_UNLOCK: u32 = 10;
const NAMES: [&str; 8] = [
    "pthread_mutex_lock",
    "pthread_mutex_trylock",
    "pthread_mutex_timedlock",
    "pthread_mutex_unlock",
    "pthread_cond_wait",
    "pthread_rwlock_rdlock",
    "pthread_rwlock_wrlock",
    "pthread_rwlock_unlock",
];

const A: u64 = 0x5000;
const B: u64 = 0x6000;
const RECURSIVE: u64 = 1;
const BUSY: u64 = 16;
const TIMED_OUT: u64 = 110;

/// A call of a lock function by a thread, with its lock, what type that has, and its result.
#[derive(Clone, Copy)]
struct LockCall {
    tid: u32,
    function: u32,
    from: u64,
    to: u64,
    lock: u64,
    of_type: u64,
    /// Its type cannot be read.
    untyped: bool,
    result: u64,
}

fn call(tid: u32, function: u32, from: u64, to: u64) -> LockCall {
    LockCall { tid, function, from, to, lock: A, of_type: 0, untyped: false, result: 0 }
}

fn recursive(tid: u32, function: u32, from: u64, to: u64) -> LockCall {
    LockCall { of_type: RECURSIVE, ..call(tid, function, from, to) }
}

fn failing(result: u64, call: LockCall) -> LockCall {
    LockCall { result, ..call }
}

fn has_type(function: u32) -> bool {
    (LOCK_IT..=UNLOCK).contains(&function)
}

/// Makes a trace of lock functions, without events.
fn lock_trace() -> Trace {
    let mut trace = Trace::new(Filter::default());
    for (function, name) in (LOCK_IT..).zip(NAMES) {
        let address = |name: &str| ValueInfo::new(name, ValueKind::Pointer);
        let mut values = vec![address(LOCK), address(CALLER)];
        values.extend(has_type(function).then(|| ValueInfo::new(TYPE, ValueKind::Signed)));
        let result = ValueInfo::new("retval", ValueKind::Signed);
        values.push(ValueInfo { is_result: true, ..result });
        trace.engine.add_function(FunctionInfo { values, ..super::function(name) });
    }
    trace
}

impl Trace {
    fn begin(&mut self, of: &LockCall) {
        let mut values = vec![of.lock, 0x4000 + u64::from(of.tid)];
        values.extend(has_type(of.function).then_some(of.of_type));
        let unread = u64::from(of.untyped && has_type(of.function)) << 2;
        self.push_with(enter(of.function, 100, of.from).on(of.tid), 0, &values, unread);
    }

    fn finish(&mut self, of: &LockCall) {
        let exit = ret(of.function, 100, of.to).on(of.tid);
        self.push_with(exit, 0, &[of.result], 1 << RESULT);
    }
}

/// Records calls, and ends a chunk at each of these times.
fn recorded(calls: &[LockCall], chunks: &[u64]) -> Recording {
    open(traced(calls, chunks).end(100_000))
}

/// Traces calls, and ends a chunk at each of these times.
fn traced(calls: &[LockCall], chunks: &[u64]) -> Trace {
    let mut events: Vec<(u64, bool, &LockCall)> = Vec::new();
    for of in calls {
        events.extend([(of.from, true, of), (of.to, false, of)]);
    }
    events.sort_by_key(|(time, ..)| *time);
    let mut trace = lock_trace();
    let mut chunks = chunks.iter().copied().peekable();
    for (time, is_begin, of) in events {
        while let Some(end) = chunks.next_if(|end| *end < time) {
            trace.chunk(end);
        }
        if is_begin { trace.begin(of) } else { trace.finish(of) }
    }
    trace
}

fn report_of(recording: &Recording) -> LocksReport {
    report_of_threads(recording, &[])
}

/// Returns the report of some threads; of all, if none are given.
fn report_of_threads(recording: &Recording, threads: &[u32]) -> LocksReport {
    let extras = Extras { locks: true, ..Extras::default() };
    let threads = threads.iter().map(|tid| ThreadFilter::Tid(Tid(*tid))).collect();
    let query = Query { filter: Filter { threads, ..Filter::default() }, ..Query::default() };
    let report = report_with(recording, &query, meta_with(extras));
    report.locks.expect("they were asked for")
}

/// Returns the only lock.
fn lock_of(calls: &[LockCall], chunks: &[u64]) -> LockReport {
    let report = report_of(&recorded(calls, chunks));
    assert_eq!(report.lossy_stretches, 0);
    only_lock(report)
}

fn only_lock(mut report: LocksReport) -> LockReport {
    assert_eq!(report.locks.len(), 1);
    report.locks.remove(0)
}

/// Returns acquisitions, contended ones, and the sums of waits and holds.
fn numbers(lock: &LockReport) -> (u64, u64, u64, u64) {
    (lock.acquisitions, lock.contended, lock.wait_ns.0, lock.hold_ns.0)
}

/// A thread holds the lock from 110 to 500, and another one waits for it from 200 to 520.
const CONTENDED: [(u32, u32, u64, u64); 4] =
    [(1, LOCK_IT, 100, 110), (2, LOCK_IT, 200, 520), (1, UNLOCK, 500, 530), (2, UNLOCK, 600, 610)];

fn contended() -> Vec<LockCall> {
    CONTENDED.map(|(tid, function, from, to)| call(tid, function, from, to)).into()
}

#[test]
fn a_thread_waits_while_another_one_holds_the_lock() {
    let all: [&[u64]; 3] = [&[], &[300], &[105, 205, 505, 515, 605]];
    for chunks in all {
        let lock = lock_of(&contended(), chunks);
        assert_eq!((&*lock.name, lock.kind), ("0x5000", LockKind::Mutex));
        assert_eq!(numbers(&lock), (2, 1, 320, 390 + 80), "{chunks:?}");
        assert_eq!((lock.wait_p99_ns, lock.wait_max_ns), (Some(Nanos(320)), Some(Nanos(320))));
        assert_eq!((lock.holds, lock.hold_max_ns), (2, Some(Nanos(390))));
        assert_eq!((lock.unknown_holds, lock.open_holds), (0, 0));
        let (waiter, holder) = (lock.waiter().unwrap(), lock.holder().unwrap());
        assert_eq!((&*waiter.name, waiter.waits, waiter.wait_ns), ("0x4002", 1, Nanos(320)));
        // It was held until 500.
        assert_eq!((&*holder.name, holder.blocked, holder.blocked_ns), ("0x4001", 1, Nanos(300)));
        assert_eq!((lock.uncontended_ns, lock.blocked_ns), (Nanos(10), Nanos(300)));
    }
}

#[test]
fn a_lock_that_is_free_again_is_not_contended() {
    let calls = [
        (1, LOCK_IT, 100, 110),
        (1, UNLOCK, 190, 260),
        (2, LOCK_IT, 200, 240),
        (2, UNLOCK, 300, 301),
    ];
    let calls = calls.map(|(tid, function, from, to)| call(tid, function, from, to));
    // Whatever is known first: the second one takes it while the first one's call is not over.
    for chunks in [&[][..], &[195], &[250]] {
        assert_eq!(numbers(&lock_of(&calls, chunks)), (2, 0, 0, 80 + 60), "{chunks:?}");
    }
}

#[test]
fn other_locks_do_not_matter() {
    let other = contended().into_iter().map(|of| match of.tid {
        2 => LockCall { lock: B, ..of },
        _ => of,
    });
    let report = report_of(&recorded(&other.collect::<Vec<_>>(), &[]));
    let found: Vec<_> = report.locks.iter().map(|lock| (&*lock.address, numbers(lock))).collect();
    assert_eq!(found, [("0x5000", (1, 0, 0, 390)), ("0x6000", (1, 0, 0, 80))]);
}

#[test]
fn nested_acquisitions_are_part_of_one_hold() {
    let calls = [
        recursive(1, LOCK_IT, 100, 110),
        recursive(1, LOCK_IT, 120, 130),
        recursive(1, UNLOCK, 140, 150),
        recursive(1, UNLOCK, 200, 210),
        recursive(1, UNLOCK, 300, 310),
    ];
    let lock = lock_of(&calls[..4], &[125]);
    assert_eq!((numbers(&lock), lock.nested, lock.recursive), ((1, 0, 0, 90), 1, true));
    // One release too many.
    assert_eq!(lock_of(&calls, &[]).unknown_holds, 1);
}

#[test]
fn a_release_that_was_not_seen_makes_the_hold_unknown() {
    let calls = [
        call(1, UNLOCK, 50, 60),
        call(1, LOCK_IT, 100, 110),
        call(1, LOCK_IT, 300, 320),
        call(1, UNLOCK, 330, 340),
        call(1, LOCK_IT, 400, 410),
        call(2, LOCK_IT, 500, 510),
    ];
    let lock = lock_of(&calls, &[]);
    // Only the one from 320 to 330 has both of its ends. Two have not ended.
    assert_eq!((numbers(&lock), lock.holds), ((4, 0, 0, 10), 1));
    assert_eq!((lock.unknown_holds, lock.open_holds, lock.nested), (2, 2, 0));
}

#[test]
fn a_wait_for_a_condition_is_no_hold() {
    let calls = [
        call(1, LOCK_IT, 100, 110),
        call(1, WAIT, 200, 900),
        call(2, LOCK_IT, 300, 310),
        call(2, UNLOCK, 400, 410),
        call(1, UNLOCK, 1_000, 1_010),
    ];
    for chunks in [&[][..], &[250, 350, 450], &[150, 950]] {
        let lock = lock_of(&calls, chunks);
        assert_eq!(numbers(&lock), (2, 0, 0, 90 + 100 + 90), "{chunks:?}");
        assert_eq!((lock.conditions, lock.conditions_ns), (1, Nanos(700)));
        assert_eq!((lock.holds, lock.unknown_holds), (3, 0));
    }
}

#[test]
fn tries_and_timeouts_are_counted_apart() {
    let calls = [
        call(1, LOCK_IT, 100, 110),
        failing(BUSY, call(2, TRY, 120, 125)),
        failing(TIMED_OUT, call(2, TIMED_LOCK, 200, 400)),
        call(1, UNLOCK, 500, 510),
        call(2, TRY, 600, 605),
        call(2, UNLOCK, 700, 710),
    ];
    let lock = lock_of(&calls, &[]);
    assert_eq!(numbers(&lock), (2, 1, 200, 390 + 95));
    assert_eq!((lock.refused, lock.timed_out, lock.failed), (1, 1, 0));
    assert_eq!(lock.holder().map(|it| it.blocked_ns), Some(Nanos(200)));
}

#[test]
fn readers_do_not_wait_for_each_other() {
    let calls = [
        call(1, READ, 100, 110),
        call(2, READ, 150, 160),
        call(3, WRITE, 200, 450),
        call(1, RW_UNLOCK, 300, 310),
        call(2, RW_UNLOCK, 400, 410),
        call(1, READ, 420, 600),
        call(3, RW_UNLOCK, 550, 560),
        call(1, RW_UNLOCK, 700, 710),
    ];
    let lock = lock_of(&calls, &[]);
    assert_eq!((lock.kind, lock.shared), (LockKind::RwLock, 3));
    let holds = 190 + 240 + 100 + 100;
    assert_eq!(numbers(&lock), (4, 2, 250 + 180, holds));
    // The writer waited for both readers, and a reader for the writer.
    let blocked = |name: &str| lock.callers.iter().find(|it| &*it.name == name).unwrap().blocked_ns;
    assert_eq!([0x4001, 0x4002, 0x4003].map(|at| blocked(&format!("{at:#x}")).0), [100, 200, 100]);
}

/// A wait of one call is one wait, however often a caller held the lock meanwhile.
#[test]
fn a_caller_blocks_a_wait_once() {
    let calls = [
        call(1, LOCK_IT, 100, 110),
        call(2, LOCK_IT, 200, 900),
        call(1, UNLOCK, 300, 301),
        call(1, LOCK_IT, 400, 410),
        call(1, UNLOCK, 500, 501),
        call(2, UNLOCK, 950, 960),
    ];
    let lock = lock_of(&calls, &[]);
    let holder = lock.holder().expect("one that held it");
    assert_eq!((lock.contended, holder.blocked, holder.blocked_ns), (1, 1, Nanos(100 + 90)));
}

/// Many callers that keep another one waiting do not hide the one that waits.
#[test]
fn the_caller_that_waits_longest_is_among_many_that_block_it() {
    let readers = 21;
    let mut calls = Vec::new();
    for tid in 1..=readers {
        let at = 100 + u64::from(tid);
        calls.push(call(tid, READ, at, at + 1));
        calls.push(call(tid, RW_UNLOCK, 10_000 + u64::from(tid), 10_100));
    }
    calls.extend([call(50, WRITE, 1_000, 10_050), call(50, RW_UNLOCK, 10_200, 10_201)]);
    let lock = lock_of(&calls, &[]);
    assert_eq!(lock.waiter().map(|it| (&*it.name, it.waits)), Some(("0x4032", 1)));
    assert_eq!(lock.holder().map(|it| it.blocked_ns), Some(Nanos(9_000 + 21)));
    assert_eq!(lock.callers.len(), 11);
    // The sum is of all of them.
    assert_eq!(lock.blocked_ns.0, (1..=21).map(|of| 9_000 + of).sum::<u64>());
}

#[test]
fn the_traced_function_around_is_the_caller() {
    let mut trace = lock_trace();
    for (tid, from) in [(1, 100), (2, 200)] {
        trace.push(enter(OUTER, 200, from - 1).on(tid));
    }
    for (tid, function, from, to) in CONTENDED {
        let of = call(tid, function, from, to);
        match (tid, function) {
            (1, LOCK_IT) => {
                trace.begin(&of);
                trace.finish(&of);
            }
            (2, LOCK_IT) => trace.begin(&of),
            _ => {}
        }
    }
    let [_, wait, release, last] =
        CONTENDED.map(|(tid, function, from, to)| call(tid, function, from, to));
    trace.begin(&release);
    trace.finish(&wait);
    trace.finish(&release);
    trace.begin(&last);
    trace.finish(&last);
    let report = report_of(&open(trace.end(100_000)));
    let callers: Vec<_> = report.locks[0].callers.iter().map(|it| &*it.name).collect();
    assert_eq!(callers, ["outer"]);
}

#[test]
fn without_lock_functions_there_are_no_locks() {
    let report = report_of(&open(Trace::new(Filter::default()).end(100_000)));
    assert_eq!(report, LocksReport::default());
}
