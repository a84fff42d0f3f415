//! Calls that are counted in the kernel (`--aggregate`): their numbers, their times, what is told of
//! those without a time, and what is refused.

use ctrace_tests::env::{Env, Link};
use ctrace_tests::report::Report;
use ctrace_tests::targets::program;
use ctrace_tests::trace::{Trace, Traced};
use ctrace_tests::truth::Truth;
use ctrace_tests::{gate, or_skip, process};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The greatest part by which the middle of a bucket is away from a duration in it.
const BUCKET: f64 = 1.0 / 32.0;

#[track_caller]
fn run(env: &Env, source: &str, arguments: &[&str], globs: &[&str], options: &[&str]) -> Traced {
    let path = env.targets.get(&program(source)).expect("builds");
    Trace::run(env)
        .expect("starts")
        .arg("--aggregate")
        .functions(globs.iter().copied())
        .args(options.iter().copied())
        .program(&path, arguments.iter().copied())
        .finish()
        .and_then(|traced| traced.expect_code(0))
        .expect("runs")
}

#[track_caller]
fn check_calls(traced: &Traced) -> &Report {
    let report = traced.report().expect("reports");
    Truth::parse(&traced.finished.stdout).check_calls(report).expect("the target's own counts");
    report
}

#[test]
fn durations_are_those_of_the_target() {
    let env = or_skip!(gate::live(Link::Session));
    let traced = run(&env, "sleeps.c", &[], &["outer", "nap_*"], &[]);
    let report = traced.report().expect("reports");
    let truth = Truth::parse(&traced.finished.stdout);
    for (name, slept) in [("nap_short", 10_000_000_u64), ("nap_long", 30_000_000)] {
        let row = report.expect(name).expect("traced");
        let of = |key| row.integer(key).expect("known");
        assert_eq!((row.calls(), of("timed")), (5, 5), "{name}");
        let (_, total) = truth.time.iter().find(|(known, _)| known == name).expect("printed");
        assert!((slept * 5..=*total).contains(&of("total_ns")), "{}", row.0);
        assert!(of("min_ns") >= slept && of("mean_ns") >= of("min_ns"), "{}", row.0);
        let p50 = of("p50_ns") as f64;
        let least = of("min_ns") as f64 * (1.0 - BUCKET);
        assert!(p50 >= least && p50 <= of("max_ns") as f64, "{}", row.0);
        assert!(row.0["active_ns"].is_null() && row.0["threads"].is_null(), "{}", row.0);
    }
    let outer = report.expect("outer").expect("traced");
    let naps = ["nap_short", "nap_long"]
        .map(|name| report.expect(name).and_then(|row| row.integer("total_ns")).expect("known"));
    let [own, total] = ["self_ns", "total_ns"].map(|key| outer.integer(key).expect("known"));
    assert_eq!(own + naps.iter().sum::<u64>(), total, "{}", outer.0);
}

/// `descend` is open 201 times at once.
#[test]
fn calls_that_are_too_deep_are_counted_and_told() {
    let env = or_skip!(gate::live(Link::Session));
    let globs = ["descend", "leaf", "ping", "pong", "tail_*"];
    let traced = run(&env, "counts.c", &["10"], &globs, &["--returns", "ret-sites"]);
    let report = check_calls(&traced);
    assert_eq!(report.expect("descend").expect("traced").ends(), (201, 128, 73, 0));
    assert_eq!(report.expect("descend").expect("traced").integer("headless").expect("known"), 0);
    report.expect_note(&["73 calls were counted without a time", "128 other"]).expect("told");
}

/// The least room has 63 paths. The program takes 2,046, each once.
#[test]
fn calls_on_paths_without_room_are_counted_and_told() {
    let env = or_skip!(gate::live(Link::Session));
    let traced = run(&env, "counted.c", &["paths"], &["left", "right"], &["--spool", "1KiB"]);
    let report = check_calls(&traced);
    let untimed = report.loss("calls_untimed");
    assert!(untimed > 0 && report.loss("calls_headless") == 0, "{}", report.losses());
    let told = "1,983 calls were counted without a time";
    report.expect_note(&[told, "more than 63 call paths"]).expect("told");
    let others = report.0["paths_other_calls"].as_u64().expect("a count");
    assert_eq!(others, untimed, "calls on other paths");
    assert_eq!(untimed, 2_046 - 63);
    let traced = run(&env, "counted.c", &["paths", "3"], &["left", "right"], &[]);
    assert_eq!(check_calls(&traced).loss("calls_untimed"), 0, "there is room for all of them");
}

