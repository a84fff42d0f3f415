//! Tests the times without the cost of probes, on rows and paths with known numbers.

use super::*;
use crate::function::FunctionInfo;
use crate::function::ProbeCost;
use crate::report::probes::fill;
use crate::report::{PathReport, ProcessorTimes};
use crate::report::{RestoredTimes, SplitReport};

const ALONE: ProcessorTimes = ProcessorTimes { used_ns: Nanos(7), waited_ns: Nanos(0) };

fn path(function: usize, parent: Option<usize>, calls: u64) -> PathReport {
    PathReport { parent, function, calls, ..PathReport::default() }
}

fn known(net: Option<Net>) -> Option<Nanos> {
    net.and_then(Net::known)
}

fn row(call: u64, inside: u64) -> FunctionReport {
    let (call_ns, inside_ns) = (Nanos(call), Nanos(inside));
    let probe = Some(ProbeCost { call_ns, inside_ns, measured: true, ..ProbeCost::default() });
    let mut row = FunctionReport::new(&FunctionInfo { probe, ..FunctionInfo::new("f", "p") });
    (row.calls, row.total_ns, row.self_ns) = (10, Nanos(9_000), Nanos(5_000));
    row.durations.mean_ns = Some(Nanos(900));
    row
}

#[test]
fn calls_inside_cost_all_of_their_probes_and_own_ones_a_part() {
    let mut rows = [row(100, 30), row(40, 25), row(6, 4)];
    let paths = [path(0, None, 2), path(1, Some(0), 10), path(2, Some(1), 30)];
    fill(&mut rows, &paths, &[0; 9], ALONE);
    let times = |row: &FunctionReport| row.probes.map(|it| (it.total_ns.0, it.self_ns.0));
    // 2·30 + 10·40 + 30·6, and 2·30 + 10·15; 10·25 + 30·6, and 10·25 + 30·2; 30·4 twice.
    assert_eq!(rows.each_ref().map(times), [(640, 210), (430, 310), (120, 120)].map(Some));
    assert_eq!(known(rows[0].net_total()), Some(Nanos(9_000 - 640)));
    assert_eq!(known(rows[0].net_self()), Some(Nanos(5_000 - 210)));
    assert_eq!(known(rows[1].net(rows[1].durations.mean_ns)), Some(Nanos(900 - 43)));
}

/// Probes that are hit rarely may cost more than in a loop, those of calls inside as well.
#[test]
fn what_a_cold_probe_may_cost_more_is_an_error() {
    let mut rows = [row(100, 30), row(40, 25)];
    let paths = [path(0, None, 10), path(1, Some(0), 20)];
    fill(&mut rows, &paths, &[200, 10], ALONE);
    let errors = |row: &FunctionReport| row.probes.map(|it| (it.total_error_ns, it.self_error_ns));
    // 10 calls of 30, which may be 90; 20 calls of 40, or of 44, of which 25, or 27, are in the callee. Each may
    // also be wrong by a tenth.
    assert_eq!(errors(&rows[0]), Some((Nanos(600 + 80 + 110), Nanos(600 + 20 + 50))));
    assert_eq!(errors(&rows[1]), Some((Nanos(40 + 40), Nanos(40 + 40))));
    assert_eq!(rows[0].probes.map(|it| it.total_ns), Some(Nanos(300 + 800)));
}

#[test]
fn a_rest_within_the_error_is_not_known_and_guesses_are_not_subtracted() {
    let mut rows = [row(4_000, 800)];
    fill(&mut rows, &[path(0, None, 10)], &[0; 9], ALONE);
    assert!(rows[0].is_mostly_probes());
    // 9,000 less 8,000, which may be wrong by 800.
    let [ns, error, most] = [1_000, 800, 1_800].map(Nanos);
    assert_eq!(rows[0].net_total(), Some(Net { ns, error, most }));
    assert_eq!((known(rows[0].net_total()), known(rows[0].net_self())), (None, None));
    // Its own probes cost at least 800 less 400.
    let most = |ns| rows[0].net(Some(Nanos(ns))).map(|net| net.most);
    assert_eq!([801, 790].map(most), [401, 390].map(|ns| Some(Nanos(ns))));
    let net = [960, 959].map(|ns| known(rows[0].net(Some(Nanos(ns)))));
    assert_eq!(net, [Some(Nanos(160)), None]);
    if let Some(probes) = &mut rows[0].probes {
        probes.cost.measured = false;
    }
    assert_eq!((rows[0].net_total(), rows[0].net(Some(Nanos(5)))), (None, None));
}

