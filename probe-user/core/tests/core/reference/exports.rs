//! Tests that an export of a part of a recording has the calls that a report of the same query
//! counts.

use crate::reference::program::*;
use crate::reference::replay::{cuts, record};
use crate::support::PID;
use ctrace_core::filter::{Filter, ThreadFilter};
use ctrace_core::formats::{Coverage, Export, Format, Options};
use ctrace_core::recording::Recording;
use ctrace_core::recording::replay::{Query, report};
use ctrace_core::report::Report;
use ctrace_core::units::{Nanos, Tid};
use proptest::option::weighted;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;
use serde_json::Value;
use std::collections::BTreeMap;

fn export(format: &str, recording: &Recording, query: &Query) -> (String, Coverage) {
    let format = Format::find(format).expect("a format of the registry");
    let mut bytes = Vec::new();
    let export = Export { recording, query, options: Options::default(), progress: &|_| {} };
    let told = format.write(&export, &mut bytes).expect("memory takes all");
    (String::from_utf8(bytes).expect("UTF-8"), told)
}

/// Returns by path: calls, open calls, untimed calls, and the time of ended calls.
fn by_path(lines: &str) -> BTreeMap<String, [u64; 4]> {
    let mut paths = BTreeMap::<String, [u64; 4]>::new();
    for line in lines.lines() {
        let call: Value = serde_json::from_str(line).expect("JSON");
        let path = call["path"].as_array().expect("a path").iter();
        let path: Vec<&str> = path.filter_map(Value::as_str).collect();
        let is = |key: &str| call[key].as_bool().expect("a truth");
        let row = paths.entry(path.join(";")).or_default();
        row[0] += 1;
        row[1] += u64::from(is("open"));
        row[2] += u64::from(!is("open") && !is("timed"));
        let duration = call["duration_ns"].as_u64().expect("a time");
        row[3] += if is("open") { 0 } else { duration };
    }
    paths
}

/// Generates a choice of one of the functions.
fn one() -> impl Strategy<Value = Option<Vec<bool>>> {
    weighted(0.3, (0..FUNCTIONS).prop_map(|one| (0..FUNCTIONS).map(|f| f == one).collect()))
}

fn query() -> impl Strategy<Value = Query> {
    let filter = (weighted(0.3, 0u64..800), weighted(0.3, 1u32..5), weighted(0.3, 0..THREADS));
    let some = prop::collection::vec(any::<bool>(), FUNCTIONS as usize);
    let window = weighted(0.4, (0u64..60, 40u64..=100));
    (filter, weighted(0.3, some), one(), one(), one(), window, any::<bool>()).prop_map(
        |((min, max_depth, thread), functions, callers, callees, roots, window, fold)| Query {
            filter: Filter {
                min_duration: Nanos(min.unwrap_or(0)),
                max_depth,
                threads: thread
                    .map(|t| ThreadFilter::Tid(Tid(PID + t as u32)))
                    .into_iter()
                    .collect(),
            },
            functions,
            callers,
            callees,
            roots,
            window: window.map(|(from, to)| Nanos(from)..Nanos(from.max(to))),
            fold_recursion: fold,
            ..Query::default()
        },
    )
}

/// The threads that a part of a report is about are those with their system's ids.
#[test]
fn threads_by_their_numbers_are_those_by_their_ids() {
    let mut runner = TestRunner::deterministic();
    for _ in 0..30 {
        let program = run(&steps(true).new_tree(&mut runner).expect("steps").current());
        let recording = record(&program, &[]);
        let mut all = 0;
        for thread in recording.threads() {
            let filter =
                Filter { threads: vec![ThreadFilter::Tid(thread.tid)], ..Filter::default() };
            let by_id = Query { filter, ..Query::default() };
            let by_number = Query { threads: Some([thread.id].into()), ..Query::default() };
            let [by_id, by_number] =
                [by_id, by_number].map(|query| report(&recording, &query, 1.0));
            // Others' calls are not filtered out of a part, but no part of it.
            let of = |it: &Report| (it.functions.clone(), it.threads.clone(), it.paths.clone());
            let text = |report: &Report| serde_json::to_string(&of(report)).expect("JSON");
            assert_eq!(text(&by_id), text(&by_number));
            all += by_number.functions.iter().map(|function| function.calls).sum::<u64>();
        }
        let whole = report(&recording, &Query::default(), 1.0);
        assert_eq!(whole.functions.iter().map(|function| function.calls).sum::<u64>(), all);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_export_has_the_calls_of_a_report(steps in steps(true), cuts in cuts(), query in query()) {
        let program = run(&steps);
        let recording = record(&program, &cuts);
        let at = |percent: Nanos| Nanos(program.end * percent.0 / 100);
        let window = query.window.clone().map(|window| at(window.start)..at(window.end));
        let query = Query { window, ..query };
        let report = report(&recording, &query, 10.0);
        let (lines, told) = export("jsonl", &recording, &query);
        prop_assert_eq!(told.filtered_calls, report.filtered_calls);
        prop_assert_eq!(told.lost, report.loss);
        let mut of_report = BTreeMap::new();
        for path in report.paths.iter().filter(|path| path.calls > 0) {
            of_report.insert(path.path.join(";"), (path.calls, path.total_ns.0));
        }
        let got = by_path(&lines);
        let sums = got.iter().map(|(path, [calls, .., time])| (path.clone(), (*calls, *time)));
        prop_assert_eq!(sums.collect::<BTreeMap<_, _>>(), of_report);
        let told_of = |place: usize| got.values().map(|row| row[place]).sum::<u64>();
        prop_assert_eq!(told_of(1), report.loss.calls_open);
        prop_assert_eq!(told_of(2), report.loss.calls_untimed);
        // Open calls have time in an export, but not in a report.
        if report.loss.calls_open == 0 {
            let own: BTreeMap<String, u64> = report.paths.iter()
                .filter(|path| path.self_ns.0 > 0)
                .map(|path| (path.path.join(";"), path.self_ns.0))
                .collect();
            let folded = export("folded", &recording, &query).0;
            let folded = folded.lines().filter_map(|line| line.rsplit_once(' '));
            let folded = folded.map(|(path, own)| (path.to_owned(), own.parse().expect("digits")));
            prop_assert_eq!(folded.collect::<BTreeMap<String, u64>>(), own);
        }
    }
}
