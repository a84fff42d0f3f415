//! `--budget`: the cost of the probes stays within a share of the target's own CPU time, and unseen
//! calls are estimated.

use ctrace_tests::daemon::{Daemon, check_reports, folder, reports};
use ctrace_tests::env::{Env, Link};
use ctrace_tests::http;
use ctrace_tests::look::wait_until;
use ctrace_tests::process::{Finished, Running};
use ctrace_tests::prometheus::free_address;
use ctrace_tests::report::{Function, Report};
use ctrace_tests::targets::program;
use ctrace_tests::trace::Trace;
use ctrace_tests::{gate, or_skip};
use rustix::process::Signal;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(120);
const DISARMED: &str = "ctrace_function_disarmed_seconds_total";

fn start(env: &Env, arguments: &[&str]) -> Running {
    let path = env.targets.get(&program("budget.c")).expect("budget builds");
    Running::start_ready(Command::new(path).args(arguments)).expect("budget starts")
}

/// Returns a number that the program printed after this word.
fn printed(finished: &Finished, word: &str) -> f64 {
    let line = finished.stdout.lines().find_map(|line| line.strip_prefix(word)?.strip_prefix(' '));
    line.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("{}", finished.stdout))
}

/// Returns the program's own count.
fn truth(finished: &Finished, name: &str) -> f64 {
    printed(finished, &format!("calls {name}"))
}

/// Returns its rounds for each second of its CPU time, whatever else the machine does.
fn speed(finished: &Finished) -> f64 {
    truth(finished, "round_") / printed(finished, "cpu_us") * 1e6
}

/// Traces the whole program. It starts when its probes are armed, however long a busy host takes.
fn traced(env: &Env, arguments: &[&str], options: &[&str]) -> (Report, Finished) {
    let path = env.targets.get(&program("budget.c")).expect("budget builds");
    let functions = ["round_", "often", "tiny"];
    let traced = Trace::run(env)
        .map(|trace| trace.functions(functions).args(options.iter().copied()).limit(LIMIT))
        .and_then(|trace| trace.program(&path, arguments.iter().copied()).finish())
        .and_then(|traced| traced.expect_code(0))
        .expect("traces");
    let report = traced.report().expect("a report").clone();
    report.check_schema().expect("as the schema says");
    report.check_sums().expect("sums agree");
    (report, traced.finished)
}

fn sampled(function: Function<'_>) -> &serde_json::Value {
    let sampled = &function.0["sampled"];
    assert!(sampled.is_object(), "{} was armed throughout", function.name());
    sampled
}

/// A function that is a little too costly is armed in windows, and its calls are estimated.
#[test]
fn what_is_too_dear_is_sampled() {
    let env = or_skip!(gate::live(Link::Session));
    // A busy host leaves too few windows for an estimate. A longer run has more.
    let has_estimate = |(report, _): &(Report, Finished)| {
        let often = report.expect("often").expect("often");
        often.0["sampled"]["calls"].is_number()
    };
    let mut runs = ["30", "60", "100"]
        .into_iter()
        .map(|time| traced(&env, &[time, "0"], &["--budget", "0.5%"]));
    let (report, finished) = runs.find(has_estimate).expect("an estimate");
    assert!(report.expect("round_").expect("round_").0["sampled"].is_null());
    let often = report.expect("often").expect("often");
    let of_often = sampled(often);
    let (seen, truth) = (often.calls() as f64, truth(&finished, "often"));
    let part = of_often["armed_percent"].as_f64().expect("a percent");
    // The share depends on what a probe costs on this machine.
    assert!(part < 80.0 && seen < 0.9 * truth, "{of_often}: {seen} of {truth}");
    let calls = of_often["calls"].as_f64().expect("an estimate");
    let error = of_often["calls_error"].as_f64().expect("an error");
    let off = (calls - truth).abs();
    assert!(off < 2.0 * error + 0.1 * truth, "{of_often}, {truth} in truth");
    report.expect_note(&["budget of 0.5 %", "often"]).expect("a note");
}

