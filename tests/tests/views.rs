//! Tests the views of a recording of a target whose durations are known.

use ctrace_tests::env::{Env, Link};
use ctrace_tests::process::{Finished, run};
use ctrace_tests::report::Report;
use ctrace_tests::targets::program;
use ctrace_tests::trace::{LIMIT, Trace};
use ctrace_tests::{gate, or_skip};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

const FUNCTIONS: [&str; 4] = ["outer", "nap_short", "nap_long", "overlap"];
const MILLI: u64 = 1_000_000;

fn ctrace(env: &Env, arguments: &[&str]) -> Finished {
    run(Command::new(&env.ctrace).args(arguments), LIMIT).expect("ctrace")
}

fn target(env: &Env) -> PathBuf {
    env.targets.get(&program("sleeps.c")).expect("builds")
}

/// Records the target into a file of this folder.
fn record(env: &Env, folder: &Path) -> String {
    let file = folder.join("sleeps.ctrace").display().to_string();
    let mut arguments = vec!["record", "-o", &file];
    FUNCTIONS.iter().for_each(|function| arguments.extend(["-f", *function]));
    let target = target(env);
    let target = target.to_str().expect("a path of this workspace");
    arguments.extend(["--", target]);
    let recorded = ctrace(env, &arguments);
    assert_eq!(recorded.shell_code(), 0, "{}", recorded.stderr);
    file
}

fn report(env: &Env, file: &str, options: &[&str]) -> Report {
    let arguments = [&["report", file, "--format", "json"], options].concat();
    let finished = ctrace(env, &arguments);
    let report = Report::parse(&finished.stdout).expect(&finished.stderr);
    report.check_schema().expect("as the schema says");
    report
}

fn array<'a>(value: &'a Value, key: &str) -> &'a Vec<Value> {
    value[key].as_array().unwrap_or_else(|| panic!("no {key} in {value}"))
}

fn integer(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or_else(|| panic!("no {key} in {value}"))
}

/// Checks that every timed call is in the bucket of its sleep, or in one above.
fn check_histograms(report: &Report) {
    let histograms = &report.0["histograms"];
    assert_eq!(array(histograms, "functions").len(), FUNCTIONS.len());
    for histogram in array(histograms, "functions") {
        let function = &report.0["functions"][integer(histogram, "function") as usize];
        let slept = match function["name"].as_str() {
            Some("nap_short") => 10 * MILLI,
            Some("nap_long") => 30 * MILLI,
            Some("overlap") => 50 * MILLI,
            _ => 60 * MILLI,
        };
        let numbers =
            |of: &Vec<Value>| of.iter().map(|n| n.as_u64().expect("a count")).collect::<Vec<_>>();
        let (edges, counts) =
            (numbers(array(histogram, "edges_ns")), numbers(array(histogram, "counts")));
        assert_eq!(counts.iter().sum::<u64>(), integer(function, "timed"));
        assert!(edges[1] > slept && edges[0] > slept / 2, "{edges:?} of {function}");
        assert!(edges.last().is_some_and(|&edge| edge > integer(function, "max_ns")));
        let over_time = array(histogram, "over_time");
        let in_slices: u64 = over_time.iter().flat_map(|row| numbers(array(row, "counts"))).sum();
        assert_eq!(in_slices, integer(function, "timed"));
    }
}

/// Checks the slowest five calls, all of `outer`, with their insides and times.
fn check_calls(report: &Report) {
    let calls = array(&report.0, "slowest_calls");
    assert_eq!(calls.len(), 5);
    let durations: Vec<u64> = calls.iter().map(|call| integer(call, "duration_ns")).collect();
    assert!(durations.is_sorted_by(|a, b| a >= b) && durations[4] >= 60 * MILLI, "{durations:?}");
    let outer = report.expect("outer").expect("traced");
    assert_eq!(outer.integer("max_ns").expect("timed"), durations[0]);
    for call in calls {
        assert_eq!(call["path"], serde_json::json!(["outer"]));
        let names: Vec<&str> =
            array(call, "inside").iter().filter_map(|row| row["name"].as_str()).collect();
        assert_eq!(names, ["nap_short", "nap_long"]);
        let inside: u64 = array(call, "inside").iter().map(|row| integer(row, "total_ns")).sum();
        assert_eq!(integer(call, "self_ns") + inside, integer(call, "duration_ns"));
        assert!(integer(call, "self_ns") >= 20 * MILLI && inside >= 40 * MILLI);
        assert_eq!(call["tid"], report.0["target"]["pid"]);
    }
    // The main thread, and two that sleep in `overlap`.
    let lanes = array(&report.0["timeline"], "lanes");
    let depths: Vec<usize> = lanes.iter().map(|lane| array(lane, "depths").len()).collect();
    assert_eq!(depths, [2, 1, 1]);
    let outermost = lanes[0]["depths"][0].as_array().expect("cells");
    let busy: u64 = outermost.iter().map(|cell| integer(cell, "busy_ns")).sum();
    assert_eq!(busy, outer.integer("total_ns").expect("timed"));
}

