//! Tests which events make a call, and which calls have a duration: the contract of the report.

mod jumps;
use crate::support::*;
use ctrace_common::Kind;
use ctrace_core::engine::{EngineConfig, ProcessChange};
use ctrace_core::function::{ExitSeen, FunctionInfo};
use ctrace_core::report::Report;
use ctrace_core::units::{FuncId, Nanos, Pid, Tid};

const MAIN: u32 = 0;
const F: u32 = 1;
const G: u32 = 2;
const LOOP: u32 = 3;
const TAIL: u32 = 4;

fn functions() -> Vec<FunctionInfo> {
    let looping = FunctionInfo { entry_is_loop_head: true, ..function("loop") };
    vec![function("main"), function("f"), function("g"), looping, tail_caller("tail")]
}

fn trace(events: &[Event]) -> Report {
    let mut engine = engine(&functions(), EngineConfig::default());
    for event in events {
        engine.push(0, &event.bytes());
    }
    let last = events.iter().map(|event| event.ts).max().unwrap_or(0);
    engine.advance(end(last));
    engine.report(end(last), meta(0.0))
}

fn check(events: &[Event], expected: &[&str]) {
    assert_eq!(lines(&trace(events)), expected, "{events:#?}");
}

#[test]
fn nested_calls_are_timed() {
    check(
        &[enter(MAIN, 900, 10), enter(F, 800, 20), ret(F, 800, 50), ret(MAIN, 900, 110)],
        &["main: 1 calls, 1 timed, total 100 self 70", "f: 1 calls, 1 timed, total 30 self 30"],
    );
}

#[test]
fn recursion_is_one_call_each() {
    check(
        &[enter(F, 900, 0), enter(F, 800, 10), ret(F, 800, 30), ret(F, 900, 100)],
        &["f: 2 calls, 2 timed, total 120 self 100"],
    );
}

#[test]
fn deep_recursion_under_return_probes_is_counted_in_full() {
    let enters = (0..201u64).map(|i| enter(F, 1_000_000 - i * 64, 10 + i));
    let returns = (0..64u64).rev().map(|i| ret(F, 1_000_000 - i * 64, 1_000 - i));
    let report = trace(&enters.chain(returns).collect::<Vec<_>>());
    let f = &report.functions[F as usize];
    assert_eq!((f.calls, f.timed, f.untimed, f.headless), (201, 64, 137, 0));
    assert_eq!(report.loss.calls_untimed, 137);
}

#[test]
fn a_longjmp_leaves_calls_untimed_up_to_their_last_event() {
    check(
        &[
            enter(MAIN, 900, 0),
            enter(F, 800, 10),
            enter(G, 700, 20),
            ret(G, 700, 35),
            enter(G, 850, 90),
            ret(G, 850, 95),
            ret(MAIN, 900, 100),
        ],
        &[
            "main: 1 calls, 1 timed, total 100 self 70",
            "f: 1 calls, 0 timed, 1 untimed, total 25 self 10",
            "g: 2 calls, 2 timed, total 20 self 20",
        ],
    );
}

#[test]
fn an_open_call_is_neither_timed_nor_untimed() {
    let report = trace(&[enter(MAIN, 900, 0), enter(F, 800, 40), ret(F, 800, 100)]);
    assert_eq!(
        lines(&report),
        ["main: 1 calls, 0 timed, 1 open, total 0 self 0", "f: 1 calls, 1 timed, total 60 self 60"]
    );
    let main = &report.functions[0];
    assert_eq!((main.active_ns.0, main.active_exclusive_ns.0, main.threads), (100, 40, 1));
}

#[test]
fn an_exit_without_entry_is_no_call() {
    check(&[ret(F, 900, 10)], &["f: 0 calls, 0 timed, 1 headless, total 0 self 0"]);
    check(&[jump(F, 900, 10)], &[]);
    check(
        &[enter(F, 900, 0), ret(G, 900, 5), ret(F, 900, 10)],
        &[
            "f: 1 calls, 1 timed, total 10 self 10",
            "g: 0 calls, 0 timed, 1 headless, total 0 self 0",
        ],
    );
}