/// A thread keeps its room until it ends, and all of these are there at once.
#[test]
fn calls_of_threads_without_room_are_counted_and_told() {
    let env = or_skip!(gate::live(Link::Session));
    let traced = run(&env, "counted.c", &["threads", "2100"], &["blink"], &[]);
    let report = check_calls(&traced);
    let row = report.expect("blink").expect("traced");
    assert_eq!(row.ends(), (4_200, 4_096, 104, 0));
    assert_eq!(row.integer("headless").expect("known"), 0);
    report.expect_note(&["104 calls were counted", "more than 2048 threads"]).expect("told");
}

/// After 256 calls on another stack, the stack that was left for ever is given up.
#[test]
fn a_stack_that_is_left_for_ever_does_not_keep_calls_from_being_timed() {
    let env = or_skip!(gate::live(Link::Session));
    let globs = ["stays", "works"];
    let traced = run(&env, "counted.c", &["fiber", "1000"], &globs, &["--returns", "ret-sites"]);
    let report = check_calls(&traced);
    assert_eq!(report.expect("works").expect("traced").ends(), (1_000, 744, 256, 0));
    assert_eq!(report.expect("stays").expect("traced").ends(), (1, 0, 1, 0));
    report.expect_note(&["256 calls were counted", "another stack"]).expect("told");
    report.expect_note(&["within 8 MiB", "may be wrong"]).expect("told");
}

/// Calls that are open when their function loses its return probe end once, on its ways out. The return
/// that comes as well is no end of a call from before tracing.
#[test]
fn calls_end_once_when_their_function_is_moved_off_its_return_probe() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("moved.cpp")).expect("builds");
    for options in [&[][..], &["--aggregate"]] {
        let traced = Trace::run(&env)
            .expect("starts")
            .args(options.iter().copied())
            .function("through")
            .program(&path, ["40"])
            .finish()
            .and_then(|traced| traced.expect_code(0))
            .expect("runs");
        let report = check_calls(&traced);
        report.expect_note(&["passed through", "costlier probes"]).expect("it is moved");
        let row = report.expect("through").expect("traced");
        assert_eq!(row.ends(), (444, 404, 40, 0), "{options:?}");
        assert_eq!(row.integer("headless").expect("known"), 0, "{options:?}");
    }
}

#[test]
fn calls_that_are_too_short_are_left_out_in_the_kernel() {
    let env = or_skip!(gate::live(Link::Session));
    let arguments = ["bursts", "300"];
    let traced = run(&env, "counted.c", &arguments, &["works"], &["--min-duration", "1000s"]);
    let report = traced.report().expect("reports");
    assert_eq!(report.0["filtered_calls"], 300);
    assert_eq!(report.expect("works").map_or(0, |row| row.calls()), 0);
    let globs = ["outer", "nap_long"];
    let traced = run(&env, "sleeps.c", &[], &globs, &["--min-duration", "20ms"]);
    let report = traced.report().expect("reports");
    assert_eq!(report.expect("nap_long").expect("traced").ends(), (5, 5, 0, 0));
    assert_eq!(report.0["filtered_calls"], 0);
}

/// Calls that are too short to be counted cost as much as others.
#[test]
fn the_cost_of_counted_calls_can_end_a_session() {
    let env = or_skip!(gate::live(Link::Session));
    let arguments = ["bursts", "3000000"];
    for shortest in ["1ns", "1000s"] {
        let options = ["--max-slowdown", "20%", "--min-duration", shortest];
        let traced = run(&env, "counted.c", &arguments, &["works"], &options);
        let report = traced.report().expect("reports");
        report.expect_note(&["stopped early", "--max-slowdown"]).expect("it is stopped");
        let seen = report.expect("works").map_or(0, |row| row.calls());
        let seen = seen + report.0["filtered_calls"].as_u64().expect("a count");
        assert!(seen > 0 && seen < 3_000_000, "{seen} with {shortest}");
    }
}