/// Checks CTRACK's numbers of functions that no other thread is in, where both definitions agree.
fn check_ctrack(report: &Report) {
    let ctrack = &report.0["ctrack"];
    let rows = array(ctrack, "functions");
    let all = array(&report.0, "functions");
    let row_of = |name: &str| {
        let is_it = |row: &&Value| all[integer(row, "function") as usize]["name"] == name;
        rows.iter().find(is_it).expect("a row")
    };
    for name in ["outer", "nap_short", "nap_long"] {
        let (row, ours) = (row_of(name), report.expect(name).expect("traced"));
        for (key, of_ours) in [
            ("calls", "timed"),
            ("time_acc_ns", "total_ns"),
            ("active_ns", "active_ns"),
            ("active_exclusive_ns", "active_exclusive_ns"),
        ] {
            assert_eq!(integer(row, key), ours.integer(of_ours).expect("a number"), "{name} {key}");
        }
    }
    let (outer, tracked) = (row_of("outer"), integer(ctrack, "tracked_ns"));
    assert!(integer(outer, "active_exclusive_ns") < integer(outer, "active_ns"));
    assert!(integer(outer, "active_ns") < tracked && tracked <= integer(&report.0, "tracked_ns"));
}

const VIEWS: [&str; 10] =
    ["--view", "hist", "--view", "calls", "--view", "timeline", "--view", "ctrack", "--top", "5"];

#[test]
fn a_recording_shows_what_its_calls_were() {
    let env = or_skip!(gate::live(Link::Session));
    let folder = tempfile::tempdir().expect("a folder");
    let report = report(&env, &record(&env, folder.path()), &VIEWS);
    report.check_sums().expect("the sums are right");
    check_histograms(&report);
    check_calls(&report);
    check_ctrack(&report);
}

#[test]
fn a_session_shows_the_same() {
    let env = or_skip!(gate::live(Link::Session));
    let traced = |options: &[&str]| {
        let trace = Trace::run(&env).expect("starts").functions(FUNCTIONS);
        let trace = trace.args(options.iter().copied()).program(&target(&env), []);
        trace.finish().expect("runs")
    };
    let session = traced(&VIEWS);
    check_histograms(session.report().expect("a report"));
    check_calls(session.report().expect("a report"));
    check_ctrack(session.report().expect("a report"));
    let interval = traced(&["--view", "hist", "--interval", "100"]);
    check_histograms(interval.report().expect("a report"));
    for view in ["calls", "timeline"] {
        let refused = traced(&["--view", view, "--interval", "1"]).finished;
        assert_eq!((refused.shell_code(), refused.stdout.as_str()), (125, ""));
        let [line] = refused.stderr.lines().collect::<Vec<_>>()[..] else {
            panic!("one line: {}", refused.stderr)
        };
        let remedy = format!("`ctrace report trace.ctrace --view {view} --interval SECONDS`");
        assert!(line.starts_with("ctrace: ") && line.contains("`ctrace record`"), "{line}");
        assert!(line.contains(&remedy), "{line}");
    }
}

#[test]
fn every_view_of_a_recording_is_drawn_and_is_csv() {
    let env = or_skip!(gate::live(Link::Session));
    let folder = tempfile::tempdir().expect("a folder");
    let file = record(&env, folder.path());
    for (view, shown) in [
        ("hist", "nap_long · 5 timed calls"),
        ("calls", "nap_short"),
        ("timeline", "innermost"),
        ("counts", "outer → nap_short"),
        ("ctrack", "time ae[0-100]"),
        ("paths", "outer → nap_long"),
    ] {
        let table = ctrace(&env, &["report", &file, "--view", view]);
        assert_eq!(table.shell_code(), 0, "{}", table.stderr);
        assert!(table.stdout.contains(shown), "{}", table.stdout);
        let csv = ctrace(&env, &["report", &file, "--view", view, "--format", "csv"]);
        let columns = csv.stdout.lines().map(|line| line.matches(',').count());
        let columns: Vec<usize> = columns.collect();
        assert!(columns.len() > 4 && columns.iter().all(|n| *n == columns[0]), "{}", csv.stdout);
    }
}

