use super::*;

const SECOND: u64 = 1_000_000_000;

fn time(at: u64, own: u64) -> Time {
    Time { at: Nanos(at), own: Nanos(own) }
}

#[test]
fn nothing_is_estimated_of_what_was_armed_throughout() {
    let mut sampling = Sampling::default();
    sampling.armed_throughout(time(SECOND, SECOND), 100);
    assert_eq!(sampling.report(50, Nanos(7), Nanos(7)), None);
}

#[test]
fn an_estimate_holds_the_truth_within_its_error() {
    let mut sampling = Sampling::default();
    // A second throughout, then 100 with ten windows of 0.1 s each; about 1,000 events a second.
    sampling.armed_throughout(time(SECOND, SECOND), 1_000);
    sampling.in_windows(time(100 * SECOND, 100 * SECOND));
    for events in [96, 104, 99, 101, 97, 103, 100, 100, 98, 102] {
        sampling.window(time(SECOND / 10, SECOND / 10), events, Nanos(1_000_000));
    }
    let seen = 2_000;
    let report = sampling.report(seen, Nanos(4_000), Nanos(3_000)).unwrap();
    assert_eq!((report.windows, report.armed_ns), (10, Nanos(2 * SECOND)));
    assert_eq!((report.calls, report.total_ns), (Some(101_000), Some(Nanos(202_000))));
    let error = report.calls_error.unwrap();
    assert!((1_000..5_000).contains(&error), "{error}");
}

#[test]
fn the_work_of_a_slowed_target_is_what_counts() {
    let mut sampling = Sampling::default();
    // In windows it gets half as far.
    sampling.in_windows(time(10 * SECOND, 10 * SECOND));
    for _ in 0..5 {
        let spent = Nanos(SECOND / 20);
        sampling.window(time(SECOND / 10, SECOND / 20), 50, spent);
    }
    let report = sampling.report(250, Nanos::ZERO, Nanos::ZERO).unwrap();
    assert_eq!(report.calls, Some(10_000));
    // All windows are alike, but the cost of probes has an error of 15 %.
    assert_eq!(report.calls_error, Some(1_500));
}

/// A burst was seen before there were windows, and nothing in them: it may come again at any time.
#[test]
fn where_hardly_anything_was_seen_nothing_is_claimed() {
    let mut sampling = Sampling::default();
    sampling.armed_throughout(time(SECOND, SECOND), 32);
    sampling.in_windows(time(100 * SECOND, 100 * SECOND));
    sampling.window(time(SECOND, SECOND), 50, Nanos(1_000));
    assert_eq!(sampling.report(41, Nanos(1), Nanos(1)).unwrap().calls, None, "a single window");
    let mut seldom = Sampling::default();
    seldom.armed_throughout(time(SECOND, SECOND), 32);
    seldom.in_windows(time(100 * SECOND, 100 * SECOND));
    (0..3).for_each(|_| seldom.window(time(SECOND, SECOND), 0, Nanos(1_000)));
    assert_eq!(seldom.report(16, Nanos(1), Nanos(1)).unwrap().calls, None, "none in windows");
}

#[test]
fn where_windows_differ_too_much_nothing_is_claimed() {
    let estimate = |windows: &[u64]| {
        let mut sampling = Sampling::default();
        sampling.in_windows(time(100 * SECOND, 100 * SECOND));
        for events in windows {
            sampling.window(time(SECOND / 10, SECOND / 10), *events, Nanos(1_000));
        }
        let seen = windows.iter().sum();
        let report = sampling.report(seen, Nanos(1), Nanos(1)).unwrap();
        assert_eq!(report.calls.is_some(), report.total_ns.is_some());
        report.calls
    };
    assert_eq!(estimate(&[50, 60, 40, 50]), Some(50_000));
    assert_eq!(estimate(&[0, 0, 200, 0]), None);
}

#[test]
fn where_probes_took_all_nothing_is_claimed() {
    let mut sampling = Sampling::default();
    sampling.in_windows(time(10 * SECOND, 10 * SECOND));
    sampling.window(time(SECOND, SECOND / 100), 1_000_000, Nanos(99 * SECOND / 100));
    let report = sampling.report(1_000_000, Nanos(1), Nanos(1)).unwrap();
    assert_eq!((report.calls, report.calls_error, report.total_ns), (None, None, None));
    let mut never = Sampling::default();
    never.in_windows(time(SECOND, SECOND));
    assert_eq!(never.report(0, Nanos::ZERO, Nanos::ZERO).unwrap().calls, None);
}
