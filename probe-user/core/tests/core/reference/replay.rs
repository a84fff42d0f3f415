//! Tests that the numbers from a recording, cut into chunks anywhere, match the definitions.

use crate::reference::actual::*;
use crate::reference::definitions::*;
use crate::reference::program::*;
use crate::reference::{feed, start};
use crate::support::*;
use ctrace_core::engine::{Engine, EngineConfig};
use ctrace_core::filter::{Filter, ThreadFilter};
use ctrace_core::recording::replay::{Query, Within, report};
use ctrace_core::recording::{End, Recording, Start, Writer};
use ctrace_core::report::Report;
use ctrace_core::units::{Nanos, Tid};
use proptest::prelude::*;
use std::sync::Arc;

/// Makes a recording with a chunk's end at each of these times.
pub(crate) fn record(program: &Program, cuts: &[u64]) -> Recording {
    record_by(start(EngineConfig { record: true, ..EngineConfig::default() }), program, cuts)
}

/// Makes one with an engine that has other functions, too.
pub(crate) fn record_by(mut engine: Engine, program: &Program, cuts: &[u64]) -> Recording {
    let mut writer = Writer::new(Vec::new(), &Start::default()).expect("memory takes all");
    let mut cuts: Vec<u64> = cuts.iter().map(|cut| program.end * cut / 100).collect();
    cuts.push(program.end);
    cuts.sort_unstable();
    let mut from = 0;
    for to in cuts {
        feed(&mut engine, program, from, to);
        engine.end_chunk(Nanos(to));
        for block in engine.take_blocks() {
            writer.write(&block).expect("memory takes all");
        }
        from = to;
    }
    let end = End { end_ns: Nanos(program.end), ..End::default() };
    Recording::open(writer.finish(&end).expect("memory takes all")).expect("it was just written")
}

#[track_caller]
fn check(
    report: &Report,
    calls: &[Call],
    window: (u64, u64),
    cut: f64,
) -> Result<(), TestCaseError> {
    check_sums(report, calls, window, cut)?;
    prop_assert_eq!(paths(report), expect(calls, window.0, window.1, cut).paths);
    Ok(())
}

fn check_sums(
    report: &Report,
    calls: &[Call],
    (from, to): (u64, u64),
    cut: f64,
) -> Result<(), TestCaseError> {
    let expected = expect(calls, from, to, cut);
    prop_assert_eq!(rows(report), expected.functions);
    prop_assert_eq!(centers(report), expected.centers);
    prop_assert_eq!(report.tracked_ns, Some(Nanos(expected.tracked)));
    Ok(())
}

pub(crate) fn cuts() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(0u64..=100, 0..6)
}