/// The slow frames are slow because of `load`, and the exit code says that there are too many.
#[test]
fn slow_frames_have_their_reason() {
    let env = or_skip!(gate::live(Link::Session));
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("frames.ctrace").display().to_string();
    let target = env.targets.get(&program("frames.c")).expect("builds");
    let target = target.to_str().expect("a path of this workspace");
    let options = ["-f", "frame", "-f", "load", "-f", "draw", "--", target];
    let recorded = ctrace(&env, &[&["record", "-o", &file], &options[..]].concat());
    assert_eq!(recorded.shell_code(), 0, "{}", recorded.stderr);

    let report = report(&env, &file, &["--frame", "frame"]);
    let frames = &report.0["frames"];
    assert_eq!((integer(frames, "frames"), integer(frames, "typical_frames")), (100, 10));
    let name = |value: &Value| {
        let function = &report.0["functions"][integer(value, "function") as usize];
        function["name"].as_str().expect("a name").to_owned()
    };
    let worst = array(frames, "worst");
    assert_eq!(worst.len(), 10);
    for frame in worst {
        assert!(integer(frame, "duration_ns") >= 20 * MILLI, "{frame}");
    }
    let load = &array(frames, "parts")[0];
    assert_eq!((name(load), integer(load, "worst_calls")), ("load".to_owned(), 10));
    assert!(integer(load, "worst_self_ns") > integer(load, "typical_self_ns") + 50 * MILLI);

    let judge =
        |limit| ctrace(&env, &["report", &file, "--frame", "frame", "--fail-frames-over", limit]);
    let failed = judge("15ms:9%");
    assert_eq!(failed.shell_code(), 1, "{}", failed.stderr);
    assert!(failed.stderr.contains("FAILED: "), "{}", failed.stderr);
    assert!(
        failed.stdout.contains("mostly in") && failed.stdout.contains("took longer than 15.00 ms")
    );
    assert_eq!(judge("100s").shell_code(), 0);
    let unknown = ctrace(&env, &["report", &file, "--frame", "no_such"]);
    assert_eq!(unknown.shell_code(), 125);
    assert!(unknown.stderr.contains("none of the 3 recorded functions"), "{}", unknown.stderr);
    let without = ctrace(&env, &["report", &file, "--view", "frames"]);
    assert!(without.stderr.contains("name with --frame the function"), "{}", without.stderr);

    let trace = Trace::run(&env).expect("starts").functions(["frame", "load"]);
    let trace = trace.args(["--frame", "frame"]).program(Path::new(target), []);
    let session = trace.finish().expect("runs");
    let frames = &session.report().expect("a report").0["frames"];
    assert_eq!(integer(frames, "frames"), 100);
}

/// For which argument a function is slow, by its name in the source, in a recording and live. What the
/// function of a frame calls is traced with it.
#[test]
fn a_function_is_slow_for_one_of_its_arguments() {
    let env = or_skip!(gate::live(Link::Session));
    let target = env.targets.get(&program("frames.c")).expect("builds");
    let target = target.to_str().expect("a path of this workspace");
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("values.ctrace").display().to_string();
    let asked = ["--arg", "load: slow=is_slow", "-f", "frame", "--with-callees"];
    let recorded = ctrace(&env, &[&["record", "-o", &file], &asked[..], &["--", target]].concat());
    assert_eq!(recorded.shell_code(), 0, "{}", recorded.stderr);
    assert!(
        recorded.stderr.contains("functions that --with-callees adds: "),
        "{}",
        recorded.stderr
    );
    let report = report(&env, &file, &["--view", "values"]);
    let drawn = report.0["functions"].as_array().expect("functions").iter();
    let drawn: Vec<_> = drawn.filter(|it| it["name"] == "draw").map(|it| &it["calls"]).collect();
    assert_eq!(drawn, [200], "frame calls it");
    let [table] = &array(&report.0, "values")[..] else { panic!("one argument: {}", report.0) };
    assert_eq!((&table["name"], &table["unsure"]), (&"slow".into(), &false.into()));
    let row = |row: &Value| (row["value"].as_u64(), integer(row, "calls"));
    // On a busy host, naps of 1 ms may add up to more than those of 20.
    let mut rows: Vec<_> = array(table, "rows").iter().map(row).collect();
    rows.sort_unstable();
    assert_eq!(rows, [(Some(0), 90), (Some(1), 10)]);
    let slow = array(table, "rows").iter().find(|row| row["value"] == 1).expect("a row");
    assert!(integer(slow, "p50_ns") > 19 * MILLI, "{table}");

    let by_sites = ["--with-callees", "--returns", "ret-sites", "--", target];
    let stepped = ctrace(&env, &[&["run", "-f", "frame"], &by_sites[..]].concat());
    let remark = "chosen functions cost the target usually about ";
    assert!(stepped.stderr.contains(remark), "{}", stepped.stderr);

    let live = ctrace(&env, &[&["run"], &asked[..2], &["--", target]].concat());
    assert!(!live.stderr.contains(remark), "{}", live.stderr);
    assert!(live.stderr.contains("Values: load by slow"), "{}", live.stderr);
    let csv = ctrace(&env, &[&["run"], &asked[..2], &["--format", "csv", "--", target]].concat());
    let lines = csv.stderr.lines().filter(|line| line.starts_with("load,"));
    let fields = lines.map(|line| line.split(',').skip(2).take(4).collect::<Vec<_>>());
    let mut fields: Vec<_> = fields.collect();
    fields.sort_unstable();
    assert_eq!(fields, [["slow", "value", "0", "90"], ["slow", "value", "1", "10"]]);
}