/// A call that is open when its function loses its probes makes those inside it no deeper from then on.
#[test]
fn calls_inside_one_that_is_disarmed_are_not_too_deep() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("shed.c")).expect("shed builds");
    for by in [&[][..], &["--thread", "*"]] {
        let traced = Trace::run(&env)
            .map(|trace| trace.functions(["busy", "step"]).args(["--budget", "5%", "--depth", "1"]))
            .and_then(|trace| {
                trace.args(by.iter().copied()).limit(LIMIT).program(&path, ["10"]).finish()
            })
            .and_then(|traced| traced.expect_code(0))
            .expect("traces");
        let report = traced.report().expect("a report");
        sampled(report.expect("busy").expect("busy"));
        let made = truth(&traced.finished, "step");
        let seen = report.expect("step").expect("step").calls() as f64;
        assert!(seen > made / 4.0 && seen < made, "{by:?}: {seen} of {made}");
    }
}

/// A program that probes would slow tenfold runs nearly at full speed.
#[test]
fn the_target_is_not_slowed() {
    let env = or_skip!(gate::live(Link::Session));
    let under = |seconds: &str, budget: &[&str]| {
        let (report, finished) = traced(&env, &[seconds, "0", "4000"], budget);
        (report, speed(&finished))
    };
    let alone = || speed(&start(&env, &["3", "0", "4000"]).wait(LIMIT).expect("ends"));
    // The machine's own speed varies from one to the next.
    let before = alone();
    let (report, with_budget) = under("12", &["--budget", "2%"]);
    let untraced = before.min(alone());
    let (_, without) = under("4", &[]);
    assert!(without < 0.5 * untraced, "{without} rounds/s of {untraced}: not slowed at all");
    assert!(with_budget > 0.7 * untraced, "{with_budget} rounds/s of {untraced}");
    sampled(report.expect("tiny").expect("tiny"));
}

/// Returns the slowdown that a report tells, at least and at most.
fn told_slowdown(report: &Report) -> (f64, f64) {
    let notes = report.0["notes"].as_array().expect("notes");
    let mut notes = notes.iter().filter_map(|note| note.as_str());
    let told = notes.find_map(|note| {
        let slowdown = note.split_once("probe overhead: by CPU time, the target is ")?.1;
        Some(slowdown.split_once(" with the probes")?.0)
    });
    let told = told.unwrap_or_else(|| panic!("{}", report.0["notes"]));
    let factors: Vec<f64> = told.split([' ', '×']).filter_map(|word| word.parse().ok()).collect();
    let is_open = told.starts_with("at least") || told.starts_with("more than");
    (factors[0], if is_open { f64::INFINITY } else { factors[factors.len() - 1] })
}

/// Has the cost of a hit measured, and never stops.
const MEASURED: [&str; 2] = ["--max-slowdown", "100000%"];

/// The slowdown in the report is near the true one, whatever a hit costs here. The target's own clock
/// tells both.
#[test]
fn the_slowdown_is_told() {
    let env = or_skip!(gate::live(Link::Session));
    // What a hit costs differs tenfold between machines. Where the probes take nearly all of the time,
    // nothing can tell how much is left.
    let slowdown = |tiny: &str, options: &[&str]| {
        let alone = speed(&start(&env, &["1", "0", tiny]).wait(LIMIT).expect("ends"));
        alone / speed(&traced(&env, &["1", "0", tiny], options).1)
    };
    for options in [&[][..], &["--returns", "ret-sites"]] {
        let mut counts = ["300", "100", "40", "20", "10", "5"].into_iter();
        let tiny =
            counts.find(|tiny| slowdown(tiny, options) < 4.5).expect("few calls cost little");
        let alone = || speed(&start(&env, &["2", "0", tiny]).wait(LIMIT).expect("ends"));
        let before = alone();
        let (report, finished) = traced(&env, &["5", "0", tiny], &[options, &MEASURED].concat());
        let untraced = (before + alone()) / 2.0;
        let (truth, (least, most)) = (untraced / speed(&finished), told_slowdown(&report));
        assert!(truth > 1.2, "{truth}: not slowed");
        // Other work on the processor empties caches, and that is user time of the target.
        assert!(least < 1.2 * truth && most > truth / 1.6, "{least} to {most}, in truth {truth}");
        assert!(least > truth / 4.0, "{least} to {most} tells nothing of {truth}");
    }
}

