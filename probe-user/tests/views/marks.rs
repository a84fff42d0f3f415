//! Tests the marks that rows of the first screen have beside their numbers, and the words about
//! times with the cost of probes.

use super::{WIDE, check, fixture, sound};
use ctrace_core::function::ProbeCost;
use ctrace_core::report::{FunctionReport, ProbeTimes, Report, RestoredTimes, SampledReport};
use ctrace_core::units::Nanos;
use ctrace_user::testing::ui::{Style, ViewOptions, render_table};

/// A program whose rows all need a word: the first function of its thread, a recursive one, one with
/// a tail call, one with an exception, a pair that is joined by order, and one that is mostly probes.
pub(super) fn with_marks(measured: bool) -> Report {
    let mut report = fixture::empty();
    let rows =
        [("main", 1, 900_000), ("walk", 40, 7_000), ("jump", 50, 5_000), ("throw", 60, 3_000)];
    let more = [("query", 30, 2_000), ("tiny", 7_000, 900)];
    for (name, calls, typical) in rows.into_iter().chain(more) {
        let mut row = fixture::function(name, calls, typical, report.duration_ns);
        let cost =
            ProbeCost { call_ns: Nanos(800), inside_ns: Nanos(500), error_ns: Nanos(80), measured };
        // What is left of the third is rough, and of the last not known.
        let error = if name == "jump" { 500 } else { 220 };
        row.probes = Some(ProbeTimes {
            cost,
            total_ns: Nanos(500 * calls),
            self_ns: Nanos(450 * calls),
            total_error_ns: Nanos(error * calls),
            self_error_ns: Nanos(45 * calls),
            queue_error_ns: Nanos::ZERO,
            usual_ns: Nanos::ZERO,
        });
        report.functions.push(row);
    }
    report.functions[2].until_tail_call = true;
    (report.functions[3].timed, report.functions[3].untimed) = (58, 2);
    report.functions[4].joined_by_order = true;
    report.functions[4].condition = Some("n > 5".into());
    let main = fixture::path(&mut report, None, "main", 1, 900_000);
    for name in ["walk", "jump", "throw", "tiny"] {
        let path = fixture::path(&mut report, Some(main), name, 30, 60_000);
        if name == "walk" {
            fixture::path(&mut report, Some(path), "walk", 10, 20_000);
        }
    }
    report
}

/// A row that only has a count has no time that probes could be most of.
#[test]
fn a_row_with_a_count_only_is_not_mostly_probes() {
    let marked = |report: &Report| {
        let text = sound(report, &ViewOptions::default(), &WIDE);
        text.contains("p: mostly the cost of probes")
    };
    let mut report = with_marks(false);
    report.functions.retain(|row| row.name.as_ref() == "tiny");
    report.paths.clear();
    assert!(marked(&report));
    let row = &mut report.functions[0];
    (row.timed, row.untimed, row.total_ns, row.self_ns) = (0, 0, Nanos::ZERO, Nanos::ZERO);
    row.durations = Default::default();
    assert!(!marked(&report));
}

#[test]
fn rows_say_what_their_numbers_need() {
    check("marks", &with_marks(false), &ViewOptions::default(), &WIDE);
    let net = check("marks_net", &with_marks(true), &ViewOptions::default(), &WIDE);
    let times = |name| net.lines().find(|line| line.starts_with(name)).expect("a row").to_owned();
    // 5,000 ns less 500, which may be wrong by 500; 900 less 500, by 220, and at least 420.
    assert!(times("jump").contains(" ~4.50 µs "), "{net}");
    assert!(times("tiny").contains(" <480 ns "), "{net}");
    let raw = ViewOptions { raw: true, ..ViewOptions::default() };
    let both = check("marks_raw", &with_marks(true), &raw, &WIDE);
    let times = |name| both.lines().find(|line| line.starts_with(name)).expect("a row").to_owned();
    // The median of jump, and the one of tiny: as seen, and without probes.
    assert!(times("jump").contains(" 4.90 µs  ~4.40 µs "), "{both}");
    assert!(times("tiny").contains(" 882 ns   <462 ns "), "{both}");
    let render = |report| render_table(report, &raw, &WIDE).expect("it can be shown");
    let unmeasured = ViewOptions::default();
    let unmeasured = render_table(&with_marks(false), &unmeasured, &WIDE).expect("it can be shown");
    assert_eq!(render(&with_marks(false)), unmeasured, "there is nothing to subtract");
    let ascii = Style { ascii: true, ..WIDE };
    assert!(check("marks_ascii", &with_marks(true), &ViewOptions::default(), &ascii).is_ascii());
}

