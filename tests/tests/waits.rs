//! Tests that waiting is told from working, on the running kernel.

use ctrace_tests::env::{Env, Link};
use ctrace_tests::recorded::Recorded;
use ctrace_tests::report::{Function, Report};
use ctrace_tests::targets::program;
use ctrace_tests::trace::Trace;
use ctrace_tests::{gate, or_skip, wakers};
use std::process::Command;

const FUNCTIONS: [&str; 5] = ["naps", "takes_lock", "reads_pipe", "works", "serves"];

/// Runs the target. Returns its report, and what it printed.
#[track_caller]
fn traced(env: &Env, options: &[&str]) -> (Report, String) {
    let path = env.targets.get(&program("waits.c").flag("-pthread")).expect("builds");
    let traced = Trace::run(env)
        .expect("starts")
        .functions(FUNCTIONS)
        .args(options.iter().copied())
        .program(&path, [])
        .finish()
        .and_then(|traced| traced.expect_code(0))
        .expect("runs");
    let report = traced.report().expect("reports");
    report.check_sums().expect("the sums are right");
    report.check_lossless().expect("no losses");
    report.check_schema().expect("as the schema says");
    (Report(report.0.clone()), traced.finished.stdout.clone())
}

/// Returns `running`, `runnable` and `blocked`, which must be parts of the total.
#[track_caller]
fn parts(function: Function<'_>) -> [f64; 3] {
    let parts = ["running_ns", "runnable_ns", "blocked_ns"];
    let parts = parts.map(|key| function.integer(key).expect("it is told"));
    let total = function.integer("total_ns").expect("it is told");
    assert_eq!(parts.iter().sum::<u64>(), total, "{}", function.name());
    parts.map(|ns| ns as f64)
}

/// Returns what the target says that the kernel accounted for a function.
fn accounted(stdout: &str, key: &str, name: &str) -> f64 {
    let line = stdout.lines().find_map(|line| line.strip_prefix(&format!("{key} {name} ")));
    line.expect("a line").parse().expect("a number")
}

/// A tick of the kernel's clock in nanoseconds, and a little.
const TICK: f64 = 12e6;

/// Returns the nanoseconds that a hypervisor has taken from all processors, in whole ticks. The kernel
/// accounts them to no thread, and ctrace cannot tell them from running.
fn stolen() -> f64 {
    let stat = std::fs::read_to_string("/proc/stat").expect("it is there");
    let ticks = stat.split_ascii_whitespace().nth(8).and_then(|ticks| ticks.parse::<f64>().ok());
    ticks.expect("the first line has it") * 1e7
}

/// Checks that a part of the rows is what the kernel accounted, give or take 1 % and `within`.
#[track_caller]
fn check(report: &Report, stdout: &str, part: usize, key: &str, within: f64) {
    for name in FUNCTIONS {
        let truth = accounted(stdout, key, name);
        let told = parts(report.expect(name).expect("it was called"))[part];
        // The probes and what the target does to measure take a little.
        let is_so = (told - truth).abs() < truth * 0.01 + within;
        assert!(is_so, "{name} {key}: {told}, not {truth}; {:#}", report.0);
    }
}

/// Returns how long calls of a function waited for this, by the tree.
fn waited(report: &Report, function: &str, wait: &str) -> f64 {
    let paths = report.0["paths"].as_array().expect("paths");
    let is_it = |path: &&serde_json::Value| {
        let names: Vec<_> = path["path"].as_array().into_iter().flatten().collect();
        matches!(names[..], [.., caller, callee] if caller == function && callee == wait)
    };
    paths.iter().filter(is_it).filter_map(|path| path["total_ns"].as_f64()).sum()
}

