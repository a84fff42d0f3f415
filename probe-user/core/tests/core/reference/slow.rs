//! The slowest calls of each function that a session keeps, whatever leaves the spool meanwhile, and
//! whatever intervals end in the middle of calls.

use crate::reference::extras::{apart, timed};
use crate::reference::program::*;
use crate::reference::{feed, start};
use crate::support::*;
use ctrace_core::engine::EngineConfig;
use ctrace_core::report::{Extras, Report, SlowAsked, SlowCall};
use ctrace_core::units::Nanos;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Returns the names of the functions on a path, in the report and by the reference.
fn paths(report: &Report, found: &SlowCall, calls: &[Call], place: usize) -> (String, String) {
    let names = found.path.iter().map(|f| report.functions[*f].name.to_string());
    let above = std::iter::successors(Some(place), |at| calls[*at].parent);
    let mut expected: Vec<_> = above.map(|at| format!("f{}", calls[at].func)).collect();
    expected.reverse();
    (names.collect::<Vec<_>>().join(">"), expected.join(">"))
}

fn check(
    report: &Report,
    calls: &[Call],
    window: (u64, u64),
    asked: SlowAsked,
) -> Result<(), TestCaseError> {
    for function in 0..FUNCTIONS {
        let of_function = || timed(calls, window).filter(|(_, c)| c.func == function);
        let durations = of_function().map(|(_, c)| c.end - c.start);
        let mut expected: Vec<u64> = durations.filter(|ns| *ns >= asked.from.0).collect();
        expected.sort_unstable_by(|a, b| b.cmp(a));
        expected.truncate(asked.most);
        let found = report.slow_calls.iter().filter(|call| call.function == function as usize);
        let mut durations: Vec<u64> = found.clone().map(|call| call.duration_ns.0).collect();
        durations.sort_unstable_by(|a, b| b.cmp(a));
        prop_assert_eq!(durations, expected);
        for found in found {
            let is_it = |(_, call): &(usize, &Call)| {
                u64::from(found.tid.0 - PID) == call.thread
                    && (found.start_ns.0, found.duration_ns.0)
                        == (call.start, call.end - call.start)
            };
            let mut same = of_function().filter(is_it);
            let Some((place, call)) = same.next() else {
                return Err(TestCaseError::fail(format!("no call is {found:?}")));
            };
            let (path, expected) = paths(report, found, calls, place);
            prop_assert_eq!(&path, &expected);
            let mut inside = BTreeMap::<usize, (u64, u64)>::new();
            for callee in calls.iter().filter(|callee| callee.parent == Some(place)) {
                let sum = inside.entry(callee.func as usize).or_default();
                *sum = (sum.0 + 1, sum.1 + callee.end - callee.start);
            }
            let Some(callees) = &found.inside else {
                // Another thread began the same at the same time.
                let twin = |other: &Call| other.start == call.start && other.thread != call.thread;
                prop_assert!(calls.iter().any(twin), "{found:?}");
                continue;
            };
            prop_assert!(callees.is_sorted_by(|a, b| a.total_ns >= b.total_ns));
            let callees = callees.iter().map(|it| (it.function, (it.calls, it.total_ns.0)));
            prop_assert_eq!(callees.collect::<BTreeMap<_, _>>(), inside.clone());
            let own = call.end - call.start - inside.values().map(|sum| sum.1).sum::<u64>();
            prop_assert_eq!(found.self_ns(), Some(Nanos(own)));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_slowest_calls_of_an_interval_are_kept_with_their_callees(
        steps in steps(false), mut cuts in prop::collection::vec(0u64..=100, 0..4),
        spool in prop_oneof![Just(usize::MAX), 0usize..6_000],
        most in 1usize..5, from in prop_oneof![Just(0), 0u64..800],
    ) {
        let program = run(&apart(steps, 1));
        let asked = SlowAsked { most, from: Nanos(from) };
        let mut engine = start(EngineConfig { spool_bytes: spool, ..EngineConfig::default() });
        engine.keep_slow_calls(asked);
        let mut begin = 0;
        cuts.sort_unstable();
        for cut in cuts.iter().chain([&100]) {
            let end = program.end * cut / 100;
            // Some at a time, so that the spool fills in between.
            for part in 1..=8 {
                let of = |part| begin + (end - begin) * part / 8;
                feed(&mut engine, &program, of(part - 1), of(part));
            }
            let extras = Extras { slow_calls: asked, ..Extras::default() };
            let report = engine.report_interval(Nanos(end), meta_with(extras));
            check(&report, &program.calls, (begin, end), asked)?;
            begin = end;
        }
    }
}
