//! CTRACK's numbers, against an implementation that does what CTRACK's own code does: it sorts all
//! events, groups them, and subtracts. From a session and from a recording cut into chunks anywhere.

use crate::reference::definitions::*;
use crate::reference::program::*;
use crate::reference::replay::{cuts, long, record};
use crate::reference::{feed, start};
use crate::support::*;
use ctrace_core::engine::{EngineConfig, ReportMeta};
use ctrace_core::filter::Filter;
use ctrace_core::recording::replay::{Query, report_with};
use ctrace_core::report::numbers::Unit;
use ctrace_core::report::{CtrackReport, Extras, Report, SlowAsked, ctrack};
use ctrace_core::units::Nanos;
use proptest::prelude::*;
use std::cmp::Reverse;

const ASKED: Extras = Extras {
    histograms: false,
    path_histograms: false,
    latencies: false,
    path_latencies: false,
    ctrack: true,
    slowest_calls: None,
    timeline_lanes: None,
    frames: None,
    values: None,
    wakers: None,
    plots: false,
    locks: false,
    trend: None,
    slow_calls: SlowAsked::NONE,
    slices: 1,
};

/// Returns the row of each function that has events, and the length of their union.
fn expect(calls: &[Call], (from, to): (u64, u64), cut: f64) -> (Vec<(usize, Row)>, u64) {
    let is_event = |c: &Call| c.timed && c.known > from && c.known <= to;
    let clip = |c: &Call| (c.start.max(from), c.end);
    let union = |of: &[(usize, &Call)]| length(of.iter().map(|(_, c)| clip(c)).collect());
    // The direct callees, but for those of the same function.
    let callees = |of: &[(usize, &Call)]| {
        let children = calls.iter().filter(|c| {
            let parent = c.parent.filter(|parent| of.iter().any(|(place, _)| place == parent));
            is_event(c) && parent.is_some_and(|parent| calls[parent].func != c.func)
        });
        length(children.map(clip).collect())
    };
    let events: Vec<(usize, &Call)> =
        calls.iter().enumerate().filter(|(_, c)| is_event(c)).collect();
    let mut rows = Vec::new();
    for func in 0..FUNCTIONS {
        let mut mine: Vec<_> = events.iter().copied().filter(|(_, c)| c.func == func).collect();
        // CTRACK leaves the order of equal durations open. Ours is that of their ends.
        mine.sort_by_key(|(_, c)| (c.end - c.start, c.known, Reverse(c.depth)));
        if mine.is_empty() {
            continue;
        }
        let durations = |of: &[(usize, &Call)]| -> Vec<u64> {
            of.iter().map(|(_, c)| c.end - c.start).collect()
        };
        let mean = |of: &[(usize, &Call)]| {
            durations(of).iter().sum::<u64>().checked_div(of.len() as u64).unwrap_or(0)
        };
        let all = durations(&mine);
        let (sum, n) = (all.iter().sum::<u64>(), all.len() as f64);
        let deviations = all.iter().map(|&d| (d as f64 - sum as f64 / n).powi(2)).sum::<f64>();
        let mut threads: Vec<u64> = mine.iter().map(|(_, c)| c.thread).collect();
        threads.sort_unstable();
        threads.dedup();
        let amount = (n * cut / 100.0).floor() as usize;
        let (fastest, rest) = mine.split_at(amount);
        let (center, slowest) = rest.split_at(rest.len() - amount);
        let middle = durations(center);
        let half = middle.len() / 2;
        let median = if middle.len() % 2 == 1 {
            middle[half]
        } else {
            (middle[half] + middle[half - 1]) / 2
        };
        let row = Row::from([
            ("calls", mine.len() as u64),
            ("threads", threads.len() as u64),
            ("time_acc_ns", sum),
            ("sd_ns", (deviations / n).sqrt() as u64),
            ("active_ns", union(&mine)),
            ("active_exclusive_ns", union(&mine) - callees(&mine)),
            ("fastest_min_ns", durations(fastest).first().copied().unwrap_or(0)),
            ("fastest_mean_ns", mean(fastest)),
            ("center_min_ns", middle[0]),
            ("center_mean_ns", mean(center)),
            ("center_median_ns", median),
            ("center_active_ns", union(center)),
            ("center_active_exclusive_ns", union(center) - callees(center)),
            ("center_max_ns", middle[middle.len() - 1]),
            ("slowest_mean_ns", mean(slowest)),
            ("slowest_max_ns", durations(slowest).last().copied().unwrap_or(0)),
        ]);
        rows.push((func as usize, row));
    }
    (rows, union(&events))
}

