//! Tests of adding and subtracting stretches.

use super::*;
use crate::report::LossReport;
use crate::report::rendered::tests::row;
use crate::stats::Summary;
use crate::units::{Pid, Tid};
use proptest::prelude::*;

/// The end of the trace.
const END: u64 = 1_000;

/// A call's entry and exit. Some calls last longer than the trace.
type Call = (u64, u64);

fn calls() -> impl Strategy<Value = Vec<Call>> {
    let call = (0..END, 1u64..400).prop_map(|(entry, length)| (entry, entry + length));
    prop::collection::vec(call, 0..30)
}

/// Returns times at which a trace is cut, including its start and end.
fn cuts() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(1..END, 0..6).prop_map(|mut cuts| {
        cuts.extend([0, END]);
        cuts.sort_unstable();
        cuts
    })
}

fn ended(calls: &[Call], from: u64, to: u64) -> impl Iterator<Item = &Call> {
    calls.iter().filter(move |call| call.1 > from && call.1 <= to)
}

/// Returns the observed row of a path in a period.
fn path_row(calls: &[Call], from: u64, to: u64) -> PathReport {
    let open = calls.iter().filter(|call| call.0 <= to && to < call.1).count() as u64;
    let lengths = || ended(calls, from, to).map(|call| call.1 - call.0);
    PathReport {
        path: vec!["f".into()],
        parent: None,
        function: 0,
        calls: lengths().count() as u64 + open,
        open,
        total_ns: Nanos(lengths().sum()),
        self_ns: Nanos(lengths().map(|length| length / 3).sum()),
        p50_ns: None,
        p90_ns: None,
        p99_ns: None,
        max_ns: lengths().max().map(Nanos),
        histogram: None,
        latencies: None,
    }
}

/// All that a row says, to compare it.
fn all(row: &impl std::fmt::Debug) -> String {
    format!("{row:?}")
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn paths_of_any_split_add_up_to_the_whole(calls in calls(), cuts in cuts()) {
        let mut rows = cuts.windows(2).map(|cut| path_row(&calls, cut[0], cut[1]));
        let mut sum = rows.next().expect("a trace has a begin and an end");
        rows.for_each(|row| sum.add(&row));
        prop_assert_eq!(all(&sum), all(&path_row(&calls, 0, END)));
    }

    #[test]
    fn the_rest_of_a_path_is_the_whole_without_its_begin(calls in calls(), cut in 1..END) {
        let rest = path_row(&calls, 0, END).since(&path_row(&calls, 0, cut));
        prop_assert_eq!(all(&rest), all(&path_row(&calls, cut, END).sums()));
    }
}

fn loss() -> impl Strategy<Value = LossReport> {
    prop::array::uniform9(0u64..1 << 40).prop_map(|counts| {
        let [events, late, calls_untimed, calls_open, calls_headless, ..] = counts;
        let [.., decode_errors, unreadable_calls, unreadable_bytes, payloads] = counts;
        LossReport {
            events,
            late,
            calls_untimed,
            points: calls_untimed / 2,
            calls_open,
            calls_headless,
            decode_errors,
            unreadable_calls,
            unreadable_bytes,
            payloads,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_rest_of_a_loss_is_what_was_added(earlier in loss(), later in loss()) {
        let mut both = earlier;
        both.add_later(&later);
        prop_assert_eq!(both.since(&earlier), later);
        prop_assert!(both.ended_unseen() <= both.calls_untimed);
        prop_assert_eq!(both.payloads, earlier.payloads + later.payloads);
        prop_assert_eq!(both.calls_open, later.calls_open);
        // Of two files at the same time, both have open calls.
        let mut beside = earlier;
        beside.add(&later);
        prop_assert_eq!(beside.calls_open, earlier.calls_open + later.calls_open);
    }
}

#[test]
fn since_undoes_add() {
    let path = |[calls, open, total, own]: [u64; 4]| PathReport {
        path: vec!["f".into()],
        calls,
        open,
        total_ns: Nanos(total),
        self_ns: Nanos(own),
        ..PathReport::default()
    };
    let (earlier, later) = (path([5, 2, 70, 30]), path([4, 1, 9, 8]));
    let mut both = earlier.clone();
    both.add(&later);
    assert_eq!((both.calls, both.open, both.total_ns, both.self_ns), (7, 1, Nanos(79), Nanos(38)));
    let left = both.since(&earlier);
    assert_eq!((left.calls, left.open, left.total_ns, left.self_ns), (4, 1, Nanos(9), Nanos(8)));

    let thread = |calls, open, first, last| ThreadReport {
        pid: Pid(7),
        tid: Tid(8),
        name: "worker".into(),
        calls,
        open,
        first_ns: Nanos(first),
        last_ns: Nanos(last),
    };
    let (earlier, later) = (thread(5, 2, 10, 20), thread(4, 1, 25, 30));
    let mut both = earlier.clone();
    both.add(&later);
    assert_eq!((both.calls, both.open), (7, 1));
    assert_eq!((both.first_ns, both.last_ns), (Nanos(10), Nanos(30)));
    let left = both.since(&earlier).expect("calls are left");
    assert_eq!((left.calls, left.open, left.first_ns), (4, 1, Nanos(20)));
    // It stays in its call, and is gone once that has ended.
    assert_eq!(both.since(&both).map(|left| (left.calls, left.open)), Some((1, 1)));
    let ended = ThreadReport { open: 0, ..both };
    assert!(ended.since(&ended).is_none());
}

/// The first stretch is armed throughout, the second for a fifth of the time.
#[test]
fn estimates_of_a_row_add_up_and_are_taken_apart() {
    let first = row(Summary::of(&[3, 4].map(Nanos)), Nanos(1_000));
    let mut second = row(Summary::of(&[6].map(Nanos)), Nanos(500));
    let estimate = SampledReport {
        armed_ns: Nanos(100),
        armed_percent: 20.0,
        windows: 2,
        calls: Some(5),
        calls_error: Some(1),
        total_ns: Some(Nanos(30)),
        active_ns: None,
    };
    second.sampled = Some(estimate);
    let mut both = first.clone();
    both.add(&second, Nanos(1_500));
    let sum = both.sampled.expect("an estimate");
    assert_eq!((sum.armed_ns, sum.windows, sum.calls), (Nanos(1_100), 2, Some(7)));
    assert_eq!((sum.total_ns, sum.active_ns), (Some(Nanos(37)), None));
    let left = sum.since(&first.sampled_over(Nanos(1_000)), &second);
    assert_eq!((left.armed_ns, left.armed_percent), (Nanos(100), 20.0));
    assert_eq!((left.calls, left.total_ns, left.active_ns), (Some(5), Some(Nanos(30)), None));
}
