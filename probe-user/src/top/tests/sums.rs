//! Tests of the sums since the start.

use super::{
    SECOND, fixture, model, model_of, nth, press, screen, snapshot,
    stretches::{Session, call, leaf, nested},
};
use crate::top::{data::Data, model::Model};
use crate::ui::output::style::Shades;
use ctrace_core::{
    report::{Report, SampledReport},
    units::Nanos,
};
use fixture::MICRO;
use ratatui::crossterm::event::KeyCode;
use std::time::Duration;

#[test]
fn sums_are_those_of_all_intervals() {
    let mut model = model();
    press(&mut model, KeyCode::Char('c'));
    let figures = model.figures().expect("numbers");
    let (sum, one) = (&figures.report, fixture::typical());
    assert_eq!(sum.duration_ns.0, 2 * one.duration_ns.0);
    assert_eq!(sum.functions[0].total_ns.0, 2 * one.functions[0].total_ns.0);
    assert_eq!(sum.functions[0].durations.mean_ns, one.functions[0].durations.mean_ns);
    let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
    let share = sum.functions[0].active_exclusive_percent;
    assert!(near(share, one.functions[0].active_exclusive_percent));
    // A call that was open in both is one call.
    assert_eq!((sum.functions[5].calls, sum.functions[5].open), (1, 1));
    assert_eq!(sum.loss.calls_open, 1);
    assert_eq!(sum.paths.len(), one.paths.len());
    assert_eq!(sum.paths[2].calls, 2 * one.paths[2].calls);
    assert_eq!(sum.threads[1].calls, 2 * one.threads[1].calls);
    assert_eq!(figures.cpu, Some(Nanos(2 * SECOND)));
    let counts =
        |report: &Report| report.histogram_of(3).map(|of| of.durations.counts.iter().sum::<u64>());
    assert_eq!(counts(sum), counts(&one).map(|count| 2 * count));
}

/// The sums of 600 different intervals equal those of one interval over the whole time.
#[test]
fn many_intervals_are_as_exact_as_one() {
    let (mut events, mut now, mut ends) = (Vec::new(), SECOND, Vec::new());
    for interval in 0..600_u64 {
        // About 950 to 1,050 ns, with a few far longer ones.
        let typical = 950 + interval * 37 % 101;
        for more in [0, 3, 4_000 * u64::from(interval % 97 == 5)] {
            let (both, end) = call(now + 20, typical + more);
            events.extend(both);
            now = end;
        }
        now += 1_000;
        ends.push(now);
    }
    let mut model = Model::new(Data::new(None), Duration::from_secs(1), Shades::None);
    let mut divided = Session::new(&events, 256 << 20);
    ends.iter().for_each(|end| model.add(vec![divided.end_interval(*end)], 0));
    press(&mut model, KeyCode::Char('c'));
    let whole = Session::new(&events, 256 << 20).end_interval(now).report;
    let (sum, whole) =
        (&model.figures().expect("numbers").report.functions[0], &whole.functions[0]);
    assert_eq!((sum.calls, sum.timed, sum.total_ns), (1_800, 1_800, whole.total_ns));
    let (sum, whole) = (&sum.durations, &whole.durations);
    assert_eq!((sum.mean_ns, sum.sd_ns), (whole.mean_ns, whole.sd_ns));
    assert_eq!((sum.min_ns, sum.max_ns, sum.cv), (whole.min_ns, whole.max_ns, whole.cv));
}

