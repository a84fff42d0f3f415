//! Intervals, added up, against one report of all the time, and the rest of a report after an earlier
//! look, against an interval: rows of threads and paths as the engine makes them, and sums.

use super::*;
use ctrace_core::report::{PathReport, ThreadReport};
use std::collections::BTreeMap;

/// Generates the depth to which paths are told apart: some of them, or all.
fn depth() -> impl Strategy<Value = usize> {
    prop::sample::select(vec![1, 2, 512])
}

fn config(shorter_than: u64, max_path_depth: usize) -> EngineConfig {
    let filter = Filter { min_duration: Nanos(shorter_than), ..Filter::default() };
    EngineConfig { max_path_depth, filter, ..EngineConfig::default() }
}

fn threads_of(report: &Report) -> BTreeMap<u32, ThreadReport> {
    report.threads.iter().map(|row| (row.tid.0, row.clone())).collect()
}

fn paths_of(report: &Report) -> BTreeMap<String, PathReport> {
    report.paths.iter().map(|row| (row.path.join(">"), row.clone())).collect()
}

/// Calls, and those of them that are open.
fn counts(threads: &BTreeMap<u32, ThreadReport>) -> Vec<(u32, u64, u64)> {
    let called = threads.iter().filter(|(_, row)| row.calls > 0);
    called.map(|(tid, row)| (*tid, row.calls, row.open)).collect()
}

fn sums(paths: &BTreeMap<String, PathReport>) -> Vec<(String, [u64; 4])> {
    let called = paths.iter().filter(|(_, row)| row.calls > 0);
    called
        .map(|(path, row)| (path.clone(), [row.calls, row.open, row.total_ns.0, row.self_ns.0]))
        .collect()
}

/// Without the time in which functions ran: a call that is open at the end of a stretch counts as
/// active, also if it turns out to be too short.
fn whole(report: &Report) -> String {
    let Report { start_ns, end_ns, duration_ns, filtered_calls, loss, .. } = report;
    let others = (report.paths_other_calls, report.paths_other_open);
    format!("{start_ns:?} {end_ns:?} {duration_ns:?} {filtered_calls} {loss:?} {others:?}")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn intervals_add_up_to_one_report(
        steps in steps(false),
        mut cuts in prop::collection::vec(0u64..=100, 1..6),
        shorter_than in prop_oneof![Just(0), 0u64..2_000],
        depth in depth(),
    ) {
        let program = run(&steps);
        let mut engine = start(config(shorter_than, depth));
        feed(&mut engine, &program, 0, program.end);
        let expected = engine.report(Nanos(program.end), meta(10.0));
        let mut engine = start(config(shorter_than, depth));
        cuts.sort_unstable();
        let (mut from, mut sum) = (0, None::<Report>);
        let (mut threads, mut paths) = (BTreeMap::new(), BTreeMap::new());
        for cut in cuts.iter().chain([&100]) {
            let to = program.end * cut / 100;
            feed(&mut engine, &program, from, to);
            from = to;
            let report = engine.report_interval(Nanos(to), meta(10.0));
            let Some(sum) = &mut sum else {
                (threads, paths) = (threads_of(&report), paths_of(&report));
                sum = Some(report);
                continue;
            };
            sum.add_sums(&report);
            threads.values_mut().for_each(ThreadReport::close);
            for (tid, row) in threads_of(&report) {
                let add = |sum: &mut ThreadReport| sum.add(&row);
                threads.entry(tid).and_modify(add).or_insert_with(|| row.clone());
            }
            paths.values_mut().for_each(PathReport::close);
            for (path, row) in paths_of(&report) {
                let add = |sum: &mut PathReport| sum.add(&row);
                paths.entry(path).and_modify(add).or_insert_with(|| row.clone());
            }
        }
        let sum = sum.expect("there is an interval");
        prop_assert_eq!(whole(&sum), whole(&expected));
        prop_assert_eq!(counts(&threads), counts(&threads_of(&expected)));
        prop_assert_eq!(sums(&paths), sums(&paths_of(&expected)));
        if shorter_than == 0 {
            let tracked = (sum.tracked_ns, sum.tracked_percent);
            prop_assert_eq!(tracked, (expected.tracked_ns, expected.tracked_percent));
            prop_assert_eq!(format!("{threads:?}"), format!("{:?}", threads_of(&expected)));
        }
    }

    #[test]
    fn the_rest_of_a_report_is_what_an_interval_would_be(
        steps in steps(false),
        cut in 0u64..=100,
        shorter_than in prop_oneof![Just(0), 0u64..2_000],
        depth in depth(),
    ) {
        let program = run(&steps);
        let middle = program.end * cut / 100;
        let mut engine = start(config(shorter_than, depth));
        feed(&mut engine, &program, 0, middle);
        let earlier = engine.report(Nanos(middle), meta(10.0));
        feed(&mut engine, &program, middle, program.end);
        let later = engine.report(Nanos(program.end), meta(10.0));
        let mut engine = start(config(shorter_than, depth));
        feed(&mut engine, &program, 0, middle);
        engine.report_interval(Nanos(middle), meta(10.0));
        feed(&mut engine, &program, middle, program.end);
        let expected = engine.report_interval(Nanos(program.end), meta(10.0));

        let rest = later.sums_since(&earlier);
        prop_assert_eq!(whole(&rest), whole(&expected));
        let (before, seen) = (threads_of(&earlier), threads_of(&expected));
        let threads: BTreeMap<_, _> = threads_of(&later)
            .into_iter()
            .filter_map(|(tid, row)| match before.get(&tid) {
                Some(before) => Some((tid, row.since(before)?)),
                None => Some((tid, row)),
            })
            .collect();
        prop_assert_eq!(counts(&threads), counts(&seen));
        for (tid, row) in &threads {
            // It is only known to begin after what was seen before.
            prop_assert!(row.first_ns <= seen[tid].first_ns && row.last_ns == seen[tid].last_ns);
        }
        let before = paths_of(&earlier);
        let paths: BTreeMap<_, _> = paths_of(&later)
            .into_iter()
            .map(|(path, row)| match before.get(&path) {
                Some(before) => (path, row.since(before)),
                None => (path, row),
            })
            .collect();
        prop_assert_eq!(sums(&paths), sums(&paths_of(&expected)));
        if shorter_than == 0 {
            let tracked = (rest.tracked_ns, rest.tracked_percent);
            prop_assert_eq!(tracked, (expected.tracked_ns, expected.tracked_percent));
        }
    }
}