/// When the target becomes calm, everything is armed all the time again.
#[test]
fn what_is_calm_comes_back() {
    let env = or_skip!(gate::live(Link::Session));
    let target = start(&env, &["600", "300"]);
    let dir = TempDir::new().expect("a folder");
    let file = dir.path().join("reports");
    let mut command = Command::new(&env.ctrace);
    command.args(["attach", &target.pid().to_string(), "-f", "round_", "-f", "often"]);
    // Busy, the probes cost 1 % to 3 %, however much a busy host slows the target beside the least
    // cost of a probe; calm, they cost less than 0.1 %.
    command.args(["--format", "json", "--budget", "0.5%", "--interval", "4", "-o"]).arg(&file);
    let tracing = Running::start(&mut command).expect("ctrace starts");
    let is_sampled = || -> Vec<bool> {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        let reports = text.lines().filter_map(|line| Report::parse(line).ok());
        let often =
            |report: Report| report.expect("often").expect("often").0["sampled"].is_object();
        reports.map(often).collect()
    };
    let wait_for = |is_last: bool| {
        let begun = Instant::now();
        while is_sampled().last() != Some(&is_last) {
            assert!(begun.elapsed() < LIMIT, "waiting for {is_last}: {:?}", is_sampled());
            std::thread::sleep(Duration::from_millis(200));
        }
    };
    // `often` is too dear, and then it is not.
    wait_for(true);
    target.signal(Signal::USR1).expect("the target lives");
    wait_for(false);
    tracing.signal(Signal::INT).expect("ctrace runs");
    let finished = tracing.wait(LIMIT).expect("it ends");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    drop(target);
}

/// Returns the scraped number of a function, or of the target without one.
fn metric(scrape: &str, name: &str, function: Option<&str>) -> f64 {
    let function = function.map(|function| format!("function=\"{function}\""));
    let mut lines = scrape.lines().filter_map(|line| line.strip_prefix(&format!("{name}{{")));
    let line = lines.find(|line| function.as_ref().is_none_or(|function| line.contains(function)));
    let value = line.and_then(|line| line.rsplit(' ').next()?.parse().ok());
    value.unwrap_or_else(|| panic!("no {name} of {function:?} in {scrape}"))
}

