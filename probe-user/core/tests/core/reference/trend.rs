//! Tests that an interval of a trend has the numbers of a report of that time, from a recording cut into
//! chunks anywhere.

use crate::reference::program::*;
use crate::reference::replay::{cuts, long, record};
use ctrace_core::filter::Filter;
use ctrace_core::recording::replay::{Query, meta_of, report, report_with};
use ctrace_core::report::numbers::NumberId;
use ctrace_core::report::{Extras, FunctionReport, ReportMeta, TrendAsked};
use ctrace_core::units::Nanos;
use proptest::prelude::*;

/// The numbers that JSON has of an interval.
const NUMBERS: [&str; 15] = [
    "calls",
    "timed",
    "untimed",
    "open",
    "calls_per_second",
    "total",
    "min",
    "mean",
    "p50",
    "p75",
    "p90",
    "p95",
    "p99",
    "p999",
    "max",
];

fn numbers(row: &FunctionReport) -> Vec<Option<f64>> {
    let number = |name: &&str| NumberId::named(name).expect("a number of that name").number();
    NUMBERS.iter().map(|name| (number(name).of)(row).real()).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_interval_is_a_report_of_its_time(
        steps in steps(true), cuts in cuts(), factor in prop_oneof![Just(1u64), Just(1_000)],
        parts in 1u64..9,
        window in prop_oneof![Just(None), (0u64..50, 50u64..=100).prop_map(Some)],
        min in prop_oneof![Just(0), 0u64..800],
        callee in prop_oneof![Just(None), (0..FUNCTIONS).prop_map(Some)],
        functions in prop_oneof![Just(None), prop::collection::vec(any::<bool>(), FUNCTIONS as usize).prop_map(Some)],
    ) {
        let program = run(&long(steps, factor));
        let recording = record(&program, &cuts);
        let at = |percent: u64| Nanos(program.end * percent / 100);
        let query = Query {
            filter: Filter { min_duration: Nanos(min), ..Filter::default() },
            functions,
            callees: callee.map(|callee| (0..FUNCTIONS).map(|f| f == callee).collect()),
            window: window.map(|(from, to)| at(from)..at(to)),
            ..Query::default()
        };
        let interval = Some(Nanos((program.end / parts).max(1)));
        let extras = Extras { trend: Some(TrendAsked { interval }), ..Extras::default() };
        let whole = report_with(&recording, &query, ReportMeta { extras, ..meta_of(&recording, 0.0) });
        let trend = whole.trend.as_ref().expect("it was asked for");
        let edges = |n: usize| (trend.intervals[n].start_ns, trend.intervals[n].end_ns);
        let last = trend.intervals.len() - 1;
        prop_assert_eq!((edges(0).0, edges(last).1), (whole.start_ns, whole.end_ns));
        prop_assert!((0..last).all(|n| edges(n).1 == edges(n + 1).0));
        let called = whole.functions.iter().filter(|row| row.calls > 0).count();
        prop_assert_eq!((trend.functions.len(), trend.functions_left_out), (called, 0));
        for (n, interval) in trend.intervals.iter().enumerate() {
            let window = Some(interval.start_ns..interval.end_ns);
            let part = report(&recording, &Query { window, ..query.clone() }, 0.0);
            for of in &trend.functions {
                let (row, expected) = (&of.rows[n], &part.functions[of.function]);
                prop_assert_eq!(numbers(row), numbers(expected), "{} in {:?}", row.name, interval);
            }
            prop_assert_eq!(interval.loss.events, part.loss.events);
            prop_assert_eq!(interval.loss.calls_open, part.loss.calls_open);
        }
    }
}
