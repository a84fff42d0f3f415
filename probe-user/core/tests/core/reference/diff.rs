//! Tests that a comparison's numbers are those of the reports, for any stretches of time.

use crate::reference::program::*;
use crate::reference::replay::{cuts, long, record};
use ctrace_core::diff::{Content, Diff, FunctionDiff, Metric, Options, Source, Verdict, diff};
use ctrace_core::recording::Recording;
use ctrace_core::recording::replay::{Query, report};
use ctrace_core::units::Nanos;
use proptest::prelude::*;
use std::collections::BTreeMap;

/// Turns steps of nanoseconds into tenths of milliseconds, so that there are many stretches.
const FACTOR: u64 = 100_000;

fn compare(old: &Recording<Vec<u8>>, new: &Recording<Vec<u8>>, query: &Query) -> Diff {
    let source = |recording| Source {
        file: String::new(),
        content: Content::Recording { recording, query },
    };
    diff(&[source(old)], &[source(new)], &Options::default())
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
        let diff = compare(&recording, &recording, &query);
        let report = report(&recording, &query, 10.0);
        let called: Vec<_> = report.functions.iter().filter(|f| f.calls > 0).collect();
        prop_assert_eq!(diff.functions.len(), called.len());
        for expected in called {
            let got = diff.functions.iter().find(|f| f.name == expected.name).expect("it was called");
            prop_assert_eq!(got.compared.new_calls, expected.calls);
            prop_assert_eq!(amount(got, Metric::Calls, report.duration_ns), expected.calls - expected.open);
            for (metric, sum) in [
                (Metric::Total, expected.total_ns),
                (Metric::Own, expected.self_ns),
                (Metric::Exclusive, expected.active_exclusive_ns),
            ] {
                let amount = amount(got, metric, report.duration_ns);
                prop_assert!(same(amount, sum.0), "{metric:?}: {amount} for {}", sum.0);
            }
            for (metric, rank) in [(Metric::Mean, expected.durations.mean_ns), (Metric::P99, expected.durations.p99_ns)] {
                let got = got.compared.changes.of(metric).old;
                prop_assert_eq!(got.is_some(), rank.is_some());
            }
        }
        let paths: BTreeMap<String, u64> =
            diff.paths.iter().map(|p| (p.path.join(">"), p.compared.old_calls)).collect();
        let expected: BTreeMap<String, u64> = report.paths.iter().filter(|p| p.calls > 0)
            .map(|p| (p.path.join(">"), p.calls)).collect();
        prop_assert_eq!(paths, expected);
    }

    #[test]
    fn a_recording_does_not_differ_from_itself(steps in steps(true), cuts in cuts(), others in cuts()) {
        let program = run(&long(steps, FACTOR));
        let diff = compare(&record(&program, &cuts), &record(&program, &others), &Query::default());
        for function in &diff.functions {
            for metric in Metric::ALL {
                let change = function.compared.changes.of(metric);
                prop_assert_eq!(change.old, change.new);
                prop_assert!(matches!(change.verdict, Verdict::Noise | Verdict::NoChange | Verdict::TooFew));
            }
        }
        prop_assert!(!diff.failed);
    }
}
