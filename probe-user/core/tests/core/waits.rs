//! Waits split the durations of the calls around them, in sessions and in recordings alike.

use crate::support::recorded::record;
use crate::support::*;
use ctrace_common::WaitState::{Interruptible, Preempted, Woken};
use ctrace_common::{Cause, Kind, NO_SYSCALL, WaitState};
use ctrace_core::diff::{ComparedFile, Content, Options, diff};
use ctrace_core::engine::{Engine, EngineConfig, HiddenSwitches};
use ctrace_core::filter::Filter;
use ctrace_core::recording::replay::{Query, report};
use ctrace_core::recording::{Recording, Start};
use ctrace_core::report::Report;
use ctrace_core::units::Nanos;

const MAIN: u32 = 0;
const F: u32 = 1;

const FUTEX: u16 = 202;
const NANOSLEEP: u16 = 35;

fn begin(state: WaitState, syscall: u16, ts: u64) -> Event {
    Event { kind: Kind::WaitBegin, ..enter(Cause::new(state, syscall).0, 0, ts) }
}

fn woken(ts: u64) -> Event {
    begin(Woken, NO_SYSCALL, ts)
}

fn end_of_wait(ts: u64) -> Event {
    Event { kind: Kind::WaitEnd, ..enter(Cause::new(Preempted, NO_SYSCALL).0, 0, ts) }
}

fn session(events: &[Event], filter: Filter) -> Report {
    let mut engine = filtered(events, filter);
    let last = end(events.iter().map(|event| event.ts).max().unwrap_or(0));
    engine.advance(last);
    engine.report(last, meta(0.0))
}

fn engine_with(events: &[Event]) -> Engine {
    filtered(events, Filter::default())
}

/// Returns an engine that has these events.
fn filtered(events: &[Event], filter: Filter) -> Engine {
    let config = EngineConfig { waits: true, filter, ..EngineConfig::default() };
    // Its first function is that of waits for a processor.
    let mut engine = engine(&[function("main"), function("f")], config);
    for event in events {
        let func = match event.kind {
            Kind::WaitBegin | Kind::WaitEnd => event.func,
            _ => event.func + 1,
        };
        engine.push(0, &Event { func, ..*event }.bytes());
    }
    engine
}

/// Returns the calls of each function, and `running`, `runnable` and `blocked`, in order of names.
fn split(report: &Report) -> Vec<String> {
    let called = report.functions.iter().filter(|row| row.calls > 0);
    let mut lines: Vec<_> = called
        .map(|row| {
            let parts = [row.split.running_ns, row.split.runnable_ns, row.split.blocked_ns];
            let [running, runnable, blocked] = parts.map(|ns| ns.expect("it is known").0);
            assert_eq!(running + runnable + blocked, row.total_ns.0, "{}", row.name);
            format!("{} {}: {running} + {runnable} + {blocked}", row.calls, row.name)
        })
        .collect();
    lines.sort();
    lines
}

/// Calls that wait, and a wait outside of them.
fn events() -> [Event; 13] {
    [
        begin(Interruptible, FUTEX, 2),
        end_of_wait(4),
        enter(MAIN, 900, 10),
        enter(F, 800, 20),
        begin(Interruptible, FUTEX, 30),
        woken(70),
        end_of_wait(75),
        ret(F, 800, 100),
        begin(Preempted, NO_SYSCALL, 110),
        end_of_wait(131),
        begin(Interruptible, NANOSLEEP, 140),
        end_of_wait(202),
        ret(MAIN, 900, 300),
    ]
}

const WHOLE: [&str; 5] = [
    "1 [blocked: futex]: 0 + 0 + 40",
    "1 [blocked: sleep]: 0 + 0 + 62",
    "1 f: 35 + 5 + 40",
    "1 main: 162 + 26 + 102",
    "2 [runnable]: 0 + 26 + 0",
];

#[test]
fn waits_are_calls_and_parts_of_the_calls_around_them() {
    let told = session(&events(), Filter::default());
    assert_eq!(split(&told), WHOLE);
    let main = told.functions.iter().find(|row| &*row.name == "main").expect("it was called");
    // Less f and its own two waits.
    assert_eq!(main.self_ns.0, 290 - 80 - 21 - 62);
    let paths: Vec<_> = told.paths.iter().map(|path| path.path.join(" ")).collect();
    assert!(paths.contains(&"main f [blocked: futex]".into()), "{paths:?}");
}

