//! Calls that the eBPF programs count themselves (`--aggregate`), beside the same calls as events.

use super::traced_as_untraced;
use crate::env::Env;
use crate::report::{Function, Report};
use crate::targets::program;
use anyhow::{Context as _, Result, ensure};
use std::collections::BTreeMap;

/// Returns the calls of each path. Of `descend`, which is deeper than what is timed, there is only the first.
fn calls_by_path(report: &Report) -> BTreeMap<String, u64> {
    let paths = report.0["paths"].as_array().into_iter().flatten();
    let of = |path: &serde_json::Value| (path["path"].to_string(), path["calls"].as_u64());
    let is_deep = |path: &str| path.contains("\"descend\",\"descend\"");
    let all = paths.map(of).filter(|(path, _)| !is_deep(path));
    all.filter_map(|(path, calls)| Some((path, calls?))).collect()
}

/// Counts and paths are those of events, whatever calls do.
pub(super) fn counted_as_seen(env: &Env) -> Result<()> {
    let calls = env.scaled(20_000);
    let programs: [(&str, &[&str], &[&str]); 5] = [
        ("counts.c", &[&calls], &["leaf", "ping", "pong", "tail_*", "descend"]),
        ("longjmp.c", &["500"], &["catcher", "dive", "leap", "after"]),
        ("throw.cpp", &[], &["*"]),
        ("catches.cpp", &[], &["parse", "request", "reply"]),
        ("threads.c", &[&calls, "300"], &["work", "inner", "blink"]),
    ];
    // An emulated processor takes a minute to check the programs of each trace. What they count does not
    // depend on the kernel.
    let programs = if env.slower > 1 { &programs[..1] } else { &programs[..] };
    for &(source, arguments, globs) in programs {
        let trace = |options: &[&str]| {
            let traced = traced_as_untraced(env, &program(source), arguments, globs, options)?;
            Ok::<_, anyhow::Error>(Report(traced.report()?.0.clone()))
        };
        let both = || Ok::<_, anyhow::Error>((trace(&[])?, trace(&["--aggregate"])?));
        let (seen, counted) = both().context(source)?;
        ensure!(counted.0["counted"] == true, "{source} is not counted");
        for function in seen.functions() {
            let other = counted.expect(function.name())?;
            let (ends, others) = (function.ends(), other.ends());
            let headless = (function.integer("headless")?, other.integer("headless")?);
            ensure!(
                headless.0 == headless.1,
                "{source}, {}: {headless:?} ends of calls from before",
                function.name()
            );
            ensure!(
                ends.0 == others.0 && ends.3 == others.3,
                "{source}, {}: calls, timed, untimed, open are {ends:?} seen and {others:?} counted",
                function.name()
            );
        }
        let (seen, counted) = (calls_by_path(&seen), calls_by_path(&counted));
        ensure!(seen == counted, "{source}: paths seen {seen:?}, counted {counted:?}");
    }
    Ok(())
}

/// Calls that are deeper than asked for are those that events leave out, and no others.
pub(super) fn counted_to_a_depth(env: &Env) -> Result<()> {
    let calls = env.scaled(2_000);
    let programs: [(&str, &[&str], &[&str]); 5] = [
        ("counts.c", &[&calls], &["leaf", "ping", "pong", "tail_*", "descend"]),
        ("rounds.c", &["500"], &["outer", "middle", "leaf", "rounds"]),
        ("longjmp.c", &["500"], &["catcher", "dive", "leap", "after"]),
        ("throw.cpp", &[], &["thrower", "passer", "catcher", "plain"]),
        ("threads.c", &[&calls, "300"], &["work", "inner", "blink"]),
    ];
    // An emulated processor takes a minute to check the programs of each trace.
    let (programs, limits) = match env.slower > 1 {
        true => (&programs[..1], &[("3", "auto")][..]),
        false => (&programs[..], &[("3", "auto"), ("1", "auto"), ("1", "ret-sites")][..]),
    };
    for &(source, arguments, globs) in programs {
        for (depth, returns) in limits {
            let options = ["--depth", depth, "--returns", returns];
            let trace = |more: &[&str]| {
                let options = [&options, more].concat();
                let traced = traced_as_untraced(env, &program(source), arguments, globs, &options)?;
                Ok::<_, anyhow::Error>(Report(traced.report()?.0.clone()))
            };
            let both = || Ok::<_, anyhow::Error>((trace(&[])?, trace(&["--aggregate"])?));
            let (seen, counted) = both().with_context(|| format!("{source} with {options:?}"))?;
            let same = same_to_a_depth(&seen, &counted);
            same.with_context(|| format!("{source} with {options:?}"))?;
        }
    }
    Ok(())
}

fn same_to_a_depth(seen: &Report, counted: &Report) -> Result<()> {
    let left_out = |report: &Report| report.0["filtered_calls"].as_u64();
    let (there, here) = (left_out(seen), left_out(counted));
    ensure!(there == here, "{there:?} and {here:?} calls are left out");
    for function in seen.functions() {
        let other = counted.expect(function.name())?;
        let inside = |row: &serde_json::Value| row["callees_left_out"].as_u64().unwrap_or(0);
        let of = |row: &FunctionRow<'_>| {
            let (calls, _, _, open) = row.ends();
            Ok::<_, anyhow::Error>((calls, open, row.integer("headless")?, inside(row.0)))
        };
        let (there, here) = (of(&function)?, of(&other)?);
        ensure!(
            there == here,
            "{}: calls, open, headless, left out inside are {there:?} seen and {here:?} counted",
            function.name()
        );
    }
    let (there, here) = (calls_by_path(seen), calls_by_path(counted));
    ensure!(there == here, "paths seen {there:?}, counted {here:?}");
    if left_out(counted) > Some(0) {
        counted.expect_note(&["--depth", "stayed out of all rows"])?;
    }
    Ok(())
}

/// Calls on other stacks are counted, and those that cannot be timed are told.
pub(super) fn counted_on_other_stacks(env: &Env) -> Result<()> {
    let globs = ["interrupted", "on_alternate", "fiber_*", "schedule"];
    let options = ["--aggregate"];
    let traced = traced_as_untraced(env, &program("altstack.c"), &[], &globs, &options)?;
    let report = traced.report()?;
    let (calls, timed, untimed, _) = report.expect("fiber_step")?.ends();
    ensure!(calls == timed + untimed, "fiber_step: {timed} timed, {untimed} untimed of {calls}");
    if untimed > 0 {
        report.expect_note(&["counted without a time", "another stack"])?;
    }
    Ok(())
}
