//! Tests that a comparison's numbers are those of the reports, for any stretches of time.

use crate::reference::program::*;
use crate::reference::replay::{cuts, long, record};
use ctrace_core::diff::{
    ComparedFile, Content, Diff, FunctionDiff, Metric, Options, Verdict, diff,
};
use ctrace_core::recording::Recording;
use ctrace_core::recording::replay::{Query, report};
use ctrace_core::report::FunctionReport;
use ctrace_core::units::Nanos;
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Turns steps of nanoseconds into tenths of milliseconds, so that there are many stretches.
const FACTOR: u64 = 100_000;

/// Compares by all metrics, two at a time.
fn compare(old: &Recording, new: &Recording, query: &Query) -> Vec<Diff> {
    let source = |recording| ComparedFile {
        file: String::new(),
        content: Content::Recording { recording, query },
    };
    let others: Vec<_> = Metric::all().skip(Metric::USUAL.len()).collect();
    let compare = |asked: &[Metric]| {
        let sort = asked.get(1).copied();
        let options = Options { metric: asked[0], sort, ..Options::default() };
        diff(&[source(old)], &[source(new)], &options)
    };
    others.chunks(2).map(compare).collect()
}

/// Returns the number of the report that a metric has per second: of calls, those that ended.
fn expected_amount(row: &FunctionReport, metric: Metric) -> u64 {
    let number = (metric.number().number().of)(row).whole().expect("sums are whole");
    number - if metric == Metric::CALLS { row.open } else { 0 }
}

/// Returns the total amount of a rate.
fn amount(function: &FunctionDiff, metric: Metric, duration: Nanos) -> u64 {
    let rate = function.compared.changes.of(metric).new.unwrap_or(0.0);
    (rate * duration.0 as f64 / 1e9).round() as u64
}

/// Returns true if the numbers agree within the three decimals of a rate.
fn same(got: u64, expected: u64) -> bool {
    got.abs_diff(expected) as f64 <= 1.0 + expected as f64 * 1e-6
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn stretches_add_up_to_the_report(
        steps in steps(true), cuts in cuts(),
        window in prop_oneof![Just(None), (0u64..50, 50u64..=100).prop_map(Some)],
        only in prop_oneof![Just(None), prop::collection::vec(any::<bool>(), FUNCTIONS as usize).prop_map(Some)],
        callee in prop_oneof![Just(None), (0..FUNCTIONS).prop_map(Some)],
    ) {
        let program = run(&long(steps, FACTOR));
        let recording = record(&program, &cuts);
        let at = |percent: u64| Nanos(program.end * percent / 100);
        let query = Query {
            window: window.map(|(from, to)| at(from)..at(to)),
            functions: only,
            callees: callee.map(|callee| (0..FUNCTIONS).map(|f| f == callee).collect()),
            ..Query::default()
        };
        let diffs = compare(&recording, &recording, &query);
        let report = report(&recording, &query, 10.0);
        let called: Vec<_> = report.functions.iter().filter(|f| f.calls > 0).collect();
        let mut seen = BTreeSet::new();
        for (diff, expected) in diffs.iter().flat_map(|diff| called.iter().map(move |row| (diff, row))) {
            prop_assert_eq!(diff.functions.len(), called.len());
            let got = diff.functions.iter().find(|f| f.name == expected.name).expect("it was called");
            prop_assert_eq!(got.compared.new_calls, expected.calls);
            for &metric in &diff.metrics {
                seen.insert(metric.name());
                let number = metric.number().number();
                if metric.is_rate() {
                    let amount = amount(got, metric, report.duration_ns);
                    let expected = expected_amount(expected, metric);
                    prop_assert!(same(amount, expected), "{metric:?}: {amount} for {expected}");
                } else {
                    let is_known = got.compared.changes.of(metric).old.is_some();
                    prop_assert_eq!(is_known, (number.of)(expected).real().is_some());
                }
            }
        }
        prop_assert!(called.is_empty() || seen.len() == Metric::all().count(), "{:?}", seen);
        let diff = &diffs[0];
        let paths: BTreeMap<String, u64> =
            diff.paths.iter().map(|p| (p.path.join(">"), p.compared.old_calls)).collect();
        let expected: BTreeMap<String, u64> = report.paths.iter().filter(|p| p.calls > 0)
            .map(|p| (p.path.join(">"), p.calls)).collect();
        prop_assert_eq!(paths, expected);
    }

    #[test]
    fn a_recording_does_not_differ_from_itself(steps in steps(true), cuts in cuts(), others in cuts()) {
        let program = run(&long(steps, FACTOR));
        for diff in compare(&record(&program, &cuts), &record(&program, &others), &Query::default()) {
            for function in &diff.functions {
                for &metric in &diff.metrics {
                    let change = function.compared.changes.of(metric);
                    prop_assert_eq!(change.old, change.new);
                    prop_assert!(matches!(change.verdict, Verdict::Noise | Verdict::NoChange | Verdict::TooFew));
                }
            }
            prop_assert!(!diff.failed);
        }
    }
}