fn told(ctrack: &CtrackReport) -> Vec<(usize, Row)> {
    let whole = || ctrack::NUMBERS.iter().filter(|n| matches!(n.unit, Unit::Count | Unit::Time));
    let row = |row| whole().map(|n| (n.key, (n.of)(row).whole().unwrap_or(0))).collect();
    ctrack.functions.iter().map(|of| (of.function, row(of))).collect()
}

fn check(
    report: &Report,
    calls: &[Call],
    window: (u64, u64),
    cut: f64,
) -> Result<(), TestCaseError> {
    let ctrack = report.ctrack.as_ref().expect("asked for");
    let (mut expected, tracked) = expect(calls, window, cut);
    let mut found = told(ctrack);
    for (place, (function, row)) in found.iter_mut().enumerate() {
        // Threads in which calls ended unseen count as well.
        let threads = row.remove("threads");
        if report.functions[*function].untimed > 0 {
            expected.get_mut(place).and_then(|(_, row)| row.remove("threads"));
        } else {
            row.extend(threads.map(|threads| ("threads", threads)));
        }
    }
    prop_assert_eq!(found, expected);
    prop_assert_eq!(ctrack.tracked_ns.0, tracked);
    let duration = (window.1 - window.0) as f64;
    for row in &ctrack.functions {
        let share = row.active_exclusive_ns.0 as f64 * 100.0 / duration;
        prop_assert!((row.active_exclusive_percent - share).abs() < 1e-9);
        let sd = row.cv.map(|cv| cv * row.time_acc_ns.0 as f64 / row.calls as f64);
        prop_assert!(sd.is_none_or(|sd| (sd - row.sd_ns.0 as f64 - 0.5).abs() < 0.6));
    }
    Ok(())
}