#[test]
fn a_bound_is_not_above_what_is_told_of_a_longer_time() {
    let mut rows = [row(4_000, 800)];
    fill(&mut rows, &[path(0, None, 10)], &[0; 9], ALONE);
    // Each call lost 800, which may be wrong by 80. Its own probes cost at least 400.
    let durations = &mut rows[0].durations;
    (durations.p50_ns, durations.p99_ns) = (Some(Nanos(950)), Some(Nanos(980)));
    (durations.mean_ns, durations.max_ns) = (Some(Nanos(955)), Some(Nanos(1_000)));
    let all = |row: &FunctionReport| [row.net_p50(), row.net_mean(), row.net_p99()];
    let told = |net: Option<Net>| net.map(|net| net.known().unwrap_or(net.most).0);
    // The total is not known: 8,000 of 9,000 may be wrong by 800. So the long calls are not known either, and
    // each has its own bound. That of the mean follows from the total's, which is 1,800.
    assert_eq!(all(&rows[0]).map(told), [Some(550), Some(180), Some(580)]);
    assert_eq!(all(&rows[0]).map(known), [None; 3]);
    // That is so of a total of 10,000: then they are 180 and 200, or 80 more.
    rows[0].total_ns = Nanos(10_000);
    assert_eq!(all(&rows[0]).map(told), [Some(260), Some(280), Some(180)]);
    assert_eq!(all(&rows[0]).map(known), [None, None, Some(Nanos(180))]);
    // 1,640, or 900 more, of a total of 1,700, or 800 more.
    let row = &mut rows[0];
    (row.total_ns, row.self_ns) = (Nanos(9_700), Nanos(9_640));
    if let Some(probes) = &mut row.probes {
        probes.self_error_ns = Nanos(900);
    }
    assert_eq!((told(row.net_total()), told(row.net_self())), (Some(1_700), Some(2_500)));
    assert_eq!(known(row.net_self()), None);
}

#[test]
fn what_putting_addresses_back_took_is_an_error_of_the_calls_that_were_open() {
    let mut rows = [row(100, 30)];
    fill(&mut rows, &[path(0, None, 10)], &[0; 9], ALONE);
    let row = &mut rows[0];
    (row.timed, row.untimed) = (9, 1);
    let durations = &mut row.durations;
    (durations.p50_ns, durations.p99_ns, durations.max_ns) =
        (Some(Nanos(900)), Some(Nanos(950)), Some(Nanos(1_000)));
    let restored =
        |calls, total, own| RestoredTimes { calls, total_ns: Nanos(total), self_ns: Nanos(own) };
    let all = |row: &FunctionReport| {
        [
            row.net_total(),
            row.net_self(),
            row.net_mean(),
            row.net_p50(),
            row.net_p99(),
            row.net_max(),
        ]
    };
    let before = all(row);
    assert!(before.iter().all(|net| known(*net).is_some()));
    // One call was open, and that one ended unseen: it has no duration.
    row.restored = restored(1, 6_000, 100);
    let now = all(row);
    assert_eq!((known(now[0]), known(now[1])), (None, known(before[1])));
    assert_eq!(now[0].map(|net| net.most), before[0].map(|net| net.most));
    assert_eq!(now[2..], before[2..]);
    // One more that has a duration may be the longest, and is a part of the mean, but not the median.
    row.restored = restored(2, 6_000, 6_000);
    let now = all(row).map(|net| known(net).is_some());
    assert_eq!(now, [false, false, false, true, false, false]);
    row.restored = restored(9, 6_000, 6_000);
    assert_eq!(known(row.net_p50()), None);
}

#[test]
fn a_few_long_calls_do_not_hide_what_the_median_shows() {
    let mostly = |p50: Option<u64>| {
        let mut rows = [row(100, 80), row(300, 120)];
        // All calls inside may be in the longest of the ten.
        fill(&mut rows, &[path(0, None, 10), path(1, Some(0), 9)], &[0; 9], ALONE);
        (rows[0].timed, rows[0].durations.p50_ns) = (10, p50.map(Nanos));
        rows[0].is_mostly_probes()
    };
    // 800 and 2,700 of a total of 9,000, and 80 of the median.
    assert_eq!([Some(160), Some(161), None].map(mostly), [true, false, false]);
    // 800 of more than ten times that.
    let mut rows = [row(100, 80)];
    fill(&mut rows, &[path(0, None, 10)], &[0; 9], ALONE);
    (rows[0].timed, rows[0].durations.p50_ns) = (10, Some(Nanos(100)));
    let mut mostly = |total| {
        rows[0].total_ns = Nanos(total);
        rows[0].is_mostly_probes()
    };
    assert_eq!([8_000, 8_001].map(&mut mostly), [true, false]);
}

#[test]
fn the_cost_of_probes_is_no_part_of_the_waits() {
    let mut rows = [row(400, 300)];
    fill(&mut rows, &[path(0, None, 10)], &[0; 9], ALONE);
    // Of 9,000, probes took 3,000, which may be wrong by 300.
    let parts = |running, runnable, blocked| SplitReport {
        running_ns: Some(Nanos(running)),
        runnable_ns: Some(Nanos(runnable)),
        blocked_ns: Some(Nanos(blocked)),
    };
    let mut net = |split| {
        rows[0].split = split;
        rows[0].net_total().map(|net| (net.ns, net.most))
    };
    assert_eq!(net(parts(4_000, 3_000, 2_000)), Some((Nanos(6_000), Nanos(6_300))));
    assert_eq!(net(parts(2_000, 5_000, 2_000)), Some((Nanos(7_000), Nanos(7_300))));
}

