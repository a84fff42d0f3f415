//! The direct callees of slow calls are those that a call made, or not known: no others.

use crate::support::*;
use ctrace_core::engine::EngineConfig;
use ctrace_core::report::{Extras, SlowAsked};
use ctrace_core::units::Nanos;

const OUTER: u32 = 0;
const INNER: u32 = 1;
const LEAF: u32 = 2;
/// Two stacks.
const ONE: u64 = 0x10_0000_0000;
const OTHER: u64 = 0x20_0000_0000;

/// A slow call: its function, its start, and its callees with their calls.
type Told = (usize, u64, Option<Vec<(usize, u64)>>);

fn slow_calls(events: &[Event], config: EngineConfig) -> Vec<Told> {
    let functions = ["outer", "inner", "leaf"].map(function);
    let mut engine = engine(&functions, config);
    let asked = SlowAsked { most: 10, from: Nanos(0) };
    engine.keep_slow_calls(asked);
    for event in events {
        engine.push(0, &event.bytes());
    }
    let last = events.iter().map(|event| event.ts).max().unwrap_or(0);
    engine.advance(end(last));
    let extras = Extras { slow_calls: asked, ..Extras::default() };
    let report = engine.report_interval(end(last), meta_with(extras));
    let calls = report.slow_calls.iter().map(|call| {
        assert_eq!(call.inside.is_none(), call.self_ns().is_none());
        let inside = call.inside.as_ref();
        let inside = inside.map(|all| all.iter().map(|it| (it.function, it.calls)).collect());
        (call.function, call.start_ns.0, inside)
    });
    calls.collect()
}

/// A thread goes to and fro between two stacks, as fibers do.
#[test]
fn callees_on_several_stacks_are_not_known() {
    let events = [
        enter(OUTER, ONE, 10),
        enter(INNER, OTHER, 20),
        // Back on the first stack, while the call on the other one is open.
        enter(LEAF, ONE - 64, 30),
        ret(LEAF, ONE - 64, 40),
        ret(INNER, OTHER, 50),
        ret(OUTER, ONE, 60),
        // No other stack is in use.
        enter(OUTER, ONE, 100),
        enter(LEAF, ONE - 64, 110),
        ret(LEAF, ONE - 64, 120),
        ret(OUTER, ONE, 130),
    ];
    let calls = slow_calls(&events, EngineConfig::default());
    let of = |function: u32, start: u64| {
        let found = calls.iter().find(|call| (call.0, call.1) == (function as usize, start));
        found.map(|(.., inside)| inside.clone()).expect("a call")
    };
    assert_eq!((of(OUTER, 10), of(INNER, 20)), (None, None), "{calls:?}");
    assert_eq!(of(OUTER, 100), Some(vec![(LEAF as usize, 1)]), "{calls:?}");
}

/// A handler on a stack of its own is over when the thread goes on: its calls are callees.
#[test]
fn a_handler_on_its_own_stack_is_inside_what_it_interrupts() {
    let events = [
        enter(OUTER, ONE, 10),
        enter(INNER, OTHER, 20),
        ret(INNER, OTHER, 30),
        enter(LEAF, ONE - 64, 40),
        ret(LEAF, ONE - 64, 45),
        ret(OUTER, ONE, 60),
    ];
    let calls = slow_calls(&events, EngineConfig::default());
    let outer = calls.iter().find(|call| call.0 == OUTER as usize).expect("a call");
    let callees = Some(vec![(INNER as usize, 1), (LEAF as usize, 1)]);
    assert_eq!(outer.2, callees, "{calls:?}");
}

/// Calls beyond the depth of paths have no place below their callers.
#[test]
fn callees_beyond_the_bounds_on_paths_are_not_known() {
    let events = [
        enter(OUTER, ONE, 10),
        enter(INNER, ONE - 64, 20),
        enter(LEAF, ONE - 128, 30),
        ret(LEAF, ONE - 128, 40),
        ret(INNER, ONE - 64, 50),
        ret(OUTER, ONE, 60),
    ];
    let config = EngineConfig { max_path_depth: 2, ..EngineConfig::default() };
    let calls = slow_calls(&events, config);
    let expected =
        [(OUTER as usize, 10, Some(vec![(INNER as usize, 1)])), (INNER as usize, 20, None)];
    assert_eq!(calls, expected);
}