#[test]
fn a_loop_back_to_the_entry_is_no_call() {
    let turns =
        [enter(LOOP, 900, 0), enter(LOOP, 900, 10), enter(LOOP, 900, 20), ret(LOOP, 900, 30)];
    check(&turns, &["loop: 1 calls, 1 timed, total 30 self 30"]);
    let recursion =
        [enter(LOOP, 900, 0), enter(LOOP, 800, 10), ret(LOOP, 800, 20), ret(LOOP, 900, 30)];
    check(&recursion, &["loop: 2 calls, 2 timed, total 40 self 30"]);
}

#[test]
fn tail_calls_nest_where_both_returns_are_seen() {
    check(
        &[enter(TAIL, 900, 0), enter(G, 900, 10), ret(G, 900, 50), ret(TAIL, 900, 51)],
        &["g: 1 calls, 1 timed, total 40 self 40", "tail: 1 calls, 1 timed, total 51 self 11"],
    );
    check(
        &[enter(TAIL, 900, 0), enter(G, 900, 10), ret(TAIL, 900, 51)],
        &[
            "g: 1 calls, 0 timed, 1 untimed, total 0 self 0",
            "tail: 1 calls, 1 timed, total 51 self 51",
        ],
    );
}

#[test]
fn a_jump_out_ends_the_call_where_it_fits() {
    check(
        &[enter(F, 900, 0), jump(F, 880, 5), jump(F, 900, 10), enter(G, 900, 10), ret(G, 900, 30)],
        &["f: 1 calls, 1 timed, total 10 self 10", "g: 1 calls, 1 timed, total 20 self 20"],
    );
}

#[test]
fn an_entry_in_the_place_of_another_shows_a_lost_exit() {
    check(
        &[enter(F, 900, 0), enter(G, 900, 10), ret(G, 900, 15), enter(F, 900, 20), ret(F, 900, 30)],
        &[
            "f: 2 calls, 1 timed, 1 untimed, total 10 self 10",
            "g: 1 calls, 1 timed, total 5 self 5",
        ],
    );
}

#[test]
fn endless_tail_calls_are_all_counted() {
    let report = trace(&(0..10_000).map(|ts| enter(TAIL, 900, ts)).collect::<Vec<_>>());
    let tail = &report.functions[TAIL as usize];
    assert_eq!((tail.calls, tail.timed + tail.untimed + tail.open), (10_000, 10_000));
    assert!(tail.open <= 128);
}

#[test]
fn a_loss_makes_open_calls_untimed() {
    check(
        &[
            enter(MAIN, 900, 0),
            enter(F, 800, 10),
            ret(F, 800, 50).lost(2),
            enter(F, 800, 60),
            ret(F, 800, 70),
            ret(MAIN, 900, 100),
        ],
        &[
            "main: 1 calls, 0 timed, 1 untimed, total 70 self 60",
            "f: 2 calls, 1 timed, 1 untimed, total 10 self 10",
        ],
    );
}

#[test]
fn a_loss_in_one_thread_leaves_the_others_alone() {
    check(
        &[enter(F, 900, 0), enter(G, 900, 1).on(7), ret(F, 900, 5).lost(1), ret(G, 900, 9).on(7)],
        &["f: 1 calls, 0 timed, 1 untimed, total 0 self 0", "g: 1 calls, 1 timed, total 8 self 8"],
    );
}

#[test]
fn a_point_is_a_call_without_duration() {
    let report =
        trace(&[enter(MAIN, 900, 0), point(G, 860, 10), point(G, 860, 20), ret(MAIN, 900, 30)]);
    assert_eq!(
        lines(&report),
        [
            "main: 1 calls, 1 timed, total 30 self 30",
            "g: 2 calls, 0 timed, 2 untimed, total 0 self 0"
        ]
    );
    assert_eq!(path_lines(&report), ["main 1", "main>g 2"]);
}

