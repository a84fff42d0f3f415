//! Locks of which markers tell.

use super::super::marks::{self, SECTION, Slots};
use super::*;
use ctrace_core::marker::{Carried, MarkerObject, MarkerPlace};
use ctrace_core::points::PointShape;
use ctrace_core::recording::AddressRecord;

/// The markers, by id, behind the functions that each trace has.
const WAITS: u32 = 3;
const LOCKED: u32 = 4;
const UNLOCKED: u32 = 5;
const REFUSED: u32 = 6;
const WAITS_TO_READ: u32 = 7;
const READ: u32 = 8;
const WRITTEN: u32 = 9;
const RW_UNLOCKED: u32 = 10;
const NAMES: [&str; 9] = [
    "mutex wait",
    "mutex lock",
    "mutex unlock",
    "mutex refused",
    "rwlock read wait",
    "rwlock read lock",
    "rwlock write lock",
    "rwlock unlock",
    "recursive mutex lock",
];
const TAKEN_AGAIN: u32 = 11;
/// A function of libc behind them.
const LIBC_LOCK: u32 = 12;
const LIBC_UNLOCK: u32 = 13;

fn marker(name: &str, values: Vec<ValueInfo>) -> FunctionInfo {
    let is_scope = name.ends_with(" wait");
    let point = (!is_scope).then_some(PointShape::Other);
    let exit = if is_scope { ExitSeen::ByExitSites } else { ExitSeen::Never };
    FunctionInfo { group: Some("locks".into()), point, exit, ..marks::scope(name, values) }
}

fn lock_value() -> ValueInfo {
    ValueInfo::new(LOCK, ValueKind::Unsigned)
}

fn marked_trace() -> Trace {
    let mut trace = Trace::new(Filter::default());
    for name in NAMES {
        trace.engine.add_function(marker(name, vec![lock_value()]));
    }
    for name in ["pthread_mutex_lock", "pthread_mutex_unlock"] {
        let result = ValueInfo { is_result: true, ..ValueInfo::new("retval", ValueKind::Signed) };
        let values = vec![ValueInfo::new(LOCK, ValueKind::Pointer), result];
        trace.engine.add_function(FunctionInfo { values, ..super::super::function(name) });
    }
    trace
}

impl Trace {
    fn point(&mut self, tid: u32, function: u32, time: u64, lock: u64) -> &mut Self {
        self.push_with(point(function, 100, time).on(tid), 0, &[lock], 0)
    }

    fn begin_wait(&mut self, tid: u32, function: u32, time: u64, lock: u64) -> &mut Self {
        let begins = Event { kind: Kind::ScopeEnter, ..enter(function, 100, time) };
        self.push_with(begins.on(tid), 0, &[lock], 0)
    }

    fn end_wait(&mut self, tid: u32, function: u32, time: u64) -> &mut Self {
        self.push(Event { kind: Kind::ScopeExit, ..enter(function, 100, time) }.on(tid))
    }
}

fn locks_of(trace: Trace) -> LocksReport {
    report_of(&open(trace.end(100_000)))
}

