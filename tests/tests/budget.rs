//! `--budget`: what the probes cost stays within a share of the target's own processor time, and
//! what is not seen any more is estimated.

use ctrace_tests::env::{Env, Link};
use ctrace_tests::process::{Finished, Running, run};
use ctrace_tests::report::{Function, Report};
use ctrace_tests::targets::program;
use ctrace_tests::trace::Trace;
use ctrace_tests::{gate, or_skip};
use std::process::Command;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);

fn start(env: &Env, arguments: &[&str]) -> Running {
    let path = env.targets.get(&program("budget.c")).expect("budget builds");
    Running::start_ready(Command::new(path).args(arguments)).expect("budget starts")
}

/// What the program itself counted.
fn truth(finished: &Finished, name: &str) -> f64 {
    let line =
        finished.stdout.lines().find_map(|line| line.strip_prefix(&format!("calls {name} ")));
    line.and_then(|count| count.parse().ok()).unwrap_or_else(|| panic!("{}", finished.stdout))
}

/// Traces all that the program does, from its start on.
fn traced(env: &Env, arguments: &[&str], options: &[&str]) -> (Report, Finished) {
    let target = start(env, arguments);
    let traced = Trace::attach(env, target.pid())
        .and_then(|trace| {
            let functions = ["round_", "often", "tiny"];
            trace.functions(functions).args(options.iter().copied()).limit(LIMIT).finish()
        })
        .and_then(|traced| traced.expect_code(0))
        .expect("traces");
    let report = traced.report().expect("a report").clone();
    report.check_schema().expect("as the schema says");
    report.check_sums().expect("sums agree");
    (report, target.wait(LIMIT).expect("ends"))
}

fn sampled(function: Function<'_>) -> &serde_json::Value {
    let sampled = &function.0["sampled"];
    assert!(sampled.is_object(), "{} was armed throughout", function.name());
    sampled
}

/// A function that is somewhat too dear is armed in windows, and its calls are estimated.
#[test]
fn what_is_too_dear_is_sampled() {
    let env = or_skip!(gate::live(Link::Session));
    let (report, finished) = traced(&env, &["30", "0"], &["--budget", "1%"]);
    assert!(report.expect("round_").expect("round_").0["sampled"].is_null());
    let often = report.expect("often").expect("often");
    let of_often = sampled(often);
    let (seen, truth) = (often.calls() as f64, truth(&finished, "often"));
    let part = of_often["armed_percent"].as_f64().expect("a percent");
    assert!(part < 60.0 && seen < 0.7 * truth, "{of_often}: {seen} of {truth}");
    let calls = of_often["calls"].as_f64().expect("an estimate");
    let error = of_often["calls_error"].as_f64().expect("an error");
    // It was attached a moment after the start.
    let off = (calls - truth).abs();
    assert!(off < 2.0 * error + 0.1 * truth, "{of_often}, {truth} in truth");
    report.expect_note(&["budget of 1 %", "often"]).expect("a note");
}

/// A program that its probes would slow tenfold runs nearly as if there were none.
#[test]
fn the_target_is_not_slowed() {
    let env = or_skip!(gate::live(Link::Session));
    let rounds = |budget: &[&str]| {
        let (report, finished) = traced(&env, &["12", "0", "4000"], budget);
        (report, truth(&finished, "round_"))
    };
    let untraced = start(&env, &["12", "0", "4000"]).wait(LIMIT).expect("ends");
    let untraced = truth(&untraced, "round_");
    let (report, with_budget) = rounds(&["--budget", "2%"]);
    let (_, without) = rounds(&[]);
    assert!(without < 0.5 * untraced, "{without} rounds of {untraced}: not slowed at all");
    assert!(with_budget > 0.7 * untraced, "{with_budget} rounds of {untraced}");
    sampled(report.expect("tiny").expect("tiny"));
}

/// When the target is calm again, everything is armed throughout again.
#[test]
fn what_is_calm_comes_back() {
    let env = or_skip!(gate::live(Link::Session));
    let target = start(&env, &["6", "40"]);
    let pid = target.pid().to_string();
    let finished = run(
        Command::new(&env.ctrace)
            .args(["attach", &pid, "-f", "round_", "-f", "often", "--format", "json"])
            .args(["--budget", "2%", "--interval", "8"]),
        LIMIT,
    )
    .expect("traces");
    assert_eq!(finished.shell_code(), 0, "{}", finished.stderr);
    let reports: Vec<Report> =
        finished.stdout.lines().map(|line| Report::parse(line).expect("a report")).collect();
    let often = |report: &Report| report.expect("often").expect("often").0["sampled"].is_object();
    assert!(often(&reports[0]), "nothing was too dear");
    let last = reports.iter().rev().nth(1).expect("several reports");
    assert!(!often(last), "{}", last.0["notes"]);
    drop(target);
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