#[test]
fn what_each_call_makes_inside_is_in_the_median() {
    let mostly = |p50: u64| {
        let mut rows = [row(100, 80), row(300, 120), row(70, 9)];
        let paths = [path(0, None, 10), path(1, Some(0), 15), path(2, Some(1), 30)];
        fill(&mut rows, &paths, &[0; 9], ALONE);
        (rows[0].timed, rows[0].total_ns) = (10, Nanos(60_000));
        rows[0].durations.p50_ns = Some(Nanos(p50));
        rows[0].is_mostly_probes()
    };
    // 80, one and a half times 300, and thrice 70.
    assert_eq!([1_480, 1_482].map(mostly), [true, false]);
}

#[test]
fn costs_that_vary_leave_less_that_is_known() {
    let times = |error_ns| {
        let mut rows = [row(40, 30), row(100, 20)];
        if let Some(probes) = &mut rows[1].probes {
            probes.cost.error_ns = Nanos(error_ns);
        }
        fill(&mut rows, &[path(0, None, 10), path(1, Some(0), 45)], &[0; 9], ALONE);
        rows
    };
    // 9,000 less 300 and 4,500; these may be wrong by 30 and 450.
    let steady = times(0);
    assert_eq!(steady[0].probes.map(|it| it.total_error_ns), Some(Nanos(480)));
    assert_eq!(known(steady[0].net_total()), Some(Nanos(4_200)));
    assert_eq!(steady[0].net_total().map(Net::is_rough), Some(true));
    // By 30 and 2,250.
    let varying = times(50);
    assert_eq!(known(varying[0].net_total()), None);
    assert_eq!(varying[0].net(Some(Nanos(901))).map(|net| net.error), Some(Nanos(228)));
}

#[test]
fn own_time_is_never_more_than_the_total() {
    let mut rows = [row(100, 90)];
    fill(&mut rows, &[path(0, None, 10)], &[0; 9], ALONE);
    rows[0].self_ns = Nanos(9_000);
    if let Some(probes) = &mut rows[0].probes {
        probes.self_ns = Nanos(400);
    }
    assert_eq!(rows[0].net_self(), rows[0].net_total());
    assert_eq!(known(rows[0].net_self()), Some(Nanos(8_100)));
}

/// Each nanosecond of probes may have kept the threads waiting for three more, whichever of them ran
/// the probes. Most single calls have none of these waits.
#[test]
fn waits_for_processors_make_sums_uncertain() {
    let mut rows = [row(100, 40)];
    let times = ProcessorTimes { used_ns: Nanos(2_000), waited_ns: Nanos(6_000) };
    fill(&mut rows, &[path(0, None, 10)], &[0; 9], times);
    let [row] = &rows;
    let net = row.net_total().expect("its costs were measured");
    assert_eq!((net.ns, net.error), (Nanos(8_600), Nanos(40 + 1_200)));
    assert!(net.is_rough() && net.known().is_some());
    let one = row.net(Some(Nanos(900))).expect("its costs were measured");
    assert_eq!((one.ns, one.error), (Nanos(860), Nanos(4)));
    let mean = row.net_mean().expect("its costs were measured");
    assert_eq!((mean.ns, mean.error), (Nanos(860), Nanos(124)));
}

/// A single call has one duration, so its numbers cannot differ.
#[test]
fn all_times_of_one_call_are_the_same() {
    let mut one = FunctionReport { calls: 1, timed: 1, total_ns: Nanos(900), ..row(4_000, 800) };
    one.self_ns = one.total_ns;
    let mut rows = [one];
    fill(&mut rows, &[path(0, None, 1)], &[0; 9], ALONE);
    let duration = Some(rows[0].total_ns);
    let durations = &mut rows[0].durations;
    (durations.p50_ns, durations.p99_ns, durations.max_ns) = (duration, duration, duration);
    durations.mean_ns = duration;
    let row = &rows[0];
    let told = [row.net_self(), row.net_mean(), row.net_p50(), row.net_p99(), row.net_max()];
    assert_eq!(told.map(|net| net.map(|net| net.most)), [row.net_total().map(|net| net.most); 5]);
}

/// The mean times the calls is the total, also where only the most is told of both.
#[test]
fn bounds_of_a_total_and_its_mean_agree() {
    let mut rows = [row(4_000, 800)];
    fill(&mut rows, &[path(0, None, 10)], &[0; 9], ALONE);
    rows[0].durations.mean_ns = Some(Nanos(900));
    let most = |net: Option<Net>| net.map(|net| net.most.0);
    let (total, mean) = (most(rows[0].net_total()), most(rows[0].net_mean()));
    assert_eq!(total.zip(mean).map(|(total, mean)| (total, mean * 10)), Some((1_800, 1_800)));
}