/// A thread holds the lock from 110 to 500, and another one waits for it from 200 to 520.
#[test]
fn a_wait_is_a_scope_and_a_hold_lies_between_two_points() {
    let chunks: [&[u64]; 3] = [&[], &[300], &[105, 205, 505, 555]];
    for chunks in chunks {
        let mut trace = marked_trace();
        let mut chunks = chunks.iter().peekable();
        let mut until = |trace: &mut Trace, time: u64| {
            while let Some(end) = chunks.next_if(|end| **end < time) {
                trace.chunk(*end);
            }
        };
        until(trace.point(1, LOCKED, 110, A), 150);
        trace.point(2, REFUSED, 190, A).begin_wait(2, WAITS, 200, A);
        until(&mut trace, 500);
        trace.point(1, UNLOCKED, 500, A);
        until(&mut trace, 520);
        until(trace.end_wait(2, WAITS, 520), 600);
        trace.point(2, UNLOCKED, 600, A);
        let lock = only_lock(locks_of(trace));
        assert_eq!((lock.kind, lock.recursive, lock.refused), (LockKind::Mutex, false, 1));
        assert_eq!(numbers(&lock), (2, 1, 320, 390 + 80), "{chunks:?}");
        assert_eq!((lock.holds, lock.unknown_holds, lock.open_holds), (2, 0, 0));
        assert_eq!((lock.uncontended_ns, lock.uncontended_max_ns), (Nanos(0), None));
        let (waiter, holder) = (lock.waiter().unwrap(), lock.holder().unwrap());
        // No traced function is around them.
        assert_eq!((&*waiter.name, waiter.waits, waiter.wait_ns), ("thread 2", 1, Nanos(320)));
        assert_eq!((&*holder.name, holder.blocked, holder.blocked_ns), ("thread 1", 1, Nanos(300)));
    }
}

/// The second unlock was not seen, nor could the thread take the lock again without it.
#[test]
fn only_a_recursive_mutex_is_taken_again_by_its_holder() {
    let mut trace = marked_trace();
    trace.point(1, LOCKED, 100, A).point(1, UNLOCKED, 130, A).point(1, LOCKED, 200, A);
    trace.point(1, LOCKED, 300, A).point(1, UNLOCKED, 370, A);
    trace.point(1, TAKEN_AGAIN, 400, B).point(1, TAKEN_AGAIN, 410, B).point(1, UNLOCKED, 430, B);
    trace.point(1, UNLOCKED, 490, B);
    let report = locks_of(trace);
    let lock = |at: u64| {
        let address = format!("{at:#x}");
        report.locks.iter().find(|lock| lock.address == address).unwrap()
    };
    let (plain, recursive) = (lock(A), lock(B));
    assert_eq!((numbers(plain), plain.nested, plain.recursive), ((3, 0, 0, 30 + 70), 0, false));
    assert_eq!((plain.unknown_holds, plain.open_holds), (1, 0));
    assert_eq!(
        (numbers(recursive), recursive.nested, recursive.recursive),
        ((1, 0, 0, 90), 1, true)
    );
    assert_eq!((recursive.unknown_holds, recursive.open_holds), (0, 0));
}

/// Its holder took the lock before the trace.
#[test]
fn a_wait_is_contended_whoever_holds_the_lock() {
    let mut trace = marked_trace();
    trace.begin_wait(2, WAITS, 200, A).end_wait(2, WAITS, 520).point(2, UNLOCKED, 600, A);
    trace.begin_wait(3, WAITS, 550, B);
    let report = locks_of(trace);
    let [free, stuck] = [B, A].map(|at| {
        let address = format!("{at:#x}");
        report.locks.iter().find(|lock| lock.address == address).unwrap()
    });
    assert_eq!((numbers(stuck), stuck.blocked_ns), ((1, 1, 320, 80), Nanos(0)));
    assert_eq!((numbers(free), free.open_waits), ((0, 0, 0, 0), 1));
    assert_eq!(free.open_wait_max_ns, Some(Nanos(100_000 - 550)));
}

#[test]
fn readers_share_a_lock_and_writers_do_not() {
    let mut trace = marked_trace();
    trace.point(1, READ, 100, A).point(2, READ, 110, A).point(1, RW_UNLOCKED, 150, A);
    trace.point(2, RW_UNLOCKED, 160, A).point(1, WRITTEN, 200, A);
    trace.begin_wait(2, WAITS_TO_READ, 210, A).point(1, RW_UNLOCKED, 250, A);
    trace.end_wait(2, WAITS_TO_READ, 260).point(2, RW_UNLOCKED, 270, A);
    let lock = only_lock(locks_of(trace));
    assert_eq!((lock.kind, lock.shared, lock.nested), (LockKind::RwLock, 3, 0));
    assert_eq!(numbers(&lock), (4, 1, 50, 50 + 50 + 50 + 10));
}

