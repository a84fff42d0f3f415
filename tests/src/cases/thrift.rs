//! Calls that the eBPF programs leave out, because they are deeper than `--depth` or shorter than
//! `--min-duration`.

use crate::env::{Env, Link};
use crate::probes::wait_until_armed;
use crate::process::Running;
use crate::report::Report;
use crate::targets::program;
use crate::trace::Trace;
use crate::truth::Truth;
use anyhow::{Context as _, Result, ensure};
use rustix::process::Signal;
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

/// With it, ctrace itself leaves calls out: the programs do not know the names of threads.
const BY_CTRACE: [&str; 2] = ["--thread", "*"];

/// Returns the calls of each path.
fn calls_by_path(report: &Report) -> BTreeMap<String, u64> {
    let paths = report.0["paths"].as_array().into_iter().flatten();
    paths.map(|path| (path["path"].to_string(), path["calls"].as_u64().unwrap_or(0))).collect()
}

/// Runs a program, and returns its report and the number of its calls, as it prints them.
pub(super) fn run(
    env: &Env,
    of: (&str, &[&str], &[&str]),
    options: &[&str],
) -> Result<(Report, u64, u64)> {
    let (source, arguments, globs) = of;
    let traced = Trace::run(env)?
        .functions(globs.iter().copied())
        .args(options.iter().copied())
        .arg("-v")
        .program(&env.targets.get(&program(source))?, arguments.iter().copied())
        .finish()?
        .expect_code(0)?;
    let report = traced.report()?;
    report.check_sums()?;
    report.check_lossless()?;
    let made = Truth::parse(&traced.finished.stdout).calls.iter().map(|(_, calls)| calls).sum();
    let stderr = &traced.finished.stderr;
    let delivered = stderr.lines().find_map(|line| {
        let (_, rest) = line.split_once("events: ")?;
        rest.split_once(" delivered")?.0.parse().ok()
    });
    let delivered = delivered.with_context(|| format!("how many events came: {stderr}"))?;
    Ok((Report(report.0.clone()), made, delivered))
}

/// What the programs leave out is what ctrace would leave out, and nothing else.
pub(super) fn depth_in_the_kernel(env: &Env) -> Result<()> {
    let calls = env.scaled(2_000);
    let programs: [(&str, &[&str], &[&str]); 6] = [
        ("counts.c", &[&calls], &["leaf", "ping", "pong", "tail_*", "descend"]),
        ("longjmp.c", &["500"], &["catcher", "dive", "leap", "after"]),
        ("throw.cpp", &[], &["thrower", "passer", "catcher", "plain"]),
        ("threads.c", &[&calls, "300"], &["work", "inner", "blink"]),
        ("altstack.c", &[], &["interrupted", "on_alternate", "fiber_*", "schedule"]),
        ("rounds.c", &["500"], &["outer", "middle", "leaf", "rounds"]),
    ];
    // What is left out does not depend on the kernel.
    let programs = if env.slower > 1 { &programs[..1] } else { &programs[..] };
    for &of in programs {
        for (depth, returns) in [("3", "auto"), ("1", "auto"), ("1", "ret-sites")] {
            let options = ["--depth", depth, "--returns", returns];
            compare(env, of, &options).with_context(|| format!("{} with {options:?}", of.0))?;
        }
    }
    Ok(())
}