/// Exceptions in calls: how long putting return addresses back took is not known, so only a bound is.
#[test]
fn times_with_exceptions_are_bounds() {
    let mut report = with_marks(true);
    report.functions[3].self_ns = Nanos(100_000);
    let row = |report: &Report, name: &str| {
        let text = sound(report, &ViewOptions::default(), &WIDE);
        let row = text.lines().find(|line| line.starts_with(name)).expect("a row");
        let row = row.split_whitespace().collect::<Vec<_>>().join(" ");
        (row, text.contains("Return addresses were put back within calls"))
    };
    let (throw, told) = row(&report, "throw");
    assert!(throw.contains(" 150 µs 73.0 µs ") && !throw.contains('<') && !told, "{throw}");
    report.functions[3].restored =
        RestoredTimes { calls: 2, total_ns: Nanos(150_000), self_ns: Nanos(20) };
    let (throw, told) = row(&report, "throw");
    // 180 µs less 420 ns at least in each of 58 calls; the self time has hardly any of it.
    assert!(throw.contains(" <156 µs 73.0 µs ") && told, "{throw}");
    assert!(!row(&report, "walk").0.contains('<'));
    // Nothing is known of calls that all ended unseen before any other event.
    report.functions[3] = FunctionReport {
        untimed: 60,
        timed: 0,
        total_ns: Nanos::ZERO,
        self_ns: Nanos::ZERO,
        durations: Default::default(),
        ..report.functions[3].clone()
    };
    let (throw, _) = row(&report, "throw");
    assert_eq!(throw.matches('–').count(), 6, "{throw}");
    assert!(!throw.contains("ns"), "{throw}");
}

/// A quarter of what it calls was seen for a quarter of the time.
#[test]
fn self_time_of_others_is_marked() {
    let mut report = with_marks(false);
    report.functions[1].sampled = Some(SampledReport {
        armed_ns: report.duration_ns,
        armed_percent: 25.0,
        windows: 8,
        calls: None,
        calls_error: None,
        total_ns: None,
        active_ns: None,
    });
    let marked = |report: &Report| {
        let text = sound(report, &ViewOptions::default(), &WIDE);
        let row = text.lines().find(|line| line.starts_with("main")).expect("a row").to_owned();
        let legend = text.contains("s: its self time has time of functions that it calls");
        (row.split_whitespace().nth(1).expect("letters").contains('s'), legend)
    };
    // 60 of the 900 µs of its own, three times: a fifth.
    report.functions[0].self_ns = Nanos(900_000);
    assert_eq!(marked(&report), (true, true));
    report.functions[0].self_ns = Nanos(2_900_000);
    assert_eq!(marked(&report), (false, false));
    report.functions[0].self_ns = Nanos(900_000);
    report.functions[1].sampled = None;
    assert_eq!(marked(&report), (false, false));
}

/// The armed share takes no room of a name, and is in each row.
#[test]
fn the_armed_share_is_a_column() {
    let mut report = with_marks(false);
    report.functions[1].name = "walk_through_all_of_it".into();
    report.functions[1].sampled = Some(SampledReport {
        armed_ns: report.duration_ns,
        armed_percent: 21.7,
        windows: 8,
        calls: None,
        calls_error: None,
        total_ns: None,
        active_ns: None,
    });
    let narrow = Style { width: Some(80), ..WIDE };
    for view in ["summary", "detail"] {
        let options =
            ViewOptions { views: vec![view.parse().expect("a view")], ..ViewOptions::default() };
        let text = sound(&report, &options, &narrow);
        let row = |name: &str| text.lines().find(|line| line.starts_with(name)).expect("a row");
        assert!(row("walk_through_all_of_it ").contains(" 21.7 %"), "{text}");
        assert!(row("jump").contains(" 100 %"), "{text}");
        assert!(!text.contains("[armed"), "{text}");
        let legend = "armed: the share of the time in which its probes were on; its numbers are of";
        assert!(text.contains(legend), "{text}");
        let whole = sound(&with_marks(false), &options, &narrow);
        assert!(!whole.contains("armed"), "{whole}");
    }
}

