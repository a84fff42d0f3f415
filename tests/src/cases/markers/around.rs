//! Tests scopes among functions, in interval reports, and with full rings.

use crate::env::Env;
use crate::report::Report;
use crate::targets::program;
use crate::trace::Trace;
use crate::truth::Truth;
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::process::Command;

/// Functions and scopes nest in turn. They use two clocks, but each call is in its place.
pub(crate) fn markers_in_one_tree(env: &Env) -> Result<()> {
    const CHAIN: [&str; 4] = ["outermost", "between", "inside", "innermost"];
    let calls = env.scaled(20_000);
    let traced = Trace::run(env)?
        .functions(["outermost", "inside"])
        .args(["-m", "*"])
        .program(&env.targets.get(&program("marks_tree.c"))?, [&*calls])
        .finish()?
        .expect_code(0)?;
    let report = traced.report()?;
    Truth::parse(&traced.finished.stdout).check_scopes(report)?;
    let paths = report.0["paths"].as_array().context("paths")?;
    let mut seen: Vec<(Value, &Value)> =
        paths.iter().map(|path| (path["path"].clone(), &path["calls"])).collect();
    seen.sort_by_key(|(path, _)| path.as_array().map_or(0, Vec::len));
    let number = Value::from(calls.parse::<u64>()?);
    let expected: Vec<(Value, &Value)> =
        (1..=CHAIN.len()).map(|depth| (Value::from(CHAIN[..depth].to_vec()), &number)).collect();
    ensure!(seen == expected, "paths are {seen:?}");
    // Each call is within its caller's, so the n-th longest are, too.
    for pair in CHAIN.windows(2) {
        let (caller, callee) = (report.expect(pair[0])?, report.expect(pair[1])?);
        for key in ["total_ns", "min_ns", "p50_ns", "p90_ns", "p99_ns", "p999_ns", "max_ns"] {
            let (long, short) = (caller.integer(key)?, callee.integer(key)?);
            ensure!(long >= short, "{key}: {} {long}, but {} {short}", pair[0], pair[1]);
        }
    }
    Ok(())
}

/// A thread that takes minutes to fill its buffer shows its calls in the interval of their end.
pub(crate) fn markers_by_interval(env: &Env) -> Result<()> {
    let file = tempfile::NamedTempFile::new()?;
    let output = Command::new(&env.ctrace)
        .args(["run", "--link", env.link.name(), "--format", "json", "--interval", "500ms", "-o"])
        .arg(file.path())
        .arg("--")
        .arg(env.targets.get(&program("marks_slow.c"))?)
        .args(["80", "50"])
        .output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let stdout = String::from_utf8_lossy(&output.stdout);
    let ended: Vec<u64> =
        stdout.lines().filter_map(|line| line.strip_prefix("ended ")?.parse().ok()).collect();
    ensure!(ended.len() == 80, "the target tells each call");
    let text = std::fs::read_to_string(file.path())?;
    let reports: Vec<Value> = text.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    ensure!(reports.len() >= 8, "{} reports of half a second", reports.len());
    let mut sum = 0;
    for report in &reports {
        let (start, end) = (report["start_ns"].as_u64(), report["end_ns"].as_u64());
        let within = start.context("a start")?..end.context("an end")?;
        let truth = ended.iter().filter(|at| within.contains(at)).count() as u64;
        let functions = report["functions"].as_array().context("functions")?;
        let slow = functions.iter().find(|function| function["name"] == "slow");
        let timed = slow.and_then(|slow| slow["timed"].as_u64()).unwrap_or(0);
        sum += timed;
        // One call may end at either edge: the target reads its clock a little later.
        ensure!(timed.abs_diff(truth) <= 2, "{timed} calls in an interval with {truth}: {text}");
    }
    ensure!(sum == 80, "{sum} calls in all intervals");
    Ok(())
}

/// A burst at full speed fits. Threads wait for ctrace, if they may, before events are lost.
pub(crate) fn markers_in_a_burst(env: &Env) -> Result<()> {
    const CALLS: u64 = 2 * 1_000_000;
    let scopes = env.targets.get(&program("scopes.c"))?;
    let burst = |each: &str, options: &[&str]| -> Result<Report> {
        let traced = Trace::run(env)?
            .args(options.iter().copied())
            .program(&scopes, ["burst", "2", each])
            .finish()?
            .expect_code(0)?;
        traced.report().cloned()
    };
    let whole = burst("1000000", &[])?;
    let timed: u64 = whole.functions().map(|scope| scope.ends().1).sum();
    ensure!(timed == CALLS, "{timed} of {CALLS} calls are timed; {}", whole.losses());
    let waits = |report: &Report| report.expect_note(&["threads waited for"]).is_ok();
    // Such rings fill in a tenth of a millisecond.
    let small = |on_full| burst("300000", &["--ring-size", "64KiB", "--on-full", on_full]);
    ensure!(waits(&small("wait")?), "no thread waited for small rings");
    let dropped = small("drop")?;
    ensure!(!waits(&dropped), "a thread waited although it was not to");
    ensure!(dropped.loss("events") > 0, "the small rings were not full");
    Ok(())
}

/// Delivered and lost events sum up to the written ones: two events a call.
pub(crate) fn markers_with_full_rings(env: &Env) -> Result<()> {
    let calls = env.scaled(600_000);
    let traced = Trace::run(env)?
        .args(["--ring-size", "4096", "--on-full", "drop"])
        .program(&env.targets.get(&program("marks_threads.c"))?, ["rate", "1", &calls])
        .finish()?
        .expect_code(0)?;
    let report = traced.report()?;
    report.check_sums()?;
    let (mut delivered, mut perhaps) = (0, 0);
    for scope in report.functions() {
        let (calls, timed, untimed, _) = scope.ends();
        delivered += calls + timed + scope.integer("headless")?;
        // A call that lost events while open may or may not have its exit.
        perhaps += untimed;
    }
    let lost = report.loss("events");
    // `brief` and `inner`.
    let written = 2 * 2 * calls.parse::<u64>()?;
    ensure!(lost > written / 100, "the rings were not full: {lost} of {written} lost");
    // The start, end and buffer of a thread are events too, and a few of them may be lost.
    let told = delivered + lost..=delivered + lost + perhaps;
    ensure!(
        *told.end() >= written && *told.start() <= written + 8,
        "{delivered} events were delivered, {perhaps} perhaps, and {lost} lost, of {written}; {}",
        report.losses()
    );
    // On an emulated CPU that shares its host CPU, a thread may be paused for longer than events
    // are held.
    ensure!(report.loss("late") <= written / 1000, "{}", report.losses());
    ensure!(report.loss("decode_errors") == 0, "{}", report.losses());
    Ok(())
}
