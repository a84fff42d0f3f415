//! Calls that leave by a jump to another traced function, and end with that one's call.

use super::*;
use ctrace_core::engine::{Engine, NewExit};

/// Functions whose ways out are probed: `first` jumps to `second` or `third`, `second` to `third`, and
/// `third` returns.
fn chain(events: &[Event]) -> Report {
    chain_with_changes(events, |_| {})
}

/// The same, with changes that are known before the events.
fn chain_with_changes(events: &[Event], change: impl Fn(&mut Engine)) -> Report {
    let third = FunctionInfo { exit: ExitSeen::ByExitSites, ..function("third") };
    let functions = [function("main"), passes_on("first"), passes_on("second"), third];
    let mut engine = engine(&functions, EngineConfig::default());
    engine.set_successors(FuncId(1), vec![FuncId(2), FuncId(3)]);
    engine.set_successors(FuncId(2), vec![FuncId(3)]);
    change(&mut engine);
    for event in events {
        engine.push(0, &event.bytes());
    }
    let last = events.iter().map(|event| event.ts).max().unwrap_or(0);
    engine.advance(end(last));
    engine.report(end(last), meta(0.0))
}

#[track_caller]
fn check_chain(events: &[Event], expected: &[&str], expected_paths: &[&str]) {
    let report = chain(events);
    assert_eq!(lines(&report), expected, "{events:#?}");
    assert_eq!(path_lines(&report), expected_paths);
    assert!(report.functions.iter().all(|row| !row.until_tail_call));
}

#[test]
fn a_call_ends_with_the_call_that_it_jumped_to() {
    let (first, second, third) = (1, 2, 3);
    check_chain(
        &[
            enter(MAIN, 900, 0),
            enter(first, 800, 10),
            jump(first, 800, 14),
            enter(second, 800, 15),
            jump(second, 800, 21),
            enter(third, 800, 22),
            at_ret(third, 800, 40),
            enter(third, 800, 50),
            at_ret(third, 800, 53),
            ret(MAIN, 900, 100),
        ],
        &[
            "main: 1 calls, 1 timed, total 100 self 67",
            "first: 1 calls, 1 timed, total 30 self 5",
            "second: 1 calls, 1 timed, total 25 self 7",
            "third: 2 calls, 2 timed, total 21 self 21",
        ],
        &[
            "main 1",
            "main>first 1",
            "main>first>second 1",
            "main>first>second>third 1",
            "main>third 1",
        ],
    );
}

#[test]
fn a_call_that_returns_ends_there() {
    let (first, second) = (1, 2);
    check_chain(
        &[
            enter(first, 800, 10),
            at_ret(first, 800, 14),
            enter(second, 800, 15),
            at_ret(second, 800, 21),
        ],
        &["first: 1 calls, 1 timed, total 4 self 4", "second: 1 calls, 1 timed, total 6 self 6"],
        &["first 1", "second 1"],
    );
}

/// A signal may come between the jump and the entry of the next function.
#[test]
fn a_handler_between_a_jump_and_its_target_ends_nothing() {
    let (first, second) = (1, 2);
    check_chain(
        &[
            enter(first, 800, 10),
            jump(first, 800, 14),
            enter(MAIN, 500, 16),
            ret(MAIN, 500, 23),
            enter(second, 800, 30),
            at_ret(second, 800, 41),
        ],
        &[
            "main: 1 calls, 1 timed, total 7 self 7",
            "first: 1 calls, 1 timed, total 31 self 13",
            "second: 1 calls, 1 timed, total 11 self 11",
        ],
        &["first 1", "first>main 1", "first>second 1"],
    );
}

