//! Calls whose events the eBPF programs leave out, or hold until they have lasted long enough.

use crate::support::*;
use ctrace_core::engine::{Engine, EngineConfig, HeldCall, LeftOut, NewExit};
use ctrace_core::filter::Filter;
use ctrace_core::function::ExitSeen;
use ctrace_core::units::{FuncId, Nanos, Pid, Tid};

const OUTER: u32 = 0;
const INNER: u32 = 1;

fn engine_with(config: EngineConfig) -> Engine {
    engine(&[function("outer"), function("inner")], config)
}

fn push(engine: &mut Engine, events: &[Event]) {
    events.iter().for_each(|event| engine.push(0, &event.bytes()));
}

fn held(function: u32, sp: u64, start: u64) -> HeldCall {
    let (pid, tid) = (Pid(PID), Tid(PID));
    HeldCall { pid, tid, function: FuncId(function), sp, start: Nanos(start) }
}

#[test]
fn a_held_entry_is_not_late() {
    for holds in [true, false] {
        let mut engine = engine_with(EngineConfig { holds, ..EngineConfig::default() });
        engine.advance(Nanos(500));
        push(&mut engine, &[enter(OUTER, 900, 100), enter(INNER, 800, 200), ret(INNER, 800, 600)]);
        push(&mut engine, &[ret(OUTER, 900, 700)]);
        engine.advance(Nanos(1_000));
        let report = engine.report(Nanos(1_000), meta(0.0));
        assert_eq!(report.loss.late, if holds { 0 } else { 2 });
        assert_eq!(
            lines(&report),
            [
                "outer: 1 calls, 1 timed, total 600 self 200",
                "inner: 1 calls, 1 timed, total 400 self 400"
            ]
        );
    }
}

#[test]
fn a_call_that_goes_on_counts_once_when_its_entry_comes_again() {
    let mut engine = engine_with(EngineConfig { holds: true, ..EngineConfig::default() });
    engine.push_held([held(OUTER, 900, 100), held(INNER, 800, 200)]);
    engine.advance(Nanos(500));
    let first = engine.report_interval(Nanos(500), meta(0.0));
    assert_eq!((first.functions[0].open, first.functions[1].open), (1, 1));
    assert_eq!((first.functions[0].active_ns, first.functions[1].active_ns.0), (Nanos(400), 300));
    push(&mut engine, &[enter(OUTER, 900, 100), enter(INNER, 800, 200), ret(INNER, 800, 600)]);
    push(&mut engine, &[ret(OUTER, 900, 700)]);
    engine.advance(Nanos(1_000));
    let second = engine.report_interval(Nanos(1_000), meta(0.0));
    assert_eq!((second.loss.late, second.loss.calls_untimed), (0, 0));
    assert_eq!(
        lines(&second),
        [
            "outer: 1 calls, 1 timed, total 600 self 200",
            "inner: 1 calls, 1 timed, total 400 self 400"
        ]
    );
    assert_eq!(engine.counters().events, 4);
}

/// The loss may have taken the end of a call that is open, whatever the event with the mark tells.
#[test]
fn an_entry_that_comes_again_still_tells_of_losses() {
    for (lost_before, timed) in [(0, 1), (3, 0)] {
        let mut engine = engine_with(EngineConfig { holds: true, ..EngineConfig::default() });
        engine.push_held([held(OUTER, 900, 100)]);
        push(&mut engine, &[enter(OUTER, 900, 100).lost(lost_before)]);
        push(&mut engine, &[ret(OUTER, 900, 700)]);
        engine.advance(Nanos(1_000));
        let report = engine.report(Nanos(1_000), meta(0.0));
        let outer = &report.functions[0];
        assert_eq!((outer.timed, outer.untimed), (timed, 1 - timed), "{lost_before} lost");
    }
}

/// A function loses its probes, so the end of its call and of those inside it is not seen. The programs deliver
/// the entries later, when the thread does something.
#[test]
fn calls_that_were_given_up_do_not_begin_again() {
    let mut engine = engine_with(EngineConfig { holds: true, ..EngineConfig::default() });
    engine.push_held([held(OUTER, 900, 100), held(INNER, 800, 200)]);
    let exit = ExitSeen::ByExitSites;
    engine.change_exits(Nanos(300), vec![NewExit { function: FuncId(OUTER), exit, probe: None }]);
    engine.advance(Nanos(400));
    push(&mut engine, &[enter(OUTER, 900, 100), enter(INNER, 800, 200)]);
    push(&mut engine, &[enter(OUTER, 900, 500), at_ret(OUTER, 900, 600)]);
    engine.advance(Nanos(1_000));
    let report = engine.report(Nanos(1_000), meta(0.0));
    let ends: Vec<_> = report.functions.iter().map(|row| (row.timed, row.untimed)).collect();
    assert_eq!((ends, report.loss.late), (vec![(1, 1), (0, 1)], 0));
}

#[test]
fn calls_without_events_are_filtered_ones() {
    let mut engine = engine_with(EngineConfig::default());
    let count = |too_deep, inside, short| {
        let of = LeftOut { too_deep, inside, short, ends: 1, short_ns: 7 };
        move |id: FuncId| if id.0 == OUTER { of } else { LeftOut::default() }
    };
    engine.take_left_out(count(3, 2, 5));
    let first = engine.report_interval(Nanos(100), meta(0.0));
    assert_eq!((first.filtered_calls, first.functions[0].callees_left_out), (8, 2));
    engine.take_left_out(count(4, 2, 7));
    let second = engine.report_interval(Nanos(200), meta(0.0));
    assert_eq!((second.filtered_calls, second.functions[0].callees_left_out), (3, 0));
    assert_eq!(engine.left_out()[0].hits(), 4 + 1 + 2 * 7);
}

/// The end of a call that was too deep may come, as no return probe could be left out.
#[test]
fn an_end_that_is_too_deep_has_no_beginning_to_miss() {
    for (thrifty, headless) in [(true, 0), (false, 1)] {
        let filter = Filter { max_depth: Some(1), ..Filter::default() };
        let mut engine = engine_with(EngineConfig { filter, thrifty, ..EngineConfig::default() });
        push(&mut engine, &[enter(OUTER, 900, 10), at_ret(INNER, 800, 20), ret(OUTER, 900, 30)]);
        push(&mut engine, &[at_ret(INNER, 800, 40)]);
        engine.advance(Nanos(100));
        let report = engine.report(Nanos(100), meta(0.0));
        assert_eq!(report.loss.calls_headless, 1 + headless, "thrifty: {thrifty}");
    }
}