/// Lengthens durations until buckets are wider than one value, so that ranks have to be gathered.
pub(crate) fn long(steps: Vec<Step>, factor: u64) -> Vec<Step> {
    steps.into_iter().map(|step| Step { wait: step.wait * factor, ..step }).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_report_of_a_recording_is_as_defined(
        steps in steps(true), cuts in cuts(), factor in prop_oneof![Just(1u64), Just(1_000)],
        cut in prop_oneof![Just(0.0), Just(10.0), Just(34.0)],
    ) {
        let program = run(&long(steps, factor));
        let recording = record(&program, &cuts);
        let report = report(&recording, &Query::default(), cut);
        check(&report, &program.calls, (0, program.end), cut)?;
        prop_assert!(!report.approximate);
    }

    #[test]
    fn a_window_covers_the_calls_that_ended_in_it(
        steps in steps(false), cuts in cuts(), window in (0u64..=100, 0u64..=100),
    ) {
        let program = run(&steps);
        let recording = record(&program, &cuts);
        let (from, to) = (window.0.min(window.1), window.0.max(window.1));
        let (from, to) = (program.end * from / 100, program.end * to / 100);
        let query = Query { window: Some(Nanos(from)..Nanos(to)), ..Query::default() };
        check(&report(&recording, &query, 10.0), &program.calls, (from, to), 10.0)?;
    }

    #[test]
    fn a_filter_afterwards_is_a_filter_before(
        steps in steps(true), cuts in cuts(),
        min in prop_oneof![Just(0), 0u64..800],
        depth in prop_oneof![Just(None), (1u32..5).prop_map(Some)],
        thread in prop_oneof![Just(None), (0..THREADS).prop_map(Some)],
        functions in prop_oneof![Just(None), prop::collection::vec(any::<bool>(), FUNCTIONS as usize).prop_map(Some)],
    ) {
        let program = run(&steps);
        let recording = record(&program, &cuts);
        let threads = thread.map(|t| ThreadFilter::Tid(Tid(PID + t as u32))).into_iter().collect();
        let filter_by = Filter { min_duration: Nanos(min), max_depth: depth, threads };
        let query = Query { filter: filter_by, functions: functions.clone(), ..Query::default() };
        let selected = |c: &Call| functions.as_ref().is_none_or(|f| f[c.func as usize]);
        let of_functions = filter(&program.calls, selected);
        let depths = with_depths(&of_functions);
        let kept = filter(&depths, |c| {
            !(c.timed && c.end - c.start < min)
                && depth.is_none_or(|depth| c.depth < depth as usize)
                && thread.is_none_or(|thread| c.thread == thread)
        });
        let report = report(&recording, &query, 10.0);
        check_sums(&report, &kept, (0, program.end), 10.0)?;
        // A call too short to count stays on the paths of calls inside it that ended unseen.
        if min == 0 {
            check(&report, &kept, (0, program.end), 10.0)?;
        }
    }

    #[test]
    fn callers_and_callees_are_told_by_the_calls_around_and_inside(
        steps in steps(true), cuts in cuts(), caller in 0..FUNCTIONS, callee in 0..FUNCTIONS,
    ) {
        let program = run(&steps);
        let recording = record(&program, &cuts);
        let only = |function: u32| Some((0..FUNCTIONS).map(|f| f == function).collect());
        let calls = &program.calls;
        let below = |mut call: usize, function: u32| loop {
            if calls[call].func == function {
                return true;
            }
            match calls[call].parent {
                Some(parent) => call = parent,
                None => return false,
            }
        };
        let places: Vec<usize> = (0..calls.len()).filter(|&c| below(c, caller)).collect();
        let kept = pick(calls, &places);
        let query = Query { callers: only(caller), ..Query::default() };
        check(&report(&recording, &query, 10.0), &kept, (0, program.end), 10.0)?;

        let mut around = vec![false; calls.len()];
        for mut call in (0..calls.len()).filter(|&c| calls[c].func == callee) {
            around[call] = true;
            while let Some(parent) = calls[call].parent {
                around[parent] = true;
                call = parent;
            }
        }
        let places: Vec<usize> = (0..calls.len()).filter(|&c| around[c]).collect();
        let kept = pick(calls, &places);
        let query = Query { callees: only(callee), ..Query::default() };
        check(&report(&recording, &query, 10.0), &kept, (0, program.end), 10.0)?;
    }

    #[test]
    fn what_is_within_some_calls_of_a_function_counts(
        steps in steps(true), cuts in cuts(), function in 0..FUNCTIONS, chosen: u64,
    ) {
        // No two events of a thread have one time.
        let steps = steps.into_iter().map(|step| Step { wait: step.wait + 1, ..step });
        let steps: Vec<Step> = steps.collect();
        let program = run(&steps);
        let recording = record(&program, &cuts);
        let calls = &program.calls;
        let chosen = |call: usize| calls[call].func == function && chosen >> (call % 64) & 1 == 1;
        let is_inside = |mut call: usize| loop {
            match (chosen(call), calls[call].parent) {
                (true, _) => return true,
                (false, Some(parent)) => call = parent,
                (false, None) => return false,
            }
        };
        let places: Vec<usize> = (0..calls.len()).filter(|&call| is_inside(call)).collect();
        let kept = pick(calls, &places);
        let stretch = |call: usize| {
            let Call { thread, start, end, .. } = calls[call];
            let tid = Tid(PID + thread as u32);
            let thread = recording.threads().find(|thread| thread.tid == tid).expect("its thread").id;
            (thread, Nanos(start)..Nanos(end))
        };
        let stretches = (0..calls.len()).filter(|&call| chosen(call)).map(stretch);
        let callers = Some((0..FUNCTIONS).map(|f| f == function).collect());
        let within = Some(Arc::new(Within::new(stretches)));
        let query = Query { callers, within, ..Query::default() };
        check_sums(&report(&recording, &query, 10.0), &kept, (0, program.end), 10.0)?;
    }
}