#[test]
fn the_reports_of_intervals_add_up() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("counted.c")).expect("builds");
    let file = tempfile::NamedTempFile::new().expect("a file");
    let mut command = Command::new(&env.ctrace);
    command.args(["run", "--aggregate", "-f", "works", "--interval", "0.2", "--format", "json"]);
    command.arg("-o").arg(file.path()).arg("--").arg(&path).args(["bursts", "3000"]);
    let finished = process::run(&mut command, Duration::from_secs(60)).expect("runs");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let text = std::fs::read_to_string(file.path()).expect("there");
    let reports: Vec<Report> =
        text.lines().map(|line| Report::parse(line).expect("a report")).collect();
    assert!(reports.len() >= 4, "{} reports", reports.len());
    let mut ended = 0;
    for report in &reports {
        let row = report.expect("works").expect("traced");
        let (calls, timed, untimed, open) = row.ends();
        assert_eq!((calls - open, untimed), (timed, 0), "{}", row.0);
        ended += timed;
        if timed > 1 {
            let of = |key| row.integer(key).expect("known");
            assert!(of("min_ns") <= of("p50_ns") && of("p50_ns") <= of("max_ns"), "{}", row.0);
            assert!(of("sd_ns") <= of("max_ns") - of("min_ns"), "{}", row.0);
            let mean = of("total_ns") / timed;
            assert!(of("mean_ns").abs_diff(mean) <= 1 && of("min_ns") <= mean, "{}", row.0);
        }
    }
    assert_eq!(ended, 3_000);
}

/// A call that is open at both ends of the trace is counted at no time, and one that is open at its end
/// is told. Nothing counts after that.
#[test]
fn calls_that_are_open_at_the_end_are_told() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("counted.c")).expect("builds");
    let mut target = Command::new(&path);
    target.arg("open").stdin(Stdio::piped());
    let (target, input, mut output) = process::Running::start_piped(&mut target).expect("starts");
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(&mut output), &mut line)
        .expect("it says that it is ready");
    let traced = Trace::attach(&env, target.pid())
        .expect("starts")
        .args(["--aggregate", "-d", "0.5"])
        .functions(["holds", "works"])
        .finish()
        .and_then(|traced| traced.expect_code(0))
        .expect("runs");
    drop(input);
    let mut said = String::new();
    std::io::Read::read_to_string(&mut output, &mut said).expect("it tells its counts");
    target.wait(Duration::from_secs(20)).expect("ends");
    let report = traced.report().expect("reports");
    let (calls, timed, untimed, open) = report.expect("works").expect("traced").ends();
    assert!(timed > 50 && untimed == 0 && open <= 1, "{calls} {timed} {untimed} {open}");
    assert_eq!(report.expect("holds").expect("traced").ends(), (0, 0, 0, 0));
    let truth = Truth::parse(&said);
    let (_, made) = truth.calls.iter().find(|(name, _)| name == "works").expect("printed");
    assert!(calls < *made, "{calls} of {made}");
}

/// Half of the least room for paths has those of 16 values. The others share theirs.
#[test]
fn values_without_room_are_counted_with_others() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("requests.c")).expect("builds");
    let file = tempfile::NamedTempFile::new().expect("a file");
    let mut command = Command::new(&env.ctrace);
    command.args(["run", "--aggregate", "-f", "step", "--spool", "1KiB", "--format", "json"]);
    command.args(["--arg", "serve: key=0:str", "--by", "serve: key", "-o"]).arg(file.path());
    let finished = process::run(command.arg("--").arg(&path).arg("500"), Duration::from_secs(60));
    let finished = finished.expect("runs");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let text = std::fs::read_to_string(file.path()).expect("there");
    let reports: Vec<_> = text.lines().map(|line| Report::parse(line).expect("a report")).collect();
    // The whole, 16 values and the others.
    assert_eq!(reports.len(), 18);
    let calls = |report: &Report| {
        ["serve", "step"].map(|name| report.expect(name).map_or(0, |row| row.calls()))
    };
    assert_eq!(calls(&reports[0]), [565, 1_540]);
    assert_eq!(reports[0].loss("calls_untimed"), 0, "{}", reports[0].losses());
    let of = |value: &str| {
        let is_it = |report: &&Report| report.0["part"]["calls"]["value"] == value;
        reports.iter().find(is_it).map(calls).expect("a part")
    };
    assert_eq!((of("cheap"), of("dear")), ([40, 40], [25, 500]));
    let sums = reports[1..]
        .iter()
        .map(calls)
        .fold([0, 0], |sum, calls| [sum[0] + calls[0], sum[1] + calls[1]]);
    assert_eq!(sums, [565, 1_540]);
    let told = "the kernel had no room for more values of `key`";
    reports[17].expect_note(&[" calls are among the others", told]).expect("told");
}