#[test]
fn a_call_keeps_the_waits_of_calls_that_do_not_count() {
    for filter in [
        Filter { max_depth: Some(1), ..Filter::default() },
        Filter { min_duration: Nanos(100), ..Filter::default() },
    ] {
        let report = session(&events(), filter.clone());
        // Waits of calls that are too short count, which a note says.
        let is_noted = report.notes.iter().any(|note| note.contains("--min-duration"));
        assert_eq!(is_noted, filter.min_duration > Nanos::ZERO, "{:?}", report.notes);
        let told = split(&report);
        assert!(told.contains(&"1 main: 162 + 26 + 102".into()), "{told:?}");
        assert!(told.contains(&"1 [blocked: futex]: 0 + 0 + 40".into()), "{told:?}");
        let query = Query { filter, ..Query::default() };
        assert_eq!(split(&replayed(&[&events()], &query)), told);
    }
    let only_main = Query { functions: Some(vec![true, false]), ..Query::default() };
    let told = split(&replayed(&[&events()], &only_main));
    assert!(told.contains(&"1 main: 162 + 26 + 102".into()) && told.len() == 4, "{told:?}");
}

fn replayed(groups: &[&[Event]], query: &Query) -> Report {
    let functions = [function("main"), function("f")];
    let bytes = record(&functions, &Start::default(), groups, true);
    report(&Recording::open(bytes).expect("it was just written"), query, 0.0)
}

#[test]
fn a_recording_that_is_cut_anywhere_tells_the_same() {
    let (events, query) = (events(), Query::default());
    for one in 0..events.len() {
        for other in one..events.len() {
            let groups = [&events[..one], &events[one..other], &events[other..]];
            assert_eq!(split(&replayed(&groups, &query)), WHOLE, "cut at {one} and {other}");
        }
    }
}

/// What a call without a duration waited for is a part of the time that is told of it.
#[test]
fn a_lost_end_of_a_wait_costs_the_calls_around_it() {
    let told = session(
        &[
            enter(F, 800, 10),
            begin(Interruptible, FUTEX, 30),
            woken(50),
            // The end of the wait is lost.
            ret(F, 800, 100).lost(1),
        ],
        Filter::default(),
    );
    let expected =
        ["1 [blocked: futex]: 0 + 0 + 20", "1 [runnable]: 0 + 0 + 0", "1 f: 20 + 0 + 20"];
    assert_eq!(split(&told), expected);
    let f = told.functions.iter().find(|row| &*row.name == "f").expect("it was called");
    assert_eq!((f.timed, f.untimed), (0, 1));
}

/// A kernel may hide the switch that ends a wait. That is no loss, but it is told.
#[test]
fn a_wait_whose_end_the_kernel_hides_is_counted() {
    let mut events = vec![enter(F, 800, 10)];
    let rounds =
        [(Preempted, NO_SYSCALL, 20), (Interruptible, FUTEX, 35), (Preempted, NO_SYSCALL, 50)];
    events.extend(rounds.map(|(state, syscall, ts)| begin(state, syscall, ts)));
    events.extend([end_of_wait(60), ret(F, 800, 100)]);
    let (mut engine, last) = (engine_with(&events), end(100));
    engine.advance(last);
    assert_eq!(engine.hidden_switches(), HiddenSwitches { away: 0, back: 2 });
    let told = split(&engine.report(last, meta(0.0)));
    assert_eq!(
        told,
        ["1 [blocked: futex]: 0 + 0 + 15", "1 f: 50 + 25 + 15", "2 [runnable]: 0 + 25 + 0"]
    );
}

/// A thread that calls or returns has a processor.
#[test]
fn a_wait_ends_at_the_next_event_of_its_thread_if_the_kernel_hides_its_end() {
    let events = [
        enter(MAIN, 900, 5),
        enter(F, 800, 10),
        begin(Interruptible, FUTEX, 20),
        ret(F, 800, 60),
        begin(Interruptible, FUTEX, 65),
        woken(70),
        enter(F, 800, 95),
        ret(F, 800, 97),
        ret(MAIN, 900, 100),
    ];
    let (mut engine, last) = (engine_with(&events), end(100));
    engine.advance(last);
    assert_eq!(engine.hidden_switches(), HiddenSwitches { away: 0, back: 2 });
    let told = split(&engine.report(last, meta(0.0)));
    let expected = [
        "1 [runnable]: 0 + 25 + 0",
        "1 main: 25 + 25 + 45",
        "2 [blocked: futex]: 0 + 0 + 45",
        "2 f: 12 + 0 + 40",
    ];
    assert_eq!(told, expected);
    let shortest = Filter { min_duration: Nanos(1), ..Filter::default() };
    assert_eq!(split(&session(&events, shortest)), expected);
}