#[test]
fn a_call_whose_successor_is_not_seen_is_untimed() {
    let (first, second, third) = (1, 2, 3);
    let lost = [
        // The entry of `third` was lost, and a function that `second` never jumps to comes next.
        (jump(second, 800, 14), enter(first, 800, 30)),
        // It was lost, and the program called `third` itself.
        (jump(second, 800, 14), enter(third, 800, 30).lost(2)),
        // It was left by an exception.
        (enter(third, 800, 14), enter(third, 800, 30)),
    ];
    for (before, next) in lost {
        let begun = [enter(second, 800, 10), jump(second, 800, 12), before];
        let report = chain(&[&begun[..], &[next, at_ret(next.func, 800, 37)]].concat());
        let row = &report.functions[second as usize];
        assert_eq!((row.calls, row.timed, row.untimed), (1, 0, 1), "{next:?}");
        assert_eq!(row.total_ns, Nanos(4), "{next:?}");
        let row = &report.functions[next.func as usize];
        assert_eq!(row.durations.max_ns, Some(Nanos(7)), "{next:?}");
    }
}

/// A state machine may go on by jumps for ever.
#[test]
fn endless_jumps_are_all_counted() {
    let mut engine = engine(&[passes_on("ping"), passes_on("pong")], EngineConfig::default());
    engine.set_successors(FuncId(0), vec![FuncId(1)]);
    engine.set_successors(FuncId(1), vec![FuncId(0)]);
    for ts in 0..5_000 {
        let func = ts as u32 % 2;
        engine.push(0, &enter(func, 900, 2 * ts).bytes());
        engine.push(0, &jump(func, 900, 2 * ts + 1).bytes());
    }
    engine.advance(end(20_000));
    let report = engine.report(end(20_000), meta(0.0));
    for row in &report.functions {
        assert_eq!((row.calls, row.timed + row.untimed + row.open), (2_500, 2_500));
        assert!(row.open <= 64, "{}", row.open);
    }
}

/// While the probes of a function are replaced, a jump to it leads to an entry that nobody sees. A later
/// call of it is not inside the one that jumped.
#[test]
fn a_call_that_jumped_when_nothing_was_probed_is_untimed() {
    let (second, third) = (2, 3);
    let events = [
        enter(MAIN, 900, 0),
        enter(second, 800, 10),
        jump(second, 800, 13),
        // A signal came between the jump and its target.
        enter(MAIN, 500, 14),
        ret(MAIN, 500, 16),
        enter(third, 800, 30),
        at_ret(third, 800, 37),
        ret(MAIN, 900, 100),
    ];
    for (change_at, timed, paths) in [
        (15, 0, &["main 1", "main>second 1", "main>second>main 1", "main>third 1"]),
        (90, 1, &["main 1", "main>second 1", "main>second>main 1", "main>second>third 1"]),
    ] {
        let exit = ExitSeen::ByExitSites;
        let third_again = NewExit { function: FuncId(third), exit, probe: None };
        let change = |engine: &mut Engine| engine.change_exits(end(change_at), vec![third_again]);
        let report = chain_with_changes(&events, change);
        let row = &report.functions[second as usize];
        assert_eq!((row.calls, row.timed, row.untimed), (1, timed, 1 - timed), "{change_at}");
        assert_eq!(path_lines(&report), paths);
    }
}

/// Nothing shows any more when a function ends to which others jump, so they end at their jumps.
#[test]
fn calls_end_at_their_jumps_once_the_ends_behind_are_lost() {
    let (first, second, third) = (1, 2, 3);
    let calls = |at: u64| {
        [
            enter(first, 800, at),
            jump(first, 800, at + 4),
            enter(second, 800, at + 5),
            jump(second, 800, at + 11),
            enter(third, 800, at + 12),
        ]
    };
    let returned = [at_ret(third, 800, 40)];
    let events = [&calls(10)[..], &returned, &calls(60)].concat();
    let lost = NewExit { function: FuncId(third), exit: ExitSeen::Never, probe: None };
    let change = |engine: &mut Engine| engine.change_exits_only(end(50), vec![lost]);
    let report = chain_with_changes(&events, change);
    let timed = |func: u32| {
        let row = &report.functions[func as usize];
        (row.timed, row.total_ns.0, row.open, row.until_tail_call)
    };
    assert_eq!(timed(first), (2, 30 + 4, 0, true));
    assert_eq!(timed(second), (2, 25 + 6, 0, true));
    assert_eq!(timed(third), (1, 18, 1, false));
    assert_eq!(path_lines(&report)[3..], ["second 1", "third 1"]);
}