#[test]
fn another_stack_is_another_stack() {
    let (main, signal) = (0x7fff_0000_9000, 0x1000_9000);
    let handler_inside_f = [
        enter(MAIN, main, 0),
        enter(F, main - 96, 10),
        enter(G, signal, 20),
        enter(LOOP, signal - 96, 30),
        ret(LOOP, signal - 96, 40),
        ret(G, signal, 50),
        ret(F, main - 96, 70),
        ret(MAIN, main, 100),
    ];
    let report = trace(&handler_inside_f);
    let expected = [
        "main: 1 calls, 1 timed, total 100 self 40",
        "f: 1 calls, 1 timed, total 60 self 30",
        "g: 1 calls, 1 timed, total 30 self 20",
        "loop: 1 calls, 1 timed, total 10 self 10",
    ];
    assert_eq!(lines(&report), expected);
    assert_eq!(path_lines(&report), ["main 1", "main>f 1", "main>f>g 1", "main>f>g>loop 1"]);
}

/// A handler on a separate stack that leaves by a jump is each time inside the code that it
/// interrupts.
#[test]
fn a_handler_that_jumps_out_comes_again() {
    let (main, signal) = (0x7fff_0000_9000, 0x1000_9000);
    let report = trace(&[
        enter(MAIN, main, 0),
        enter(F, main - 96, 10),
        enter(G, signal, 20),
        enter(F, main - 96, 30),
        enter(G, signal, 40),
        ret(G, signal, 45),
        ret(F, main - 96, 50),
        enter(G, signal, 60),
        enter(F, main - 96, 70),
        ret(F, main - 96, 75),
        enter(G, signal + 96, 80),
        ret(MAIN, main, 100),
    ]);
    assert_eq!(path_lines(&report), ["main 1", "main>f 3", "main>f>g 2", "main>g 2"]);
}

#[test]
fn a_handler_that_jumps_out_nests_nothing() {
    let (main, signal) = (0x7fff_0000_9000, 0x1000_9000);
    let rounds = (0..50).flat_map(|n| [enter(F, main, 20 * n), enter(G, signal, 20 * n + 10)]);
    let report = trace(&rounds.collect::<Vec<_>>());
    assert_eq!(path_lines(&report), ["f 50", "f>g 50"]);
}

/// Known mappings distinguish a signal stack from the thread's own stack next to it.
#[test]
fn known_stacks_are_told_apart_however_near() {
    let events = [
        enter(MAIN, 0x9000, 0),
        enter(F, 0x8f00, 10),
        enter(G, 0x2_0100, 20),
        ret(G, 0x2_0100, 30),
        ret(F, 0x8f00, 40),
        ret(MAIN, 0x9000, 50),
    ];
    let timed = |known: bool| {
        let mut engine = engine(&functions(), EngineConfig::default());
        if known {
            engine.set_stack_regions(Pid(PID), [0x1000..0xa000, 0x2_0000..0x2_1000]);
        }
        events.iter().for_each(|event| engine.push(0, &event.bytes()));
        engine.advance(end(50));
        engine.report(end(50), meta(0.0)).functions.iter().map(|f| f.timed).sum::<u64>()
    };
    assert_eq!((timed(true), timed(false)), (3, 1));
}

#[test]
fn fibers_come_and_go_without_end() {
    let mut events = Vec::new();
    for fiber in 0..200u64 {
        events.push(enter(F, 0x10_0000_0000 * (fiber + 1), fiber * 10));
    }
    let report = trace(&events);
    let f = &report.functions[F as usize];
    assert_eq!((f.calls, f.open, f.untimed), (200, 32, 168));
}

#[test]
fn calls_without_seen_exit_are_counted() {
    let never = FunctionInfo { exit: ExitSeen::Never, ..function("never") };
    let mut engine = engine(&[function("main"), never], EngineConfig::default());
    for event in [enter(0, 900, 0), enter(1, 800, 10), enter(1, 800, 20), ret(0, 900, 30)] {
        engine.push(0, &event.bytes());
    }
    engine.advance(end(30));
    let report = engine.report(end(30), meta(0.0));
    assert_eq!(lines(&report)[1], "never: 2 calls, 0 timed, 2 untimed, total 0 self 0");
}

