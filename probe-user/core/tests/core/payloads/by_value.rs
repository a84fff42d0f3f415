//! Calls by their values, against a count of all calls.

use super::*;
use ctrace_core::report::render::RowKind;
use ctrace_core::report::render::csv;
use ctrace_core::report::render::rows::RowChoice;
use ctrace_core::report::{ByValue, ValueCalls};
use std::collections::BTreeMap;

const LOAD: u32 = 2;

fn by_value(recording: &Recording, query: &Query, most: usize) -> Report {
    let extras = Extras { values: Some(most), ..Extras::default() };
    report_with(recording, query, meta_with(extras))
}

/// Records calls of `load`: the key of each, and its duration.
fn recorded(calls: &[(u64, u64)], every: usize) -> Recording {
    let mut trace = Trace::new(Filter::default());
    let mut time = 10;
    for (at, (key, duration)) in calls.iter().enumerate() {
        trace.push_with(enter(LOAD, 900, time), 0, &[*key], 0);
        trace.push(ret(LOAD, 900, time + duration));
        time += duration + 5;
        if at % every == every - 1 {
            trace.chunk(time - 2);
        }
    }
    open(trace.end(time))
}

fn rows(table: &ByValue) -> Vec<(String, ValueCalls)> {
    table.rows.iter().map(|row| (row.value.to_string(), row.of)).collect()
}

#[test]
fn the_values_with_the_most_time_come_first() {
    let recording = recorded(&[(7, 100), (8, 30), (9, 1_000), (8, 50), (7, 300), (3, 2)], 2);
    let report = by_value(&recording, &Query::default(), 2);
    let [table] = &report.values[..] else { panic!("{:?}", report.values) };
    assert_eq!((table.function, &*table.name, table.is_result), (2, "key", false));
    let shown: Vec<_> = rows(table)
        .into_iter()
        .map(|(value, of)| (value, of.calls, of.total_ns.0, of.max_ns.map(|ns| ns.0)))
        .collect();
    let expected = [("9".to_owned(), 1, 1_000, Some(1_000)), ("7".to_owned(), 2, 400, Some(300))];
    assert_eq!(shown, expected);
    let others = table.others.expect("there are some");
    assert_eq!((others.calls, others.total_ns, others.p50_ns), (3, Nanos(82), Some(Nanos(30))));
    assert_eq!((table.unread, table.unsure), (None, false));
    let csv = csv::render(&report, RowKind::Values, &RowChoice::default()).expect("no sort");
    let expected = "load,app,key,value,9,1,1,1000,1000,1000,1000,1000,1000,\n";
    assert!(csv.contains(expected), "{csv}");
    assert!(csv.contains("load,app,key,others,,3,3,82,27,30,50,50,50,\n"), "{csv}");
    // The longest call is the end of its bucket or less.
    let report = by_value(&recorded(&[(4, 2_110_001)], 1), &Query::default(), 1);
    let of = report.values[0].rows[0].of;
    assert_eq!([of.p50_ns, of.p99_ns, of.max_ns], [Some(Nanos(2_110_001)); 3]);
}

#[test]
fn what_could_not_be_read_and_what_has_no_duration_has_a_row() {
    let report = by_value(&open(typical()), &Query::default(), 5);
    let of = |table: &ByValue| (table.name.to_string(), rows(table).len(), table.unread);
    let tables: Vec<_> = report.values.iter().map(of).collect();
    assert_eq!(tables.len(), 2);
    assert_eq!((tables[0].0.as_str(), tables[0].1, tables[0].2), ("arg0", 2, None));
    let unread = tables[1].2.expect("one was not");
    assert_eq!((tables[1].1, unread.calls, unread.timed, unread.mean_ns), (1, 1, 0, None));
    let json = serde_json::to_value(&report).expect("a report is JSON");
    assert_eq!(json["values"][0]["rows"][0]["value"], -3);
    assert!(json["values"][0].get("others").is_none());
}

#[test]
fn a_filter_leaves_out_its_calls() {
    let recording = recorded(&[(1, 10), (2, 20), (1, 1_000)], 9);
    let filter = Filter { min_duration: Nanos(15), ..Filter::default() };
    let report = by_value(&recording, &Query { filter, ..Query::default() }, 5);
    let calls: Vec<_> = rows(&report.values[0]).into_iter().map(|(v, of)| (v, of.calls)).collect();
    assert_eq!(calls, [("1".to_owned(), 1), ("2".to_owned(), 1)]);
    assert!(super::report(&recording, &Query::default()).values.is_empty(), "nobody asked for it");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Rows, others and all together are what a count of the calls gives.
    #[test]
    fn any_calls(
        calls in prop::collection::vec((0_u64..12, 1_u64..5_000_000), 1..120),
        every in 1_usize..40,
        most in 1_usize..8,
    ) {
        let mut sums = BTreeMap::<u64, (u64, u64, u64)>::new();
        for (key, duration) in &calls {
            let sum = sums.entry(*key).or_default();
            *sum = (sum.0 + 1, sum.1 + duration, sum.2.max(*duration));
        }
        let report = by_value(&recorded(&calls, every), &Query::default(), most);
        let [table] = &report.values[..] else { panic!("{:?}", report.values) };
        prop_assert_eq!(table.rows.len(), most.min(sums.len()));
        let weights = table.rows.iter().map(|row| row.of.total_ns.0 + row.of.calls);
        let least = weights.min().expect("there are calls");
        let mut left = sums.clone();
        for row in &table.rows {
            let Value::Unsigned(key) = row.value else { panic!("{row:?}") };
            let sum = left.remove(&key).expect("each value once");
            let mut durations: Vec<u64> =
                calls.iter().filter(|call| call.0 == key).map(|call| call.1).collect();
            durations.sort_unstable();
            let at = |percent: usize| {
                Some(Nanos(durations[(durations.len() * percent).div_ceil(100) - 1]))
            };
            prop_assert_eq!(
                [row.of.p50_ns, row.of.p90_ns, row.of.p99_ns],
                [at(50), at(90), at(99)],
                "of {:?}",
                durations
            );
            prop_assert_eq!(
                (row.of.calls, row.of.timed, row.of.total_ns.0, row.of.max_ns),
                (sum.0, sum.0, sum.1, Some(Nanos(sum.2)))
            );
        }
        prop_assert!(left.values().all(|sum| sum.0 + sum.1 <= least));
        prop_assert!(!table.unsure);
        let others = (!left.is_empty()).then(|| {
            left.values().fold((0, 0), |all, sum| (all.0 + sum.0, all.1 + sum.1))
        });
        prop_assert_eq!(table.others.map(|it| (it.calls, it.total_ns.0)), others);
    }
}