/// A thread that gets a processor had none before. What it waited then counts as running.
#[test]
fn a_wait_whose_beginning_the_kernel_hides_is_counted() {
    let events = [
        // This one began outside of traced calls.
        end_of_wait(5),
        enter(F, 800, 10),
        end_of_wait(30),
        begin(Interruptible, FUTEX, 40),
        end_of_wait(50),
        // This one was lost, which is told otherwise.
        end_of_wait(70).lost(1),
    ];
    let mut engine = engine_with(&events);
    engine.advance(end(90));
    assert_eq!(engine.hidden_switches(), HiddenSwitches { away: 1, back: 0 });
    // The call goes on in the next interval.
    engine.report_interval(end(90), meta(0.0));
    engine.push(0, &end_of_wait(95).bytes());
    engine.advance(end(100));
    assert_eq!(engine.hidden_switches(), HiddenSwitches { away: 2, back: 0 });
}

/// The end of a wait is lost, and the thread goes on on another stack.
#[test]
fn a_wait_ends_where_its_thread_is_seen_elsewhere() {
    let far = 1 << 40;
    let events = [
        enter(F, 800, 10),
        begin(Interruptible, FUTEX, 30),
        enter(MAIN, far, 60).lost(1),
        ret(MAIN, far, 80),
        ret(F, 800, 100),
    ];
    let told = split(&session(&events, Filter::default()));
    assert_eq!(told, ["1 [blocked: futex]: 0 + 0 + 0", "1 f: 70 + 0 + 0", "1 main: 20 + 0 + 0"]);
    assert_eq!(split(&replayed(&[&events], &Query::default())), told);
}

#[test]
fn a_comparison_says_if_only_one_side_tells_waits() {
    let functions = [function("main"), function("f")];
    let without: Vec<Event> = events()
        .into_iter()
        .filter(|event| !matches!(event.kind, Kind::WaitBegin | Kind::WaitEnd))
        .collect();
    let recording = |events: &[Event]| {
        let bytes = record(&functions, &Start::default(), &[events], true);
        Recording::open(bytes).expect("it was just written")
    };
    let (with, without) = (recording(&events()), recording(&without));
    let query = Query::default();
    let notes = |old, new| {
        let [old, new] = [old, new].map(|recording| ComparedFile {
            file: String::new(),
            content: Content::Recording { recording, query: &query },
        });
        diff(&[old], &[new], &Options::default()).notes.join("\n")
    };
    assert!(notes(&with, &without).contains("have waits, which --cpu records"));
    assert!(notes(&without, &with).contains("have waits, which --cpu records"));
    assert!(!notes(&with, &with).contains("--cpu") && !notes(&without, &without).contains("--cpu"));
}

#[test]
fn what_has_not_ended_is_open() {
    let told = session(&[enter(F, 800, 10), begin(Interruptible, FUTEX, 30)], Filter::default());
    let open: u64 = told.functions.iter().map(|row| row.open).sum();
    assert_eq!(open, 2);
    assert_eq!(split(&told), ["1 [blocked: futex]: 0 + 0 + 0", "1 f: 0 + 0 + 0"]);
}

#[test]
fn an_interval_has_the_waits_of_the_calls_that_ended_in_it() {
    let mut engine = engine(&[function("main"), function("f")], EngineConfig::default());
    let mut interval = |events: &[Event], to: u64| {
        events.iter().for_each(|event| engine.push(0, &event.bytes()));
        engine.advance(Nanos(to));
        split(&engine.report_interval(Nanos(to), meta(0.0)))
    };
    let first = interval(
        &[
            enter(F, 800, 10),
            begin(Interruptible, FUTEX, 20),
            end_of_wait(27),
            enter(MAIN, 700, 30),
        ],
        40,
    );
    assert_eq!(first, ["1 [blocked: futex]: 0 + 0 + 7", "1 f: 0 + 0 + 0", "1 main: 0 + 0 + 0"]);
    let second = interval(&[ret(MAIN, 700, 50), ret(F, 800, 100)], 110);
    assert_eq!(second, ["1 f: 83 + 0 + 7", "1 main: 20 + 0 + 0"]);
}