/// Nothing counts calls without a path in a part, and reports on parts say so.
#[test]
fn parts_say_that_they_lack_calls_without_a_path() {
    let env = or_skip!(gate::live(Link::Session));
    let globs = ["left", "right"];
    let by = ["--spool", "1KiB", "--arg", "left: depth=0:u32", "--by", "left: depth"];
    let path = env.targets.get(&program("counted.c")).expect("builds");
    let file = tempfile::NamedTempFile::new().expect("a file");
    let mut command = Command::new(&env.ctrace);
    command.args(["run", "--aggregate"]).args(globs.iter().flat_map(|glob| ["-f", glob]));
    command.args(by).args(["--format", "json", "-o"]).arg(file.path());
    let finished = process::run(command.arg("--").arg(&path).arg("paths"), Duration::from_secs(60));
    let finished = finished.expect("runs");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let text = std::fs::read_to_string(file.path()).expect("there");
    let reports: Vec<_> = text.lines().map(|line| Report::parse(line).expect("a report")).collect();
    assert_eq!(reports[0].loss("calls_untimed"), 2_046 - 63);
    assert!(reports.len() > 1, "there are parts");
    for part in &reports[1..] {
        part.expect_note(&["no part has ", " calls of left: they have no path"]).expect("told");
        part.expect_note(&["the rows of parts lack ", " calls of other functions"]).expect("told");
    }
}

#[test]
fn what_needs_single_calls_is_refused_in_one_line() {
    let ctrace = or_skip!(gate::binary());
    let refused: [(&[&str], &str); 18] = [
        (&["-f", "f", "--view", "calls"], "'calls'"),
        (&["-f", "f", "--view", "timeline"], "'timeline'"),
        (&["-f", "f", "--view", "ctrack"], "'ctrack'"),
        (&["-f", "f", "--view", "threads"], "'threads'"),
        (&["-f", "f", "--sort", "ae"], "'innermost'"),
        (&["-f", "f", "--by", "thread"], "--by"),
        (&["-f", "f", "--cpu"], "--cpu"),
        (&["-f", "f", "--budget", "5"], "--budget"),
        (&["-f", "f", "--thread", "a"], "--thread"),
        (&["-f", "f", "--depth", "128"], "127 at most"),
        (&["-f", "f", "--arg", "f: 0:u64"], "--by 'FUNCTION: ARG'"),
        (&["-f", "f", "--ret", "f: u64", "--by", "f: retval"], "--ret"),
        (&["-f", "f", "--where", "f: 0:u64 > 1"], "--where"),
        (&["-f", "f", "--arg", "f: 0:u64", "--by", "thread"], "--arg"),
        (&["--locks"], "--locks needs every call"),
        (&["-f", "f", "-u", "a:b"], "-u"),
        (&["-f", "f", "-m", "*"], "-m"),
        (&[], "-f"),
    ];
    for (options, word) in refused {
        let mut command = Command::new(&ctrace);
        command.args(["run", "--aggregate"]).args(options).args(["--", "true"]);
        let finished = process::run(&mut command, Duration::from_secs(20)).expect("runs");
        assert_eq!(finished.shell_code(), 125, "{options:?}");
        let said = finished.stderr.trim();
        assert!(said.contains(word) && said.lines().count() == 1, "{options:?}: {said}");
    }
}