/// The daemon's reports name sampled functions, and its metrics count the seen calls and the unseen
/// time.
#[test]
fn the_daemon_tells_what_it_shed() {
    let env = or_skip!(gate::live(Link::Session));
    let dir = folder(&env, &[("budget", &program("budget.c"))]).expect("the target builds");
    let metrics = free_address().expect("one");
    let targets = format!(
        "[metrics]\nlisten = \"{metrics}\"\n[[target]]\nid = \"busy\"\nexe = \"DIR/budget\"\n\
         functions = [\"round_\", \"often\"]\nbudget = \"1%\"\ninterval = \"6s\"\n"
    );
    let daemon = Daemon::start(&env, dir, &targets).expect("the daemon starts");
    let target = daemon.target("budget", &["600", "0"]).expect("starts");
    daemon.wait_until_traced(target.pid()).expect("traced");
    let scrape = || http::get(metrics, "/metrics").expect("answers");
    let mut busy = String::new();
    wait_until("`often` has been away for a while", || {
        busy = scrape();
        busy.contains("function=\"often\"") && metric(&busy, DISARMED, Some("often")) > 8.0
    })
    .expect("too dear");
    assert!(metric(&busy, "ctrace_target_functions_sampled", None) >= 1.0, "{busy}");
    assert_eq!(metric(&busy, "ctrace_target_budget_ratio", None), 0.01);
    target.signal(Signal::KILL).expect("runs");
    wait_until("it is let go", || daemon.traced().is_empty()).expect("let go");
    let last = scrape();
    assert_eq!(metric(&last, "ctrace_target_functions_sampled", None), 0.0, "nothing is traced");
    let (ended, _dir) = daemon.end().expect("ends");
    let all = reports(&ended.stdout).expect("JSON lines");
    check_reports(&all).expect("end to end");

    let (mut away, mut seen) = (0.0, 0.0);
    for report in &all {
        let report = Report::parse(&report.to_string()).expect("a report");
        let often = report.expect("often").expect("a row");
        let whole = report.0["duration_ns"].as_f64().expect("a number");
        let sampled = &often.0["sampled"];
        away += (whole - sampled["armed_ns"].as_f64().unwrap_or(whole)) / 1e9;
        seen += often.calls() as f64;
        if sampled.is_object() {
            report.expect_note(&["budget of 1 %", "often"]).expect("a note");
        }
    }
    let of_often = |name| metric(&last, name, Some("often"));
    assert!((of_often(DISARMED) - away).abs() < 0.01, "{away} s in reports: {last}");
    // A call that is open at the end of an interval is in two reports.
    let (calls, twice) = (of_often("ctrace_function_calls_total"), all.len() as f64);
    assert!(calls <= seen && calls >= seen - twice, "{seen} in reports, {calls} in metrics");
}

/// The probes of calls that are too deep to be shown cost as much as others.
#[test]
fn calls_that_are_too_deep_cost_too() {
    let env = or_skip!(gate::live(Link::Session));
    let (report, _) = traced(&env, &["6", "0", "4000"], &["--budget", "2%", "--depth", "2"]);
    let part =
        sampled(report.expect("tiny").expect("tiny"))["armed_percent"].as_f64().expect("a percent");
    assert!(part < 80.0, "armed for {part} % of the time");
}

/// Exceptions leave a function all the time. It takes no longer than the program itself measures, and what
/// works comes first.
#[test]
fn what_is_left_by_exceptions_keeps_its_end() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("throws_often.cpp")).expect("throws_often builds");
    let traced = Trace::run(&env)
        .map(|trace| trace.functions(["parse", "handle", "reply"]).args(["--budget", "5%"]))
        .and_then(|trace| trace.limit(LIMIT).program(&path, ["6"]).finish())
        .and_then(|traced| traced.expect_code(0))
        .expect("traces");
    let report = traced.report().expect("a report");
    let [handle, reply] = ["handle", "reply"].map(|name| report.expect(name).expect("a row"));
    let [in_handle, in_reply] =
        [handle, reply].map(|row| row.integer("total_ns").expect("a number") as f64);
    let truth = printed(&traced.finished, "us handle") * 1e3;
    assert!(in_handle <= 1.3 * truth, "{in_handle} ns of {truth} ns");
    assert!(in_handle < in_reply, "`reply` works: {in_reply} ns, and `handle` {in_handle} ns");
    let (calls, timed, ..) = handle.ends();
    assert!(timed > calls / 2, "{timed} of {calls} calls of `handle` are timed");
    report.expect_note(&["2 functions are timed by costlier probes"]).expect("a note");
}

#[test]
fn a_recording_has_none() {
    let env = or_skip!(gate::live(Link::Session));
    let mut command = Command::new(&env.ctrace);
    command.args(["record", "--budget", "1%", "-p", "1"]);
    let output = command.output().expect("ctrace starts");
    assert_eq!(output.status.code(), Some(125));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(told.starts_with("ctrace: --budget is for reports"), "{told}");
}