fn compare(env: &Env, of: (&str, &[&str], &[&str]), options: &[&str]) -> Result<()> {
    let (kernel, made, few) = run(env, of, options)?;
    let (own, _, many) = run(env, of, &[options, &BY_CTRACE[..]].concat())?;
    let left_out = kernel.0["filtered_calls"].as_u64().unwrap_or(0);
    let kept: u64 = kernel.functions().map(|function| function.calls()).sum();
    ensure!(kept + left_out == made, "{kept} calls and {left_out} left out, of {made}");
    ensure!(kernel.0["filtered_calls"] == own.0["filtered_calls"], "{}", own.0["filtered_calls"]);
    for function in own.functions() {
        let other = kernel.expect(function.name())?;
        let calls = (function.calls(), other.calls());
        ensure!(calls.0 == calls.1, "{}: {calls:?} calls", function.name());
        // Which call is around others is less clear where a thread changes its stack.
        if of.0 == "altstack.c" {
            continue;
        }
        // Calls without return probes need not be restored: more of those around them are timed.
        for key in ["open", "headless"] {
            let (there, here) = (function.integer(key)?, other.integer(key)?);
            ensure!(there == here, "{}: {key} is {there}, and {here} here", function.name());
        }
        let inside = |row: &serde_json::Value| row["callees_left_out"].as_u64().unwrap_or(0);
        let (there, here) = (inside(function.0), inside(other.0));
        ensure!(there == here, "{}: {there} and {here} left out inside", function.name());
    }
    if of.0 == "altstack.c" {
        return Ok(());
    }
    let (there, here) = (calls_by_path(&own), calls_by_path(&kernel));
    ensure!(there == here, "paths {there:?} and {here:?}");
    let unseen = told(&kernel, "--depth")?;
    ensure!(
        unseen <= left_out && (unseen > 0 || left_out == 0),
        "{unseen} of {left_out} have no events"
    );
    // How many ends are seen depends on when it comes to costlier probes.
    if !has_switched(&kernel) && !has_switched(&own) {
        ensure!(few + unseen <= many, "{few} events and {many}, though {unseen} calls have none");
    }
    Ok(())
}

/// Returns whether functions are timed by other probes since an exception went through them.
fn has_switched(report: &Report) -> bool {
    let notes = report.0["notes"].as_array().into_iter().flatten();
    notes.filter_map(|note| note.as_str()).any(|note| note.contains("timed by costlier probes"))
}

/// Returns the number of calls without events, as the note on an option tells it.
fn told(report: &Report, option: &str) -> Result<u64> {
    let mut notes = report.0["notes"].as_array().into_iter().flatten().filter_map(|it| it.as_str());
    let told =
        notes.find_map(|note| note.strip_prefix(option)?.strip_prefix(": ")?.split(' ').next());
    Ok(told.unwrap_or("0").replace(',', "").parse()?)
}

/// Short calls make no events, and are counted. Calls that are long, or whose ends are not seen, do.
pub(super) fn min_duration_in_the_kernel(env: &Env) -> Result<()> {
    const SHORTEST_NS: u64 = 2_000_000;
    let calls = env.scaled(2_000);
    let programs: [(&str, &[&str], &[&str]); 5] = [
        ("counts.c", &[&calls], &["leaf", "ping", "pong", "tail_*", "descend"]),
        ("longjmp.c", &["500"], &["catcher", "dive", "leap", "after"]),
        ("throw.cpp", &[], &["thrower", "passer", "catcher", "plain"]),
        ("threads.c", &[&calls, "300"], &["work", "inner", "blink"]),
        ("altstack.c", &[], &["interrupted", "on_alternate", "fiber_*", "schedule"]),
    ];
    // What is left out does not depend on the kernel.
    let programs = if env.slower > 1 { &programs[..1] } else { &programs[..] };
    for &of in programs {
        let plain = run(env, of, &["--returns", "ret-sites"])?;
        for more in [&[][..], &["--depth", "2"]] {
            let options = ["--returns", "ret-sites", "--min-duration", "2ms"];
            let all = [&options, more].concat();
            check_long(run(env, of, &all)?, &plain, SHORTEST_NS, more.is_empty())
                .with_context(|| format!("{} with {all:?}", of.0))?;
        }
    }
    Ok(())
}

