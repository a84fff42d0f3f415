//! Calls that the eBPF programs count themselves (`--aggregate`), beside the same calls as events.

use super::thrift::run;
use super::traced_as_untraced;
use crate::env::Env;
use crate::process;
use crate::report::{Function, Report};
use crate::targets::program;
use anyhow::{Context as _, Result, ensure};
use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

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
        ("counts.c", &[&calls], &["leaf", "ping", "pong", "descend", "tail_*"]),
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
    for &of in programs {
        for (depth, returns) in limits {
            let options = ["--depth", depth, "--returns", returns];
            let both = || {
                // A call that is counted ends at a jump there, and what it jumped to is no deeper.
                let (source, arguments, mut globs) = of;
                if *returns == "ret-sites" && source == "counts.c" {
                    globs = &globs[..4];
                }
                let of = (source, arguments, globs);
                let (seen, ..) = run(env, of, &options)?;
                let (counted, ..) = run(env, of, &[&options[..], &["--aggregate"]].concat())?;
                same_to_a_depth(&seen, &counted)
            };
            both().with_context(|| format!("{} with {options:?}", of.0))?;
        }
    }
    Ok(())
}

fn same_to_a_depth(seen: &Report, counted: &Report) -> Result<()> {
    let left_out = |report: &Report| report.0["filtered_calls"].as_u64().unwrap_or(0);
    let (there, few) = (left_out(seen), left_out(counted));
    ensure!(there == few, "{there} and {few} calls are left out");
    for function in seen.functions() {
        let other = counted.expect(function.name())?;
        let inside = |row: &serde_json::Value| row["callees_left_out"].as_u64().unwrap_or(0);
        let of = |row: &Function<'_>| {
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
    if few > 0 {
        counted.expect_note(&["--depth", "stayed out of all rows"])?;
    }
    Ok(())
}

/// The calls of a function are told apart by its argument as those that are seen are: numbers, names of an
/// enumeration, truth values and texts, also where the function calls itself.
pub(super) fn counted_by_value(env: &Env) -> Result<()> {
    const PATHS: (&str, &[&str], &[&str]) = ("counted.c", &["paths", "5"], &["left", "right"]);
    const REQUESTS: (&str, &[&str], &[&str]) = ("requests.c", &["30"], &["step"]);
    const NAMED: (&str, &[&str], &[&str]) = ("named_values.cpp", &["12"], &["Shop::*"]);
    let programs = [
        (PATHS, "left: depth=0:u32", "left: depth"),
        (PATHS, "left: 0:bool", "left: 0"),
        (REQUESTS, "serve: key=0:str", "serve: key"),
        (NAMED, "grade: kind", "grade: kind"),
        (NAMED, "Shop::sell: by", "Shop::sell: by"),
    ];
    for (of, argument, by) in programs {
        let options = ["--arg", argument, "--by", by];
        let both = || {
            for returns in ["auto", "ret-sites"] {
                let options = [&options[..], &["--returns", returns]].concat();
                let seen = parts_of(env, of, &options)?;
                let counted = parts_of(env, of, &[&options[..], &["--aggregate"]].concat())?;
                ensure!(counted.0 > 2, "{} reports, with {returns}", counted.0);
                ensure!(seen == counted, "with {returns}: seen {seen:?}, counted {counted:?}");
            }
            Ok(())
        };
        both().with_context(|| format!("{} by {by}", of.0))?;
    }
    Ok(())
}

/// The calls of each function and of each path in a part.
type PartCalls = (Vec<(String, u64)>, BTreeMap<String, u64>);

/// Returns the number of reports, and the calls of each part by its value, unless a part has one call of the
/// function only: which of those has a part of its own is left to time.
fn parts_of(
    env: &Env,
    (source, arguments, globs): (&str, &[&str], &[&str]),
    options: &[&str],
) -> Result<(usize, BTreeMap<String, PartCalls>)> {
    let path = env.targets.get(&program(source))?;
    let file = tempfile::NamedTempFile::new()?;
    let mut command = Command::new(&env.ctrace);
    command.arg("run").args(globs.iter().flat_map(|glob| ["-f", glob])).args(options);
    command.args(["--format", "json", "-o"]).arg(file.path()).arg("--").arg(&path);
    let finished = process::run(command.args(arguments), Duration::from_secs(60))?;
    ensure!(finished.shell_code() == 0, "{}", finished.stderr);
    let text = std::fs::read_to_string(file.path())?;
    let reports = text.lines().map(Report::parse).collect::<Result<Vec<_>>>()?;
    let mut parts = BTreeMap::new();
    for report in &reports {
        let of = &report.0["part"]["calls"];
        let by_function: Vec<_> = report
            .functions()
            .filter(|function| function.calls() > 0)
            .map(|function| (function.name().to_owned(), function.calls()))
            .collect();
        let is_one_call =
            source == "requests.c" && by_function.iter().any(|(_, calls)| *calls == 1);
        if !is_one_call {
            let value = format!("{} {}", of["value"], of["is_unreadable"]);
            parts.insert(value, (by_function, calls_by_path(report)));
        }
    }
    Ok((reports.len(), parts))
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
