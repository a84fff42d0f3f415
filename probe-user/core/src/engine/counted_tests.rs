//! Counts of programs that these tests play, and the reports that come of them.

use super::*;
use crate::calls::paths::ROOT;
use crate::engine::{EngineConfig, ReportMeta};
use crate::function::FunctionInfo;
use crate::report::Report;
use crate::units::Nanos;
use ctrace_common::{BUCKETS, FULL_PATH, bucket_of};
use std::cell::Cell;

/// A path with the durations of its calls, in the order of their ends.
struct Made {
    caller: u32,
    function: FuncId,
    calls: Vec<u64>,
    untimed: u64,
}

#[derive(Default)]
struct Programs {
    paths: Vec<Made>,
    apart: CountedApart,
    /// A call of the first path that ends while the first reading of its buckets is under way.
    late: Cell<Option<u64>>,
    has_ended: Cell<Option<u64>>,
}

impl Programs {
    fn ended(&self, path: u32) -> Option<u64> {
        self.has_ended.get().filter(|_| path == 1)
    }

    fn at(&self, path: u32) -> &Made {
        &self.paths[path as usize - 1]
    }

    fn make(&mut self, caller: u32, function: u32, calls: &[u64]) -> u32 {
        let (function, calls) = (FuncId(function), calls.to_vec());
        self.paths.push(Made { caller, function, calls, untimed: 0 });
        self.paths.len() as u32
    }
}

impl CountedCalls for Programs {
    fn path(&self, number: u32) -> Option<(u32, FuncId)> {
        self.paths.get(number as usize - 1).map(|path| (path.caller, path.function))
    }

    fn sums(&self, path: u32) -> CountedSums {
        let Made { calls, untimed, .. } = self.at(path);
        let calls: Vec<u64> = calls.iter().copied().chain(self.ended(path)).collect();
        CountedSums {
            timed: calls.len() as u64,
            timed_ns: calls.iter().sum(),
            own_ns: calls.iter().sum(),
            squares: calls.iter().map(|call| u128::from(call * call)).sum(),
            extremes: calls.iter().min().copied().zip(calls.iter().max().copied()),
            untimed: *untimed,
            untimed_ns: untimed * 5,
        }
    }

    fn buckets(&self, path: u32) -> Vec<u32> {
        if path == 1 {
            self.has_ended.set(self.late.get());
        }
        let mut all = vec![0; BUCKETS];
        for duration in self.at(path).calls.iter().copied().chain(self.ended(path)) {
            all[bucket_of(duration)] += 1;
        }
        all
    }

    fn apart(&self, function: FuncId) -> CountedApart {
        if function.0 == 0 { self.apart } else { CountedApart::default() }
    }
}

fn engine() -> Engine {
    let mut engine = Engine::new(EngineConfig::default());
    for name in ["outer", "inner", "never"] {
        engine.add_function(FunctionInfo::new(name, "program"));
    }
    engine
}

fn interval(engine: &mut Engine, programs: &Programs, end: u64) -> Report {
    engine.take_counted(programs);
    engine.report_interval(Nanos(end), ReportMeta::default())
}

