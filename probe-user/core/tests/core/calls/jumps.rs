//! Calls that leave by a jump to another traced function, and end with that one's call.

use super::*;

/// Functions whose ways out are probed: `first` jumps to `second` or `third`, `second` to `third`, and
/// `third` returns.
fn chain(events: &[Event]) -> Report {
    let third = FunctionInfo { exit: ExitSeen::ByExitSites, ..function("third") };
    let functions = [function("main"), passes_on("first"), passes_on("second"), third];
    let mut engine = engine(&functions, EngineConfig::default());
    engine.set_successors(FuncId(1), vec![FuncId(2), FuncId(3)]);
    engine.set_successors(FuncId(2), vec![FuncId(3)]);
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
