//! Marker scopes in the call tree, alone and among probed functions.

use crate::support::{PID, end, engine, enter, function, lines, meta, path_lines, ret};
use ctrace_core::engine::{Engine, EngineConfig};
use ctrace_core::function::{ExitSeen, FunctionInfo, FunctionKind};
use ctrace_core::marker::{
    BUFFER_LEN, BufferId, ClockSample, MarkerObject, MarkerPlace, Reading, Ticks,
};
use ctrace_core::units::{FuncId, Nanos, Pid, Tid};

const SECTION: u64 = 0x5555_5555_4000;
const STACK: u64 = 0x7ffd_0000_8000;

fn scope(name: &str) -> FunctionInfo {
    FunctionInfo { kind: FunctionKind::Marker, exit: ExitSeen::ByExitSites, ..function(name) }
}

/// One event of a buffer: scope, depth of its stack pointer, time, true for the exit.
type Mark = (u64, u64, u64, bool);

fn begin(scope: u64, depth: u64, time: u64) -> Mark {
    (scope, depth, time, false)
}

fn leave(scope: u64, depth: u64, time: u64) -> Mark {
    (scope, depth, time, true)
}

fn sp(depth: u64) -> u64 {
    STACK - 64 * depth
}

/// Makes a buffer as a runtime fills it.
fn buffer(marks: &[Mark]) -> Box<[u8; BUFFER_LEN]> {
    let mut bytes = Box::new([0; BUFFER_LEN]);
    bytes[..8].copy_from_slice(b"ctraceb\x01");
    bytes[40] = 2;
    bytes[56..64].copy_from_slice(&STACK.to_le_bytes());
    for (slot, &(scope, depth, time, exit)) in bytes[64..].chunks_exact_mut(16).zip(marks) {
        let sp = sp(depth);
        let site = SECTION + 32 * scope;
        slot[..8].copy_from_slice(&(time | sp >> 4 << 48).to_le_bytes());
        slot[8..].copy_from_slice(&(site | u64::from(exit) | sp >> 20 << 47).to_le_bytes());
    }
    bytes
}

fn read(engine: &mut Engine, marks: &[Mark]) {
    let buffer_id = BufferId { pid: Pid(PID), address: 0x7000_0000_0000 };
    engine.markers().read(Reading {
        buffer: buffer_id,
        tid: Tid(PID),
        bytes: buffer(marks),
        time: Nanos(0),
        passed: None,
        before: None,
    });
    engine.sample_clocks(ClockSample { ticks: Ticks(1), time: Nanos(100_000) }, Nanos(100_000));
}

/// Makes an engine with scopes a, b, c and function f, numbered from 0.
fn traced() -> Engine {
    let functions = [scope("a"), scope("b"), scope("c"), function("f")];
    let mut engine = engine(&functions, EngineConfig::default());
    // The last entry is a second site of `a`.
    let place = |(function, number)| Some(MarkerPlace::new(FuncId(function), number));
    let functions = [(0, 0), (1, 0), (2, 0), (0, 1)].map(place).into();
    let object = engine.markers().add_object(MarkerObject { section: SECTION, functions });
    engine.markers().map_object(Pid(PID), object, 0, Nanos(0));
    engine
}

fn check(marks: &[Mark], expected: &[&str]) {
    let mut engine = traced();
    read(&mut engine, marks);
    engine.advance(end(100_000));
    let report = engine.report(end(100_000), meta(1.0));
    assert_eq!(lines(&report), expected, "{marks:?}");
    assert_eq!(report.loss.decode_errors, 0);
}

#[test]
fn scopes_of_one_function_nest() {
    check(
        &[begin(0, 1, 10), begin(1, 1, 20), leave(1, 1, 50), leave(0, 1, 100)],
        &["a: 1 calls, 1 timed, total 90 self 60", "b: 1 calls, 1 timed, total 30 self 30"],
    );
}

#[test]
fn a_scope_in_a_loop_is_a_call_each_time() {
    check(
        &[begin(0, 1, 10), leave(0, 1, 20), begin(0, 1, 30), leave(0, 1, 50)],
        &["a: 2 calls, 2 timed, total 30 self 30"],
    );
}

#[test]
fn recursion_nests_at_lower_stack_pointers() {
    check(
        &[begin(0, 1, 10), begin(0, 2, 20), leave(0, 2, 30), leave(0, 1, 50)],
        &["a: 2 calls, 2 timed, total 50 self 40"],
    );
}

#[test]
fn a_longjmp_leaves_scopes_untimed() {
    // A jump from b into its caller's a, in which c begins.
    check(
        &[begin(0, 1, 10), begin(1, 3, 20), begin(2, 2, 30), leave(2, 2, 40), leave(0, 1, 50)],
        &[
            "a: 1 calls, 1 timed, total 40 self 30",
            "b: 1 calls, 0 timed, 1 untimed, total 0 self 0",
            "c: 1 calls, 1 timed, total 10 self 10",
        ],
    );
    // A jump from b, without another scope until a ends.
    check(
        &[begin(0, 1, 10), begin(1, 3, 20), leave(0, 1, 50)],
        &[
            "a: 1 calls, 1 timed, total 40 self 40",
            "b: 1 calls, 0 timed, 1 untimed, total 0 self 0",
        ],
    );
    // A jump back into the function, which enters the same scope again.
    check(
        &[begin(0, 1, 10), begin(0, 1, 20), leave(0, 1, 50)],
        &["a: 2 calls, 1 timed, 1 untimed, total 30 self 30"],
    );
}

#[test]
fn a_function_inlined_into_itself_is_in_one_place_twice() {
    check(
        &[begin(0, 1, 10), begin(3, 1, 20), leave(3, 1, 30), leave(0, 1, 50)],
        &["a: 2 calls, 2 timed, total 50 self 40"],
    );
}

#[test]
fn scopes_that_end_out_of_order_do_not_make_up_times() {
    check(
        &[begin(0, 1, 10), begin(1, 1, 20), leave(0, 1, 50), leave(1, 1, 60)],
        &[
            "a: 1 calls, 1 timed, total 40 self 40",
            "b: 1 calls, 0 timed, 1 untimed, 1 headless, total 0 self 0",
        ],
    );
}

#[test]
fn scopes_and_functions_are_in_one_tree() {
    let mut engine = traced();
    // f's return address lies above the frames of the scopes that it encloses.
    engine.push(0, &enter(3, sp(2), 20).bytes());
    engine.push(0, &ret(3, sp(2), 80).bytes());
    read(&mut engine, &[begin(0, 1, 10), begin(1, 3, 30), leave(1, 3, 50), leave(0, 1, 100)]);
    engine.advance(end(100_000));
    let report = engine.report(end(100_000), meta(1.0));
    assert_eq!(path_lines(&report), ["a 1", "a>f 1", "a>f>b 1"]);
    assert_eq!(
        lines(&report),
        [
            "a: 1 calls, 1 timed, total 90 self 30",
            "b: 1 calls, 1 timed, total 20 self 20",
            "f: 1 calls, 1 timed, total 60 self 40",
        ]
    );
}

#[test]
fn lost_marks_are_in_the_report() {
    let mut engine = traced();
    engine.set_lost_events(3, 252);
    let report = engine.report(end(100), meta(1.0));
    assert_eq!(report.loss.events, 255);
}