/// Checks a run in which short calls were left out beside one in which none was. `untimed`: calls whose
/// ends were not seen are all there.
fn check_long(
    (long, made, few): (Report, u64, u64),
    (plain, _, many): &(Report, u64, u64),
    shortest: u64,
    untimed: bool,
) -> Result<()> {
    let left_out = long.0["filtered_calls"].as_u64().unwrap_or(0);
    let kept: u64 = long.functions().map(|function| function.calls()).sum();
    ensure!(kept + left_out == made, "{kept} calls and {left_out} left out, of {made}");
    for function in long.functions() {
        let (there, here) = (plain.expect(function.name())?.ends(), function.ends());
        let is_so = here.3 == there.3 && (here.2 == there.2 || !untimed);
        ensure!(is_so, "{}: calls are {there:?}, and {here:?}", function.name());
        if here.1 > 0 {
            let least = function.integer("min_ns")?;
            ensure!(least >= shortest, "{}: a call took {least} ns", function.name());
        }
        let headless = (function.integer("headless")?, plain.expect(function.name())?);
        ensure!(headless.0 <= headless.1.integer("headless")?, "{}: headless", function.name());
    }
    let unseen = told(&long, "--min-duration")?;
    // Calls beside those without an end make events as well.
    let has_unended = plain.loss("calls_untimed") > 0;
    ensure!(unseen <= left_out, "{unseen} of {left_out} have no events");
    ensure!(unseen > 0 || has_unended, "{unseen} of {left_out} have no events");
    ensure!(few + 2 * unseen <= *many, "{few} events and {many}, though {unseen} calls have none");
    Ok(())
}

/// A library that forbids return probes comes within a traced call, whose end is not seen then. So what it calls
/// is not too deep from then on, and it counts once, although its entry is held.
pub(super) fn return_probes_that_go_in_the_kernel(env: &Env) -> Result<()> {
    let library = env.targets.get(&program("libswitch.c"))?;
    let path = env.targets.get(&program("opens_late.c"))?;
    let is_guarded = env.link == Link::Session;
    for options in [["--depth", "1"], ["--min-duration", "5ms"]] {
        let mut command = Command::new(&path);
        let target = Running::start_ready(command.arg(&library).arg("50"))?;
        let trace =
            Trace::attach(env, target.pid())?.functions(["opens", "inner", "plug_*@libswitch*"]);
        let started = trace.args(options).start()?;
        wait_until_armed(target.pid(), &path)?;
        target.signal(Signal::USR1)?;
        wait_until_armed(target.pid(), &library)?;
        target.signal(Signal::USR1)?;
        ensure!(target.wait(Duration::from_secs(30))?.shell_code() == 0, "it failed");
        let traced = started.wait()?.expect_code(0)?;
        let report = traced.report()?;
        let outer = report.expect("opens")?.ends();
        let timed = u64::from(is_guarded);
        ensure!(outer == (1, timed, 1 - timed, 0), "{options:?}: {outer:?}");
        let all = if options[0] == "--depth" && !is_guarded { 50 } else { 0 };
        let inner = report.expect("inner")?.calls();
        ensure!(inner == all, "{options:?}: {inner} calls inside");
        ensure!(report.0["filtered_calls"] == 50 - all, "{}", report.0["filtered_calls"]);
    }
    Ok(())
}

/// Calls on one of two stacks beside each other are not inside those on the other that began later.
pub(super) fn depth_on_stacks_beside_each_other(env: &Env) -> Result<()> {
    let path = env.targets.get(&program("beside.c"))?;
    for returns in ["auto", "ret-sites"] {
        for by in [&[][..], &BY_CTRACE] {
            let target = Running::start_ready(Command::new(&path).arg("50"))?;
            let trace = Trace::attach(env, target.pid())?.functions(["low", "leaf", "high"]);
            let trace = trace.args(["--depth", "3", "--returns", returns]);
            let started = trace.args(by.iter().copied()).start()?;
            started.wait_until_tracing()?;
            target.signal(Signal::USR1)?;
            ensure!(target.wait(Duration::from_secs(30))?.shell_code() == 0, "it failed");
            let traced = started.wait()?.expect_code(0)?;
            let report = traced.report()?;
            for (name, expected) in [("low", 50), ("leaf", 50), ("high", 100)] {
                let calls = report.expect(name)?.calls();
                ensure!(calls == expected, "{returns} {by:?}: {calls} calls of {name}");
            }
            ensure!(report.0["filtered_calls"] == 100, "{}", report.0["filtered_calls"]);
        }
    }
    Ok(())
}