/// Return probes and probes on the ways out: the programs find out in two ways whether a thread is in a
/// traced call.
#[test]
fn times_are_split_as_the_kernel_accounts_them() {
    let env = or_skip!(gate::live(Link::Session));
    for options in [&["--cpu"][..], &["--cpu", "--returns", "ret-sites"]] {
        let before = stolen();
        let (report, stdout) = traced(&env, options);
        check(&report, &stdout, 0, "running", TICK + stolen() - before);
        if stdout.lines().any(|line| line.starts_with("runnable") && !line.ends_with(" 0")) {
            let told = parts(report.expect("works").expect("it was called"))[1];
            let truth = accounted(&stdout, "runnable", "works");
            assert!((told - truth).abs() < truth * 0.05 + 10e6, "works: {told}, not {truth}");
        }
        for (name, wait) in [
            ("naps", "[blocked: sleep]"),
            ("takes_lock", "[blocked: futex]"),
            ("reads_pipe", "[blocked: read]"),
        ] {
            let [_, _, blocked] = parts(report.expect(name).expect("it was called"));
            let share = waited(&report, name, wait) / blocked;
            assert!((0.99..1.001).contains(&share), "{name}: {share} of it is {wait}");
            // The lock or the pipe is held for 20 ms, from a little before the call.
            assert!(blocked > 5.0 * 15e6, "{name}: {blocked}");
        }
        let [_, _, blocked] = parts(report.expect("works").expect("it was called"));
        assert!(blocked < 20e6, "works: {blocked}");
        // A call contains the calls that it makes: `serves` waits only inside other functions.
        assert!(parts(report.expect("serves").expect("it was called"))[2] > 5.0 * 15e6);
    }
}

#[test]
fn a_recording_tells_the_same() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("waits.c").flag("-pthread")).expect("builds");
    let before = stolen();
    let mut recorded = Recorded::new(&env, FUNCTIONS).expect("a folder").args(["--cpu"]);
    let finished = recorded.program(&path, &[]).expect("runs");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let report = |options: &[&str]| recorded.report(options).expect("a report");
    let whole = report(&[]);
    check(&whole, &finished.stdout, 0, "running", TICK + stolen() - before);
    // No filter takes waits from the calls that it leaves.
    for options in [&["-f", "serves"][..], &["--depth", "1"], &["--min-duration", "1ms"]] {
        let filtered = report(options);
        let [all, some] = [&whole, &filtered].map(|of| parts(of.expect("serves").expect("called")));
        assert_eq!(all, some, "{options:?}");
    }
    let mut unasked = Command::new(&env.ctrace);
    let unasked = unasked.args(["report", "--sort", "running"]).arg(&recorded.file).output();
    let unasked = String::from_utf8_lossy(&unasked.expect("runs").stdout).into_owned();
    assert!(unasked.contains("runnable") && unasked.contains("[blocked: futex]"), "{unasked}");
}

#[test]
fn nobody_pays_unasked() {
    let env = or_skip!(gate::live(Link::Session));
    let (report, _) = traced(&env, &[]);
    assert!(report.functions().all(|row| row.0["running_ns"].is_null()));
    assert!(report.functions().all(|row| row.0["object"] != "kernel"));
}

#[test]
fn each_wait_has_who_ended_it() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("wakers.c").flag("-pthread")).expect("builds");
    for options in [&["--wakers"][..], &["--wakers", "--returns", "ret-sites"]] {
        let trace = Trace::run(&env).expect("starts").functions(wakers::FUNCTIONS);
        let traced = trace.args(options.iter().copied()).program(&path, []).finish();
        let traced = traced.and_then(|traced| traced.expect_code(0)).expect("runs");
        let report = traced.report().expect("reports");
        report.check_lossless().expect("no losses");
        report.check_schema().expect("as the schema says");
        wakers::check(report).expect("as the target does it");
    }
    let mut recorded = Recorded::new(&env, wakers::FUNCTIONS).expect("a folder").args(["--wakers"]);
    let finished = recorded.program(&path, &[]).expect("runs");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let report = recorded.report(&["--view", "wakers"]).expect("a report");
    wakers::check(&report).expect("the same");
}

#[test]
fn who_ends_waits_is_told_only_where_it_is_asked_for() {
    let env = or_skip!(gate::live(Link::Session));
    let path = env.targets.get(&program("wakers.c").flag("-pthread")).expect("builds");
    let mut recorded = Recorded::new(&env, ["takes_lock"]).expect("a folder").args(["--cpu"]);
    assert_eq!(recorded.program(&path, &[]).expect("runs").shell_code(), 0);
    let report = recorded.report(&["--view", "wakers", "--view", "values"]).expect("a report");
    assert!(report.expect("[blocked: futex]").is_ok());
    assert!(report.0["wakers"].is_null() && report.0["values"].is_null());
}