/// What was seen of a function for a part of the time is less than what it did.
#[test]
fn rows_under_a_budget_are_in_the_order_of_estimates() {
    let mut report = fixture::empty();
    // 400 and 300 ms were seen.
    for (name, calls) in [("always", 400), ("partly", 300)] {
        report.functions.push(fixture::function(name, calls, 1_000_000, report.duration_ns));
    }
    let first = |report: &Report, sort: Option<&str>| {
        let options = ViewOptions { sort: sort.map(str::to_owned), ..ViewOptions::default() };
        let text = sound(report, &options, &WIDE);
        let row = |name| text.lines().position(|line| line.starts_with(name)).expect("a row");
        let told = text.contains("follow times as estimated for all of the time");
        (if row("always") < row("partly") { "always" } else { "partly" }, told)
    };
    assert_eq!(first(&report, None), ("always", false));
    let mut sampled = SampledReport {
        armed_ns: Nanos(report.duration_ns.0 / 2),
        armed_percent: 50.0,
        windows: 8,
        calls: None,
        calls_error: None,
        total_ns: None,
        active_ns: None,
    };
    report.functions[1].sampled = Some(sampled);
    assert_eq!(first(&report, None), ("partly", true));
    assert_eq!(first(&report, Some("self")), ("always", true));
    // The program did less while the function was not armed.
    sampled.total_ns = Some(Nanos(report.functions[1].total_ns.0 * 5 / 4));
    report.functions[1].sampled = Some(sampled);
    assert_eq!(first(&report, None), ("always", true));
}

/// Its own time is missing, not that of what it has called.
#[test]
fn calls_that_have_not_ended_are_marked_where_they_have_less_time_than_others_inside() {
    let mut report = with_marks(false);
    let walk = report.paths.iter().position(|path| path.path.len() == 2).expect("a path");
    let letters = |report: &Report| {
        let text = sound(report, &ViewOptions::default(), &WIDE);
        let row = text.lines().find(|line| line.starts_with("walk")).expect("a row").to_owned();
        (row.split_whitespace().nth(1).expect("letters").to_owned(), text.contains("n: not all of"))
    };
    report.paths[walk].total_ns = Nanos(19_000);
    assert_eq!(letters(&report), ("r".to_owned(), false));
    report.paths[walk].open = 1;
    assert_eq!(letters(&report), ("rn".to_owned(), true));
    report.paths[walk].total_ns = Nanos(21_000);
    assert_eq!(letters(&report), ("r".to_owned(), false));
}

#[test]
fn an_uncertain_time_says_so() {
    let mut report = with_marks(true);
    let row = &mut report.functions[5];
    // Its median is 882 ns, its 99th percentile 1,350 ns.
    row.probes.as_mut().expect("a cost").total_ns = Nanos(840 * row.calls);
    let text = sound(&report, &ViewOptions::default(), &WIDE);
    let row = text.lines().find(|line| line.starts_with("tiny")).expect("a row");
    // At least 420 of 882 and of 1,350 ns are its own probes. So they may be nearly all of the total, and then
    // a long call may be long because of what came while they ran.
    assert!(row.contains(" <462 ns ") && row.contains(" <930 ns "), "{row}");
    assert!(text.contains("<: at most that: nearly all of it may be the cost of probes"), "{text}");
    assert!(text.contains("~: may be off by up to half"), "{text}");
    // A median has a bound of its own below that.
    let durations = &mut report.functions[5].durations;
    durations.p50_ns = Some(Nanos(1_250));
    (durations.p75_ns, durations.p90_ns, durations.p95_ns) = Default::default();
    let text = sound(&report, &ViewOptions::default(), &WIDE);
    let row = text.lines().find(|line| line.starts_with("tiny")).expect("a row");
    assert!(row.contains(" <830 ns ") && row.contains(" <930 ns "), "{row}");
    let raw = ViewOptions { raw: true, ..ViewOptions::default() };
    let text = sound(&report, &raw, &WIDE);
    let row = text.lines().find(|line| line.starts_with("tiny")).expect("a row");
    assert!(row.contains(" 1.25 µs   <830 ns "), "{row}");
    assert!(text.contains("the cost of probes are included"), "{text}");
    // Rows are in the order of what is seen.
    assert!(text.contains("<: at most that") && !text.contains("Its place"), "{text}");
}

