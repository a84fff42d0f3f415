//! The view of locks.

use super::*;
use ctrace_core::locks::LockKind;
use ctrace_core::report::{LockCallerReport, LockReport, LocksReport};
use ctrace_core::units::Pid;

fn caller(name: &str, (waits, wait): (u64, u64), (blocked, kept): (u64, u64)) -> LockCallerReport {
    let (wait_ns, blocked_ns) = (Nanos(wait), Nanos(kept));
    LockCallerReport { name: name.into(), waits, wait_ns, blocked, blocked_ns }
}

/// Makes a lock with so many contended ones among its acquisitions, each of this wait.
fn lock(name: &str, acquisitions: u64, contended: u64, wait: u64) -> LockReport {
    let known = |ns: u64| (contended > 0).then_some(Nanos(ns));
    let held = acquisitions.saturating_sub(3);
    LockReport {
        name: name.into(),
        address: "0x5581d0a7e040".to_owned(),
        pid: Some(Pid(4711)),
        kind: LockKind::Mutex,
        recursive: false,
        acquisitions,
        shared: 0,
        nested: 0,
        refused: 0,
        timed_out: 0,
        failed: 0,
        unclear: 0,
        contended,
        wait_ns: Nanos(contended.saturating_mul(wait)),
        wait_mean_ns: known(wait),
        wait_p99_ns: known(wait.saturating_mul(6)),
        wait_max_ns: known(wait.saturating_mul(9)),
        open_waits: 0,
        open_wait_max_ns: None,
        uncontended_ns: Nanos((acquisitions - contended).saturating_mul(430)),
        uncontended_max_ns: Some(Nanos(12_700)),
        conditions: 0,
        conditions_ns: Nanos(0),
        holds: held,
        hold_ns: Nanos(held.saturating_mul(7_300)),
        hold_mean_ns: (held > 0).then_some(Nanos(7_300)),
        hold_max_ns: (held > 0).then_some(Nanos(810_000)),
        unknown_holds: 0,
        open_holds: 0,
        blocked_ns: Nanos(contended.saturating_mul(wait) / 2),
        partly_blamed: 0,
        callers: Vec::new(),
    }
}

/// Locks of two processes: one that many wait for, one that nobody does, and one for reading.
fn with_locks() -> Report {
    let mut report = fixture::typical();
    let waited = LockReport {
        callers: vec![
            caller("cache::Table::insert_or_update_entry", (410, 92_000_000), (31, 4_000_000)),
            caller("evict_old", (7, 1_300_000), (380, 71_000_000)),
        ],
        unknown_holds: 2,
        ..lock("table_lock\u{1b}[2J", 90_210, 417, 224_000)
    };
    let recursive = LockReport { recursive: true, nested: 12, ..lock("0x7f21c40008c0", 3, 0, 0) };
    let reading = LockReport {
        kind: LockKind::RwLock,
        shared: 511,
        pid: Some(Pid(4712)),
        callers: vec![caller("reload@libconfig.so.1", (1, 3_100_000), (0, 0))],
        ..lock("settings+0x28@libconfig.so.1", 512, 1, 3_100_000)
    };
    let locks = vec![waited, reading, recursive];
    report.locks = Some(LocksReport { locks, ..LocksReport::default() });
    report
}

#[test]
fn locks_and_who_waits_for_them() {
    check("with_locks_80", &with_locks(), &view("locks"), &NARROW);
    check("with_locks_120", &with_locks(), &view("locks"), &WIDE);
    let text = check("with_locks_file", &with_locks(), &view("locks"), &FILE);
    assert!(text.contains("of 2 holds was not seen"), "{text}");
    let first = ViewOptions { top: Some(1), ..view("locks") };
    let text = sound(&with_locks(), &first, &WIDE);
    assert!(text.contains("2 locks not shown") && !text.contains("settings"), "{text}");
    let csv = render_csv(&with_locks(), &view("locks")).expect("one view");
    let row = csv.lines().nth(1).expect("a row");
    assert!(row.starts_with("table_lock\\u{1b}[2J,0x5581d0a7e040,4711,mutex,90210,"), "{row}");
    let callers = "cache::Table::insert_or_update_entry,92000000,evict_old,71000000";
    assert!(row.ends_with(callers), "{row}");
}

#[test]
fn locks_where_calls_are_missing_say_so() {
    let mut report = with_locks();
    let locks = report.locks.as_mut().expect("there are some");
    (locks.lossy_stretches, locks.other_events) = (3, 1_204);
    let text = sound(&report, &view("locks"), &WIDE);
    assert!(text.contains("missing in 3 stretches") && text.contains("1,204 events"), "{text}");
    // Also where no call of any lock is left.
    report.locks = Some(LocksReport { lossy_stretches: 2, ..LocksReport::default() });
    let text = sound(&report, &view("locks"), &WIDE);
    assert!(text.contains("No lock was used") && text.contains("missing in 2 stretches"), "{text}");
}

#[test]
fn waits_without_an_end_and_calls_without_a_result_are_told() {
    let mut report = with_locks();
    let locks = report.locks.as_mut().expect("there are some");
    let never = &mut locks.locks[2];
    (never.open_waits, never.open_wait_max_ns) = (2, Some(Nanos(7_500_000_000)));
    never.callers = vec![caller("drain", (2, 9_100_000_000), (0, 0))];
    (never.unclear, never.failed, locks.unknown_open_waits) = (5, 1, 1);
    locks.locks[0].partly_blamed = 4;
    let text = sound(&report, &view("locks"), &WIDE);
    assert!(text.contains("3 calls had not got their lock in the end"), "{text}");
    assert!(text.contains("The longest had waited for 7.50 s."), "{text}");
    assert!(
        text.contains("whether 5 calls got the lock") && text.contains("1 call failed"),
        "{text}"
    );
    assert!(text.contains("In 4 calls, more holds ended than a lock remembers"), "{text}");
    let callers = text.lines().find(|line| line.contains("drain")).expect("who waits for it");
    assert!(callers.contains("0x7f21c40008c0") && callers.contains("9.10 s"), "{callers}");
}
