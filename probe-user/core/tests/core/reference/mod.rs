//! Compares the engine's numbers with a slow and obvious implementation of the definitions. Random
//! programs have several threads with nested, recursive and tail calls and jumps out of frames.
//! Their events come through several rings out of order. The numbers come from a session and from a
//! recording.

mod actual;
mod ctrack;
mod definitions;
mod diff;
mod exports;
mod extras;
mod frame_marks;
mod frames;
mod program;
mod replay;
mod slow;
mod stretches;
mod timeline;
mod trend;

use crate::support::*;
use actual::*;
use ctrace_core::engine::{Engine, EngineConfig};
use ctrace_core::filter::{Filter, ThreadFilter};
use ctrace_core::function::FunctionInfo;
use ctrace_core::report::{Extras, Report};
use ctrace_core::stats::Summary;
use ctrace_core::units::{FuncId, Nanos, Tid};
use definitions::*;
use program::*;
use proptest::prelude::*;

fn functions() -> Vec<FunctionInfo> {
    let name = |f: u32| format!("f{f}");
    let info = |f: u32| match f {
        0 => tail_caller(&name(f)),
        PASSES_ON => passes_on(&name(f)),
        _ => function(&name(f)),
    };
    (0..FUNCTIONS).map(info).collect()
}

fn start(config: EngineConfig) -> Engine {
    let mut engine = engine(&functions(), EngineConfig { rings: RINGS, ..config });
    engine.set_successors(FuncId(PASSES_ON), (0..FUNCTIONS).map(FuncId).collect());
    engine
}

/// Feeds the events after `from` and up to `to`.
fn feed(engine: &mut Engine, program: &Program, from: u64, to: u64) {
    for (ring, events) in program.rings.iter().enumerate() {
        for event in events.iter().filter(|event| event.ts > from && event.ts <= to) {
            engine.push(ring, &event.bytes());
        }
    }
    engine.advance(Nanos(to));
}