/// The kernel takes 64 return probes of a thread at one time.
#[test]
fn calls_without_a_return_probe_of_their_own_are_counted_apart() {
    let by_sites = FunctionInfo { exit: ExitSeen::ByExitSites, ..function("g") };
    let mut engine = engine(&[function("f"), by_sites], EngineConfig::default());
    let (mut time, sp) = (0, |depth: u64| 10_000 - 16 * depth);
    let mut push = |event: Event| engine.push(0, &event.bytes());
    let mut next = || {
        time += 1;
        time
    };
    // 70 calls of one function, and one of the other beneath all.
    push(enter(1, 20_000, next()));
    (0..70).for_each(|depth| push(enter(0, sp(depth), next())));
    (0..64).rev().for_each(|depth| push(ret(0, sp(depth), next())));
    // An exception ends a call that is not deep.
    push(enter(0, sp(0), next()));
    push(ret(1, 20_000, next()));
    engine.advance(end(1_000));
    assert_eq!(engine.too_deep(), 6);
}

#[test]
fn threads_and_processes_end_their_calls() {
    let mut engine = engine(&functions(), EngineConfig { rings: 2, ..EngineConfig::default() });
    engine.name_thread(Pid(PID), Tid(PID), "server");
    engine.push(0, &enter(MAIN, 900, 1).bytes());
    engine.push(0, &control(Kind::Fork, 2, PID, "server", [u64::from(PID), 7]));
    engine.push(1, &control(Kind::Rename, 3, 7, "worker", [0, 0]));
    engine.push(1, &enter(F, 900, 4).on(7).bytes());
    engine.push(1, &control(Kind::ThreadExit, 5, 7, "worker", [0, 0]));
    engine.push(1, &enter(F, 900, 6).on(7).bytes());
    engine.push(1, &ret(F, 900, 8).on(7).bytes());
    engine.push(0, &control(Kind::Fork, 9, PID, "server", [200, 200]));
    engine.push(0, &control(Kind::Exec, 10, PID, "other", [9, 0]));
    engine.push(0, &enter(G, 900, 11).bytes());
    engine.push(0, &control(Kind::ProcessExit, 12, PID, "other", [9, 0]));
    engine.advance(end(20));
    let changes = [
        ProcessChange::Fork { parent: Pid(PID), child: Pid(200), at: Nanos(9) },
        ProcessChange::Exec { pid: Pid(PID), name: "other".into(), by: Tid(9) },
        ProcessChange::Exit { pid: Pid(PID), status: 9 },
    ];
    assert_eq!(engine.take_process_changes(), changes);
    assert_eq!(engine.take_process_changes(), []);
    let report = engine.report(end(20), meta(0.0));
    let expected = [
        "main: 1 calls, 0 timed, 1 untimed, total 0 self 0",
        "f: 2 calls, 1 timed, 1 untimed, total 2 self 2",
        "g: 1 calls, 0 timed, 1 untimed, total 0 self 0",
    ];
    assert_eq!(lines(&report), expected);
    assert_eq!(report.functions[F as usize].threads, 2);
    let threads = report.threads.iter().map(|t| format!("{} {} {}", t.tid.0, t.name, t.calls));
    assert_eq!(threads.collect::<Vec<_>>(), ["100 other 2", "7 worker 1", "7  1"]);
}

#[test]
fn late_events_are_counted_and_never_make_a_wrong_duration() {
    let mut engine = engine(&functions(), EngineConfig { rings: 2, ..EngineConfig::default() });
    engine.push(0, &enter(MAIN, 900, 10).bytes());
    engine.push(0, &enter(F, 800, 20).bytes());
    engine.advance(end(100));
    engine.push(1, &enter(G, 900, 50).on(7).bytes());
    engine.push(1, &ret(G, 900, 60).on(7).bytes());
    engine.push(1, &ret(F, 800, 15).bytes());
    engine.push(0, &ret(F, 800, 110).bytes());
    engine.advance(end(200));
    let report = engine.report(end(200), meta(0.0));
    let expected = [
        "main: 1 calls, 0 timed, 1 open, total 0 self 0",
        "f: 1 calls, 0 timed, 1 untimed, total 0 self 0",
        "g: 1 calls, 1 timed, total 10 self 10",
    ];
    assert_eq!(lines(&report), expected);
    assert_eq!(report.loss.late, 3);
}