#[test]
fn times_as_seen_are_called_so() {
    let told = |views: &[&str], report: &Report, raw| {
        let views = views.iter().map(|name| name.parse().expect("a view")).collect();
        let options = ViewOptions { views, raw, ..ViewOptions::default() };
        let text = sound(report, &options, &WIDE);
        let line = text.lines().find(|line| line.contains("as seen, with"));
        line.map(|line| line.split(" are ").next().unwrap_or_default().to_owned())
    };
    let known = with_marks(true);
    assert_eq!(told(&["paths"], &known, false).as_deref(), Some("Times in paths"));
    let several = ["paths", "tree", "threads", "hist", "summary", "calls"];
    let names = Some("Times in paths, hist and calls");
    assert_eq!(told(&several, &known, false).as_deref(), names);
    assert_eq!(told(&["counts", "summary"], &known, false), None);
    assert_eq!(told(&["paths"], &known, true), None);
    assert_eq!(told(&["paths"], &with_marks(false), false), None);
}

#[test]
fn a_tree_has_times_without_the_cost_of_probes() {
    let options = |raw| {
        let views = vec!["tree".parse().expect("a view")];
        ViewOptions { views, raw, ..ViewOptions::default() }
    };
    let net = check("tree_net", &with_marks(true), &options(false), &WIDE);
    let thrower =
        |tree: &str| tree.lines().any(|line| line.contains("throw") && line.starts_with('<'));
    assert!(!thrower(&net));
    let mut restored = with_marks(true);
    restored.functions[3].restored =
        RestoredTimes { calls: 2, total_ns: Nanos(45_000), self_ns: Nanos(20) };
    let bound = sound(&restored, &options(false), &WIDE);
    assert!(thrower(&bound), "{bound}");
    let raw = sound(&with_marks(true), &options(true), &WIDE);
    assert_eq!(raw, sound(&with_marks(false), &options(false), &WIDE));
}

/// What a thread runs is a frame also where the function of the runtime that calls it is traced.
#[test]
fn what_a_runtime_calls_in_a_thread_frames_the_program() {
    let mut report = fixture::empty();
    let long = report.duration_ns.0 * 4 / 5;
    let run = "std::thread::_State_impl<std::thread::_Invoker<std::tuple<void (*)()>>>::_M_run";
    for (name, calls, typical) in [(run, 1, long), ("pool", 1, long), ("work", 30, 2_000)] {
        report.functions.push(fixture::function(name, calls, typical, report.duration_ns));
    }
    let run = fixture::path(&mut report, None, run, 1, long);
    let pool = fixture::path(&mut report, Some(run), "pool", 1, long);
    fixture::path(&mut report, Some(pool), "work", 30, 60_000);
    let table = render_table(&report, &ViewOptions::default(), &WIDE).expect("it is shown");
    let names: Vec<&str> =
        ["work", "pool"].into_iter().filter(|name| table.contains(name)).collect();
    assert_eq!(names.len(), 2, "{table}");
    assert!(table.find("work") < table.find("pool"), "{table}");
}

/// Where calls are only counted, the number of their threads is not known.
#[test]
fn a_counted_function_that_is_called_once_frames_the_program() {
    let mut report = with_marks(false);
    report.counted = true;
    for row in &mut report.functions {
        (row.counted, row.threads) = (true, 0);
    }
    let told = "frames the program";
    let render = |report: &Report| {
        render_table(report, &ViewOptions::default(), &WIDE).expect("it is shown")
    };
    assert!(render(&report).contains(told), "{}", render(&report));
    (report.functions[0].calls, report.functions[0].timed) = (2, 2);
    assert!(!render(&report).contains(told), "{}", render(&report));
}