#[test]
fn a_report_has_what_was_counted_since_the_last() {
    let (mut engine, mut programs) = (engine(), Programs::default());
    let outer = programs.make(ROOT, 0, &[1_000, 3_000]);
    let inner = programs.make(outer, 1, &[100, 120, 500, 90]);
    programs.paths[inner as usize - 1].untimed = 3;
    programs.apart = CountedApart { headless: 2, unplaced: 0, short: 7 };
    let first = interval(&mut engine, &programs, 10_000);
    assert!(first.counted && first.approximate);
    // What probes cost comes of these: two ends and two of each other call that has ended in time.
    assert_eq!(engine.counters().hits[..2], [2 * 2 + 2 + 2 * 7, 2 * 4 + 3]);
    assert_eq!(engine.counters().events, 20 + 11);
    let [of_outer, of_inner, never] = &first.functions[..] else { panic!("three functions") };
    assert_eq!((of_outer.calls, of_outer.total_ns, of_outer.headless), (2, Nanos(4_000), 2));
    assert_eq!((of_inner.calls, of_inner.timed, of_inner.untimed), (7, 4, 3));
    assert_eq!(of_inner.total_ns, Nanos(810 + 15));
    assert_eq!(of_inner.durations.min_ns, Some(Nanos(90)));
    assert_eq!(of_inner.durations.max_ns, Some(Nanos(500)));
    assert_eq!(of_outer.durations.sd_ns, Some(Nanos(1_000)));
    assert_eq!((never.calls, never.durations.p50_ns), (0, None));
    assert_eq!((first.filtered_calls, first.loss.calls_untimed), (7, 3));
    let paths: Vec<_> = first.paths.iter().map(|path| (path.path.len(), path.calls)).collect();
    assert_eq!(paths, [(1, 2), (2, 7)]);

    programs.paths[inner as usize - 1].calls.extend([2_000, 2_040]);
    let second = interval(&mut engine, &programs, 20_000);
    let [of_outer, of_inner, _] = &second.functions[..] else { panic!("three functions") };
    assert_eq!((of_outer.calls, of_outer.durations.mean_ns), (0, None));
    assert_eq!((of_inner.calls, of_inner.total_ns), (2, Nanos(4_040)));
    assert_eq!(of_inner.durations.sd_ns, Some(Nanos(20)));
    // The longest of all is a new one. The shortest of all is not: its bucket begins at 1984.
    assert_eq!(of_inner.durations.min_ns, Some(Nanos(1_984)));
    assert_eq!(of_inner.durations.max_ns, Some(Nanos(2_040)));
    assert_eq!((second.filtered_calls, second.loss.calls_headless), (0, 0));
    let third = interval(&mut engine, &programs, 30_000);
    assert!(third.counted && third.functions.iter().all(|function| function.calls == 0));
}

#[test]
fn percentiles_have_the_ranks_of_events_within_a_bucket() {
    let (mut engine, mut programs) = (engine(), Programs::default());
    let calls: Vec<u64> = (1..=1_000).map(|nth| nth * 37).collect();
    programs.make(ROOT, 1, &calls);
    let report = interval(&mut engine, &programs, 10);
    let found = report.functions[1].durations;
    for (found, rank) in [(found.p50_ns, 500), (found.p90_ns, 900), (found.p99_ns, 990)] {
        let (found, exact) = (found.expect("timed").0, rank * 37);
        assert!(found.abs_diff(exact) * 32 <= exact, "{found} is far from {exact}");
    }
}

#[test]
fn calls_without_room_are_untimed_and_apart() {
    let (mut engine, mut programs) = (engine(), Programs::default());
    let outer = programs.make(ROOT, 0, &[10]);
    programs.apart.unplaced = 4;
    engine.take_counted(&programs);
    let open = [(outer, FuncId(0)), (FULL_PATH, FuncId(1)), (FULL_PATH, FuncId(99))];
    engine.set_counted_open(open);
    let report = engine.report_interval(Nanos(50), ReportMeta::default());
    let [outer, inner, _] = &report.functions[..] else { panic!("three functions") };
    assert_eq!((outer.calls, outer.timed, outer.untimed, outer.open), (6, 1, 4, 1));
    assert_eq!((inner.calls, inner.open), (1, 1));
    assert_eq!((report.paths_other_calls, report.paths_other_open), (5, 1));
    // Calls that are open are counted again, those that have ended are not.
    engine.take_counted(&programs);
    engine.set_counted_open([]);
    let report = engine.report_interval(Nanos(60), ReportMeta::default());
    assert!(report.functions.iter().all(|function| function.calls == 0));
}

/// The sums and the buckets of a report have the same calls.
#[test]
fn a_call_that_ends_during_a_reading_is_in_all_numbers() {
    let (mut engine, mut programs) = (engine(), Programs::default());
    programs.make(ROOT, 0, &[10, 30]);
    programs.late.set(Some(5_000));
    let report = interval(&mut engine, &programs, 10_000);
    let row = &report.functions[0];
    assert_eq!((row.calls, row.total_ns, row.self_ns), (3, Nanos(5_040), Nanos(5_040)));
    assert_eq!(row.durations.max_ns, Some(Nanos(5_000)));
    let next = interval(&mut engine, &programs, 20_000);
    assert_eq!((next.functions[0].calls, next.functions[0].total_ns), (0, Nanos::ZERO));
}

#[test]
fn a_path_of_an_unknown_function_waits_for_it() {
    let (mut engine, mut programs) = (engine(), Programs::default());
    programs.make(ROOT, 3, &[8, 9]);
    assert!(interval(&mut engine, &programs, 10).functions.iter().all(|f| f.calls == 0));
    engine.add_function(FunctionInfo::new("late", "library"));
    assert_eq!(interval(&mut engine, &programs, 20).functions[3].calls, 2);
}