#[test]
fn losses_reach_the_report_of_their_interval() {
    let mut engine = engine(&functions(), EngineConfig::default());
    engine.push(0, b"rubbish");
    engine.push(0, &enter(99, 900, 10).bytes());
    engine.set_lost_events(5, 0);
    engine.advance(end(100));
    let first = engine.report_interval(end(100), meta(0.0)).loss;
    engine.set_lost_events(7, 0);
    let second = engine.report_interval(end(200), meta(0.0)).loss;
    assert_eq!((first.events, first.decode_errors), (5, 2));
    assert_eq!((second.events, second.decode_errors), (2, 0));
}

#[test]
fn events_before_arming_are_no_part_of_the_trace() {
    let config = EngineConfig { start: end(50), ..EngineConfig::default() };
    let mut engine = engine(&functions(), config);
    for event in [enter(F, 900, 40), ret(F, 900, 60), enter(G, 900, 70), ret(G, 900, 80)] {
        engine.push(0, &event.bytes());
    }
    engine.advance(end(100));
    let report = engine.report(end(150), meta(0.0));
    let expected = [
        "f: 0 calls, 0 timed, 1 headless, total 0 self 0",
        "g: 1 calls, 1 timed, total 10 self 10",
    ];
    assert_eq!(lines(&report), expected);
    assert_eq!((report.start_ns.0, report.duration_ns.0), (50, 100));
    assert!((report.tracked_percent.expect("known") - 10.0).abs() < 1e-9);
}

#[test]
fn ten_threads_for_the_same_time_are_active_once() {
    let all =
        |make: fn(u32, u64, u64) -> Event, ts| (1..=10).map(move |tid| make(F, 900, ts).on(tid));
    let report = trace(&all(enter, 0).chain(all(ret, 100)).collect::<Vec<_>>());
    let f = &report.functions[F as usize];
    assert_eq!((f.calls, f.threads, f.total_ns.0), (10, 10, 1_000));
    assert_eq!(
        (f.active_ns.0, f.active_exclusive_ns.0, report.tracked_ns.expect("known").0),
        (100, 100, 100)
    );
}

/// CTRACK's own example, in milliseconds: one thread waits while another works 100 ms itself and
/// 900 ms in a callee.
#[test]
fn a_callee_takes_the_exclusive_time() {
    let (waiting, worker, child) = (MAIN, F, G);
    let report = trace(&[
        enter(waiting, 900, 0).on(1),
        enter(worker, 900, 0).on(2),
        enter(child, 800, 100).on(2),
        ret(child, 800, 1_000).on(2),
        ret(worker, 900, 1_000).on(2),
        ret(waiting, 900, 1_010).on(1),
    ]);
    let times = report.functions[..3].iter().map(|f| (f.active_ns.0, f.active_exclusive_ns.0));
    assert_eq!(times.collect::<Vec<_>>(), [(1_010, 1_010), (1_000, 100), (900, 900)]);
    assert_eq!(report.tracked_ns, Some(Nanos(1_010)));
}

#[test]
fn paths_beyond_the_bound_are_told() {
    let mut engine =
        engine(&functions(), EngineConfig { max_path_depth: 2, ..EngineConfig::default() });
    for depth in 0..5 {
        engine.push(0, &enter(F, 900 - depth * 10, depth).bytes());
    }
    engine.advance(end(10));
    let report = engine.report(end(10), meta(0.0));
    assert_eq!(path_lines(&report), ["f 1", "f>f 1"]);
    assert_eq!((report.paths_other_calls, report.functions[F as usize].calls), (3, 5));
}