fn cut_percent() -> impl Strategy<Value = f64> {
    prop_oneof![Just(0.0), Just(10.0), Just(34.0)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_session_has_ctracks_numbers(steps in steps(true), cut in cut_percent()) {
        let program = run(&steps);
        let mut engine = start(EngineConfig::default());
        feed(&mut engine, &program, 0, program.end / 2);
        feed(&mut engine, &program, program.end / 2, program.end);
        let asked = || ReportMeta { extras: ASKED, ..meta(cut) };
        let report = engine.report(Nanos(program.end), asked());
        check(&report, &program.calls, (0, program.end), cut)?;
        let plain = engine.report(Nanos(program.end), meta(cut));
        prop_assert!(plain.ctrack.is_none());
    }

    #[test]
    fn an_interval_has_ctracks_numbers_of_the_calls_that_ended_in_it(
        steps in steps(false), at in 0u64..=100,
    ) {
        let program = run(&steps);
        let middle = program.end * at / 100;
        let mut engine = start(EngineConfig::default());
        for (from, to) in [(0, middle), (middle, program.end)] {
            feed(&mut engine, &program, from, to);
            let asked = ReportMeta { extras: ASKED, ..meta(10.0) };
            let report = engine.report_interval(Nanos(to), asked);
            if to > from {
                check(&report, &program.calls, (from, to), 10.0)?;
            }
        }
    }

    #[test]
    fn a_recording_has_ctracks_numbers(
        steps in steps(true), cuts in cuts(), factor in prop_oneof![Just(1u64), Just(1_000)],
        cut in cut_percent(), min in prop_oneof![2 => Just(0), 1 => 0u64..800],
        functions in prop_oneof![Just(None), prop::collection::vec(any::<bool>(), FUNCTIONS as usize).prop_map(Some)],
    ) {
        let program = run(&long(steps, factor));
        let recording = record(&program, &cuts);
        let selected = |c: &Call| functions.as_ref().is_none_or(|f| f[c.func as usize]);
        let kept = filter(&filter(&program.calls, selected), |c| !(c.timed && c.end - c.start < min));
        let kept = with_depths(&kept);
        let query = Query {
            filter: Filter { min_duration: Nanos(min), ..Filter::default() },
            functions: functions.clone(),
            ..Query::default()
        };
        let asked = ReportMeta { extras: ASKED, ..meta(cut) };
        let report = report_with(&recording, &query, asked);
        check(&report, &kept, (0, program.end), cut)?;
    }

    #[test]
    fn a_window_of_a_recording_has_ctracks_numbers(
        steps in steps(false), cuts in cuts(), window in (0u64..=100, 0u64..=100),
    ) {
        let program = run(&steps);
        let recording = record(&program, &cuts);
        let (from, to) = (window.0.min(window.1), window.0.max(window.1));
        let (from, to) = (program.end * from / 100, program.end * to / 100);
        let query = Query { window: Some(Nanos(from)..Nanos(to)), ..Query::default() };
        let report = report_with(&recording, &query, meta_with(ASKED));
        if to > from {
            check(&report, &program.calls, (from, to), 10.0)?;
        }
    }
}

/// Two threads are in one function. One of them calls another function meanwhile, so that for CTRACK
/// the first does not work alone at any time.
#[test]
fn a_callee_hides_what_other_threads_do_meanwhile() {
    let call = |thread: u64, func, parent, depth, start, end| Call {
        thread,
        func,
        parent,
        depth,
        start,
        end,
        known: end,
        timed: true,
    };
    let calls = [
        call(0, 2, None, 0, 10, 110),
        call(1, 2, None, 0, 10, 100),
        call(1, 3, Some(1), 1, 20, 95),
    ];
    let (rows, tracked) = expect(&calls, (0, 200), 10.0);
    assert_eq!((rows[0].1["active_ns"], rows[0].1["active_exclusive_ns"]), (100, 25));
    assert_eq!(tracked, 100);
    let mut engine = start(EngineConfig::default());
    let sp = |depth: u64| 0x1000 - depth * 0x40;
    let events = [
        (0, enter(2, sp(0), 10)),
        (1, enter(2, sp(0), 10)),
        (1, enter(3, sp(1), 20)),
        (1, ret(3, sp(1), 95)),
        (1, ret(2, sp(0), 100)),
        (0, ret(2, sp(0), 110)),
    ];
    for (thread, event) in events {
        engine.push(0, &event.on(PID + thread).bytes());
    }
    engine.advance(Nanos(200));
    let report = engine.report(Nanos(200), meta_with(ASKED));
    let row = &report.ctrack.as_ref().expect("asked for").functions[0];
    assert_eq!((row.function, row.calls, row.threads), (2, 2, 2));
    assert_eq!((row.active_ns.0, row.active_exclusive_ns.0), (100, 25));
    assert_eq!((row.time_acc_ns.0, row.center.map(|c| c.median_ns.0)), (190, Some(95)));
    // Ours counts the time in which the first thread works, whatever the other does.
    assert_eq!(report.functions[2].active_exclusive_ns.0, 100);
}

/// An interval whose calls did not fit into memory has none of them, instead of wrong ones.
#[test]
fn what_is_folded_has_none() {
    let mut engine = start(EngineConfig { spool_bytes: 0, ..EngineConfig::default() });
    for at in 1..200 {
        engine.push(0, &enter(0, 0x1000, at * 10).on(PID).bytes());
        engine.push(0, &ret(0, 0x1000, at * 10 + 4).on(PID).bytes());
    }
    engine.advance(Nanos(5_000));
    let report = engine.report(Nanos(5_000), meta_with(ASKED));
    assert!(report.approximate && report.ctrack.is_none());
}