fn report_with(program: &Program, config: EngineConfig) -> Report {
    let mut engine = start(config);
    for cut in 1..=4 {
        feed(&mut engine, program, program.end * (cut - 1) / 4, program.end * cut / 4);
    }
    engine.report(Nanos(program.end), meta(10.0))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_report_is_as_defined(steps in steps(true), cut in prop_oneof![Just(0.0), Just(10.0), Just(34.0)]) {
        let program = run(&steps);
        let mut engine = start(EngineConfig::default());
        feed(&mut engine, &program, 0, program.end / 2);
        feed(&mut engine, &program, program.end / 2, program.end);
        let report = engine.report(Nanos(program.end), meta(cut));
        let expected = expect(&program.calls, 0, program.end, cut);
        prop_assert_eq!(rows(&report), expected.functions);
        prop_assert_eq!(centers(&report), expected.centers);
        prop_assert_eq!(report.tracked_ns, Some(Nanos(expected.tracked)));
        prop_assert_eq!(paths(&report), expected.paths);
        prop_assert_eq!(report.loss.late, 0);
    }

    #[test]
    fn an_interval_covers_the_calls_that_ended_in_it(steps in steps(true), at in 0u64..=100) {
        let program = run(&steps);
        let middle = program.end * at / 100;
        let mut engine = start(EngineConfig::default());
        feed(&mut engine, &program, 0, middle);
        let first = engine.report_interval(Nanos(middle), meta(10.0));
        feed(&mut engine, &program, middle, program.end);
        let second = engine.report_interval(Nanos(program.end), meta(10.0));
        for (report, from, to) in [(first, 0, middle), (second, middle, program.end)] {
            let expected = expect(&program.calls, from, to, 10.0);
            prop_assert_eq!(rows(&report), expected.functions);
            prop_assert_eq!(centers(&report), expected.centers);
            prop_assert_eq!(report.tracked_ns, Some(Nanos(expected.tracked)));
            prop_assert_eq!(paths(&report), expected.paths);
            prop_assert!(!report.approximate);
        }
    }

    #[test]
    fn summaries_of_any_split_add_up_to_the_whole(
        steps in steps(false), mut cuts in prop::collection::vec(0u64..=100, 0..5),
    ) {
        let program = run(&steps);
        let meta = || meta_with(Extras { latencies: true, ..Extras::default() });
        let mut engine = start(EngineConfig::default());
        feed(&mut engine, &program, 0, program.end);
        let whole = engine.report(Nanos(program.end), meta());
        let mut engine = start(EngineConfig::default());
        let (mut sums, mut from) = (vec![Summary::default(); whole.functions.len()], 0);
        cuts.sort_unstable();
        for cut in cuts.iter().chain([&100]) {
            let to = program.end * cut / 100;
            feed(&mut engine, &program, from, to);
            let report = engine.report_interval(Nanos(to), meta());
            let rows = sums.iter_mut().zip(&report.functions);
            rows.for_each(|(sum, function)| sum.add(&function.summary()));
            from = to;
        }
        for (sum, function) in sums.iter().zip(&whole.functions) {
            prop_assert_eq!(sum, &function.summary());
        }
    }

    /// Reports include an open call in both intervals between which it runs. Frames that are found
    /// dead later are left out here: until then they count as active.
    #[test]
    fn additive_numbers_of_intervals_add_up_to_the_whole(
        steps in steps(false), mut cuts in prop::collection::vec(0u64..=100, 0..5),
    ) {
        let program = run(&steps);
        let mut engine = start(EngineConfig::default());
        feed(&mut engine, &program, 0, program.end);
        let whole = additive(&engine.report(Nanos(program.end), meta(10.0)));
        let mut engine = start(EngineConfig::default());
        let mut sums = vec![Row::new(); whole.len()];
        let (mut from, mut open) = (0, vec![0; whole.len()]);
        cuts.sort_unstable();
        for cut in cuts.iter().chain([&100]) {
            let to = program.end * cut / 100;
            feed(&mut engine, &program, from, to);
            let report = engine.report_interval(Nanos(to), meta(10.0));
            for (place, row) in additive(&report).into_iter().enumerate() {
                let sum = &mut sums[place];
                row.into_iter().for_each(|(key, value)| *sum.entry(key).or_default() += value);
                *sum.entry("calls").or_default() -= open[place];
                open[place] = report.functions[place].open;
            }
            from = to;
        }
        prop_assert_eq!(sums, whole);
    }

    #[test]
    fn folding_the_spool_changes_no_sum_and_no_union(steps in steps(false), bytes in 0usize..6_000) {
        let program = run(&steps);
        let whole = report_with(&program, EngineConfig::default());
        let folded = report_with(&program, EngineConfig { spool_bytes: bytes, ..EngineConfig::default() });
        for (whole, folded) in rows(&whole).iter().zip(rows(&folded)) {
            for (key, exact) in whole {
                let is_ranked = PERCENTILES.iter().any(|(percentile, _)| percentile == key);
                let within = if is_ranked { *exact as f64 / 1_000.0 } else { 0.0 };
                prop_assert!(exact.abs_diff(folded[key]) as f64 <= within, "{}", key);
            }
        }
        prop_assert_eq!(whole.tracked_ns, folded.tracked_ns);
        prop_assert_eq!(paths(&whole), paths(&folded));
        let centers = folded.functions.iter().all(|f| f.center == Default::default());
        prop_assert!(!folded.approximate || centers);
    }

    #[test]
    fn a_filtered_call_is_as_if_never_selected(
        steps in steps(true), min in 0u64..800, depth in prop_oneof![Just(None), (1u32..5).prop_map(Some)],
        thread in prop_oneof![Just(None), (0..THREADS).prop_map(Some)],
    ) {
        let program = run(&steps);
        let threads = thread.map(|t| ThreadFilter::Tid(Tid(PID + t as u32))).into_iter().collect();
        let filter_by = Filter { min_duration: Nanos(min), max_depth: depth, threads };
        let report = report_with(&program, EngineConfig { filter: filter_by, ..EngineConfig::default() });
        let kept = filter(&program.calls, |c| {
            !(c.timed && c.end - c.start < min)
                && depth.is_none_or(|depth| c.depth < depth as usize)
                && thread.is_none_or(|thread| c.thread == thread)
        });
        let expected = expect(&kept, 0, program.end, 10.0);
        prop_assert_eq!(rows(&report), expected.functions);
        prop_assert_eq!(centers(&report), expected.centers);
        prop_assert_eq!(report.tracked_ns, Some(Nanos(expected.tracked)));
        prop_assert_eq!(report.filtered_calls as usize, program.calls.len() - kept.len());
    }

    #[test]
    fn no_bytes_make_it_panic(
        records in prop::collection::vec(
            (0usize..3, prop_oneof![
                prop::collection::vec(any::<u8>(), 0..70),
                (any::<[u8; 64]>(), 0u8..24, any::<bool>(), 0u8..6).prop_map(|(mut b, kind, long, small)| {
                    b[28] = kind;
                    b[8 + usize::from(small)..32].iter_mut().enumerate().for_each(|(i, b)| if i != 20 - usize::from(small) { *b &= 1 });
                    // Most records have reserved bytes of 0, because the others are invalid.
                    b[29] *= u8::from(small == 5);
                    if small < 4 {
                        let (third, fourth) = (b[48], b[56]);
                        b[40..].fill(0);
                        b[48] = third * u8::from(small > 0);
                        b[56] = fourth & u8::from(small > 1);
                    }
                    b[..if long { 64 } else { 32 }].to_vec()
                }),
            ]), 0..300),
        spool in 0usize..20_000, cut in any::<f64>(),
    ) {
        let mut engine = start(EngineConfig { spool_bytes: spool, max_paths: 20, ..EngineConfig::default() });
        for (index, (ring, bytes)) in records.iter().enumerate() {
            engine.push(*ring, bytes);
            if index % 50 == 49 {
                engine.advance(Nanos(1 << (index % 64)));
                engine.report_interval(Nanos(index as u64), meta(cut));
            }
        }
        engine.advance(Nanos::MAX);
        for f in engine.report(Nanos::MAX, meta(cut)).functions {
            prop_assert_eq!(f.calls, f.timed + f.untimed + f.open);
        }
    }
}