/// The mutex that a lock wraps is one of its own.
#[test]
fn calls_of_libc_within_a_wait_are_of_another_lock() {
    let mut trace = marked_trace();
    trace.begin_wait(2, WAITS, 200, A);
    trace.push_with(enter(LIBC_LOCK, 80, 210).on(2), 0, &[B], 0);
    trace.push_with(ret(LIBC_LOCK, 80, 300).on(2), 0, &[0], 1 << RESULT);
    trace.end_wait(2, WAITS, 310).point(2, UNLOCKED, 400, A);
    trace.push_with(enter(LIBC_UNLOCK, 80, 420).on(2), 0, &[B], 0);
    trace.push_with(ret(LIBC_UNLOCK, 80, 430).on(2), 0, &[0], 1 << RESULT);
    let report = locks_of(trace);
    let mut found: Vec<_> = report
        .locks
        .iter()
        .map(|lock| (&*lock.address, numbers(lock), lock.unknown_holds))
        .collect();
    found.sort();
    assert_eq!(found, [("0x5000", (1, 1, 110, 90), 0), ("0x6000", (1, 0, 0, 120), 0)]);
}

/// Makes a trace of a process with two markers of locks, 3 and 4: one takes them, the other one names them.
fn naming_trace() -> Trace {
    let mut trace = Trace::new(Filter::default());
    let name = ValueInfo::new("name", ValueKind::LongText);
    let infos = [
        (marker("mutex lock", vec![lock_value()]), false),
        (marker("lock name", vec![lock_value(), name]), true),
    ];
    let place = |(info, has_text)| {
        let carried = Carried { numbers: 1, has_text };
        let function = trace.engine.add_function(info);
        Some(MarkerPlace { is_point: true, carried, ..MarkerPlace::new(function, 0) })
    };
    let functions = infos.into_iter().map(place).collect();
    let object = trace.engine.markers().add_object(MarkerObject { section: SECTION, functions });
    trace.engine.markers().map_object(Pid(PID), object, 0, Nanos(0));
    trace
}

#[test]
fn a_lock_has_the_name_that_its_marker_tells() {
    let mut trace = naming_trace();
    // Also where its address has a name.
    let record = |address| AddressRecord { pid: Pid(PID), address, name: "a symbol".into() };
    trace.engine.name_addresses(vec![record(A), record(B)]);
    let slots = Slots(Vec::new()).value(A).enter(0, 1, 100).value(A).text(b"\x1b[2Jpool");
    let slots =
        slots.enter(1, 1, 110).value(B).enter(0, 1, 120).value(B).text(b"").enter(1, 1, 130);
    let report = report_of(&marks::recorded(trace, slots));
    let names: Vec<_> = report.locks.iter().map(|lock| (&*lock.address, &*lock.name)).collect();
    assert_eq!(names, [("0x5000", "\x1b[2Jpool"), ("0x6000", "a symbol")]);
    assert_eq!(report.locks.iter().map(|lock| lock.open_holds).collect::<Vec<_>>(), [1, 1]);
}

/// Only one thread may have told the name of a lock that others take.
#[test]
fn a_lock_has_the_name_that_a_thread_told_which_is_not_chosen() {
    let mut trace = naming_trace();
    trace.push_with(point(LOCKED - 1, 100, 150).on(2), 0, &[A], 0);
    let slots = Slots(Vec::new()).value(A).enter(0, 1, 100).value(A).text(b"pool").enter(1, 1, 110);
    let recording = marks::recorded(trace, slots);
    for (threads, acquisitions) in [(&[2][..], 1), (&[PID], 1), (&[], 2)] {
        let lock = only_lock(report_of_threads(&recording, threads));
        assert_eq!((&*lock.name, lock.acquisitions), ("pool", acquisitions), "{threads:?}");
    }
}
