//! The threads that wait for a lock, over time: counters of Perfetto.

use super::ends::{recorded_open, window};
use super::*;
use crate::formats::fixture::export_part;
use crate::formats::traces::perfetto_calls;
use ctrace_core::formats::Options;
use ctrace_core::recording::AddressRecord;

/// Two threads wait for the lock that a third one holds, one of them for longer.
fn queue() -> [LockCall; 6] {
    [
        call(1, LOCK_IT, 100, 110),
        call(2, LOCK_IT, 200, 520),
        call(3, LOCK_IT, 300, 640),
        call(1, UNLOCK, 500, 530),
        call(2, UNLOCK, 600, 610),
        call(3, UNLOCK, 700, 710),
    ]
}

/// A recording with a lock that threads wait for.
pub(crate) fn contended_lock() -> Recording {
    recorded(&queue(), &[350])
}

/// Returns the numbers of counters, and what the instant tells about locks.
fn counters(recording: &Recording, query: &Query) -> (Vec<String>, Vec<String>) {
    let trace = export_part("perfetto", recording, query, Options::default()).0;
    let shown = perfetto_calls(&trace);
    let counters = shown.iter().filter_map(|line| line.split_once(": ")?.1.split_once(" = "));
    let counters = counters.map(|(name, rest)| format!("{name} {}", rest.replace("  ", " at ")));
    let told = shown.iter().filter(|line| line.contains(": instant "));
    let told = told.flat_map(|line| line.split(' ').filter(|word| word.starts_with("lock_")));
    (counters.collect(), told.map(str::to_owned).collect())
}

const NAME: &str = "0x5000: threads waiting";

fn of_lock(changes: &[(u64, u64)]) -> Vec<String> {
    changes.iter().map(|(time, waiting)| format!("{NAME} {waiting} at {time}")).collect()
}

#[test]
fn a_counter_has_the_threads_that_wait() {
    let (found, told) = counters(&contended_lock(), &Query::default());
    assert_eq!(found, of_lock(&[(200, 1), (300, 2), (520, 1), (640, 0)]));
    assert_eq!(
        told,
        [
            "lock_calls_unclear=0",
            "lock_calls_with_forgotten_holders=0",
            "lock_events_left_out=0",
            "lock_lossy_stretches=0",
            "lock_waits_left_out=0",
            "lock_waits_without_end=0"
        ]
    );
}

/// Neither a lock that nobody waited for nor a recording without locks has a counter.
#[test]
fn only_locks_that_threads_waited_for_have_counters() {
    let mut calls = contended();
    let other = |of: LockCall| LockCall { lock: B, ..of };
    calls.extend([other(call(3, LOCK_IT, 150, 155)), other(call(3, UNLOCK, 170, 175))]);
    let (found, _) = counters(&recorded(&calls, &[]), &Query::default());
    assert_eq!(found, of_lock(&[(200, 1), (520, 0)]));
    let without = open(super::super::typical());
    assert_eq!(counters(&without, &Query::default()), (vec![], vec![]));
}

/// Such a wait lasts to the end of the trace, so its counter keeps its number.
#[test]
fn waits_that_do_not_end_are_there_to_the_end() {
    let calls = [call(1, LOCK_IT, 100, 110), call(2, LOCK_IT, 300, 0), call(3, LOCK_IT, 400, 0)];
    let (found, _) = counters(&recorded_open(&calls, 5_000), &Query::default());
    assert_eq!(found, of_lock(&[(300, 1), (400, 2)]));
}

#[test]
fn a_part_of_the_time_has_the_waits_in_it() {
    let recording = contended_lock();
    // Both have begun before, and one does not end in it.
    let (found, _) = counters(&recording, &window(400, 560));
    assert_eq!(found, of_lock(&[(400, 2), (520, 1)]));
    let (found, _) = counters(&recording, &window(120, 150));
    assert_eq!(found, of_lock(&[]));
}

#[test]
fn a_choice_of_threads_has_their_waits_for_each_other() {
    let threads = ["2", "3"].map(ThreadFilter::new).into();
    let filter = Filter { threads, ..Filter::default() };
    let query = Query { filter, ..Query::default() };
    let (found, _) = counters(&contended_lock(), &query);
    assert_eq!(found, of_lock(&[(300, 1), (640, 0)]));
}

/// Who waits is known from all calls, whatever functions are exported.
#[test]
fn a_choice_of_functions_leaves_out_no_wait() {
    let none = Query { functions: Some(vec![false; 11]), ..Query::default() };
    let (found, _) = counters(&contended_lock(), &none);
    assert_eq!(found, of_lock(&[(200, 1), (300, 2), (520, 1), (640, 0)]));
}

/// The name is the target's choice.
#[test]
fn a_counter_has_the_name_of_its_lock_without_harm() {
    let mut trace = traced(&queue(), &[]);
    let name = "pool\x1b[2J".into();
    trace.engine.name_addresses(vec![AddressRecord { pid: Pid(PID), address: A, name }]);
    let (found, _) = counters(&open(trace.end(5_000)), &Query::default());
    assert_eq!(found.len(), 4);
    assert!(
        found.iter().all(|line| line.starts_with(r"pool\u{1b}[2J: threads waiting ")),
        "{found:?}"
    );
}

#[test]
fn losses_are_told_beside_the_counters() {
    let mut trace = lock_trace();
    for of in &queue()[..2] {
        trace.begin(of);
        trace.finish(of);
    }
    trace.chunk(600);
    trace.engine.set_lost_events(5, 0);
    let (_, told) = counters(&open(trace.end(5_000)), &Query::default());
    assert!(told.contains(&"lock_lossy_stretches=1".to_owned()), "{told:?}");
}