/// Two calls stay open, and one more ends in each interval.
#[test]
fn open_calls_of_a_thread_are_counted_once() {
    let end = SECOND + 600 * 1_000;
    let mut events = nested(&[0, 1], SECOND + 10);
    events.extend((0..600).flat_map(|n| leaf(2, 2, SECOND + n * 1_000 + 100)));
    let mut model = Model::new(Data::new(None), Duration::from_secs(1), Shades::None);
    let mut session = Session::new(&events, 256 << 20);
    for n in 1..=600 {
        model.add(vec![session.end_interval(SECOND + n * 1_000)], 0);
    }
    press(&mut model, KeyCode::Char('c'));
    let whole = Session::new(&events, 256 << 20).end_interval(end).report;
    let rows = |report: &Report| {
        let rows = report.threads.iter();
        rows.map(|row| (row.calls, row.open, row.first_ns, row.last_ns)).collect::<Vec<_>>()
    };
    let sums = &model.figures().expect("numbers").report;
    assert_eq!(rows(&whole)[0].0, 602);
    assert_eq!(rows(sums), rows(&whole));
}

/// For sampled functions, the estimates are shown and added up.
#[test]
fn estimates_are_marked_and_add_up() {
    let mut report = fixture::typical();
    report.functions[0].sampled = Some(SampledReport {
        armed_ns: Nanos(report.duration_ns.0 / 10),
        armed_percent: 10.0,
        windows: 4,
        calls: Some(10_000),
        calls_error: Some(300),
        total_ns: None,
        active_ns: None,
    });
    let mut model = model_of(&report);
    let shown = screen(&mut model, 120, 12);
    let row = shown.lines().find(|line| line.contains("micro_operation")).expect("a row");
    assert!(
        row.contains(" 10.00% ") && row.contains("~4,607") && shown.contains(" armed % "),
        "{shown}"
    );
    press(&mut model, KeyCode::Char('c'));
    let sampled = model.figures().expect("numbers").report.functions[0].sampled;
    let sampled = sampled.expect("it was armed for a part");
    assert_eq!((sampled.calls, sampled.calls_error), (Some(20_000), Some(424)));
    assert_eq!((sampled.windows, sampled.total_ns), (8, None));
    assert!((sampled.armed_percent - 10.0).abs() < 1e-6, "{sampled:?}");
}

/// The function is sampled from the beginning, and first called in the third interval.
#[test]
fn what_is_not_called_is_not_armed_for_long_therefore() {
    let interval = |n: u64| {
        let mut report = nth(&fixture::empty(), n);
        let calls = if n < 2 { 0 } else { 10 };
        let mut function = fixture::function("rare", calls, MICRO, report.duration_ns);
        function.sampled = Some(SampledReport {
            armed_ns: Nanos(report.duration_ns.0 / 100),
            armed_percent: 1.0,
            windows: 5,
            calls: Some(100 * calls),
            calls_error: Some(calls),
            total_ns: None,
            active_ns: None,
        });
        report.functions.push(function);
        vec![snapshot(report, n * SECOND)]
    };
    let mut model = Model::new(Data::new(None), Duration::from_secs(1), Shades::None);
    (0..3).for_each(|n| model.add(interval(n), 0));
    press(&mut model, KeyCode::Char('c'));
    let sampled = model.figures().expect("numbers").report.functions[0].sampled;
    let sampled = sampled.expect("it was armed for a part");
    assert!((sampled.armed_percent - 1.0).abs() < 1e-6, "{sampled:?}");
    assert_eq!((sampled.windows, sampled.calls), (15, Some(1_000)));
}

#[test]
fn functions_are_known_by_name_when_places_change() {
    let mut model = model();
    let mut shifted = nth(&fixture::typical(), 2);
    let late = fixture::function("arrived_late", 10, MICRO, Nanos(SECOND));
    shifted.functions.insert(0, late);
    let places: Vec<usize> = (1..shifted.functions.len()).collect();
    shifted.move_functions(&places);
    model.add(vec![snapshot(shifted, 3 * SECOND)], 0);
    press(&mut model, KeyCode::Char('c'));
    let figures = model.figures().expect("numbers");
    let calls =
        |name: &str| figures.report.functions.iter().find(|f| &*f.name == name).map(|f| f.calls);
    assert_eq!(calls("micro_operation"), Some(3_000));
    assert_eq!(calls("arrived_late"), Some(10));
}
