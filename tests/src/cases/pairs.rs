//! Pairs of USDT probes as calls, on a program that knows how its calls ended.

use crate::env::Env;
use crate::process::run;
use crate::recorded::Recorded;
use crate::report::Report;
use crate::targets::program;
use crate::trace::{LIMIT, Trace};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::process::Command;

/// The calls of `unit` have names that tell nothing.
const ASKED: [&str; 2] = ["--pair", "unit=pairs:unit-ready,unit-gone"];

/// Each pair has as many calls, ends and ends without a start as the program says, and durations
/// between the program's own.
pub(super) fn pairs_of_usdt_probes(env: &Env) -> Result<()> {
    let traced = Trace::run(env)?
        .args(["-u", "pairs:*"])
        .args(ASKED)
        .program(&env.targets.get(&program("usdt_pairs.c"))?, ["60"])
        .finish()?
        .expect_code(0)?;
    let (report, printed) = (traced.report()?, &traced.finished.stdout);
    report.check_lossless()?;
    check(report, printed)?;
    check_hits(report, printed, "twin__")?;
    check_paths(report)?;
    let raised = number(printed, "raised")?;
    ensure!(raised == number(printed, "hits query__start")?, "semaphores were up {raised} times");
    Ok(())
}

/// A recording has the same calls, with the values of their starts.
pub(super) fn recorded_pairs(env: &Env) -> Result<()> {
    let mut recorded = Recorded::new(env, [])?.args(["-u", "pairs:*"]).args(ASKED);
    let target = env.targets.get(&program("usdt_pairs.c"))?;
    let finished = recorded.program(&target, &["90"])?;
    ensure!(finished.shell_code() == 0, "record: {}", finished.stderr);
    check(&recorded.report(&[])?, &finished.stdout)?;
    // A probe of a pair finds its calls, however it is spelled.
    for pattern in ["pairs:query-start", "query__done", "pairs:query"] {
        let names: Vec<String> = recorded
            .report(&["-u", pattern])?
            .functions()
            .filter(|function| function.calls() > 0)
            .map(|function| function.name().to_owned())
            .collect();
        ensure!(names == ["query"], "-u {pattern} finds {names:?}");
    }
    let mut export = Command::new(&env.ctrace);
    export.arg("export").arg(&recorded.file).args(["--format", "jsonl", "-o", "-"]);
    let exported = run(&mut export, LIMIT)?;
    ensure!(exported.shell_code() == 0, "export: {}", exported.stderr);
    let (mut calls, mut sums) = (0, [0, 0]);
    for line in exported.stdout.lines() {
        let call: Value = serde_json::from_str(line)?;
        if call["function"] == "pairs:query" {
            calls += 1;
            for (sum, argument) in sums.iter_mut().zip(["arg0", "arg1"]) {
                *sum += call["values"][argument].as_i64().context("a call without values")?;
            }
        }
    }
    let asked = number(&finished.stdout, "asked")?;
    ensure!(
        sums == [asked, -2 * asked],
        "values add up to {sums:?}, not {asked} and -2 times that"
    );
    let all = number(&finished.stdout, "hits query__start")?;
    ensure!(calls == all, "{calls} calls of query in the export, {all} made");
    Ok(())
}

/// With `--no-pairs` each probe is a point.
pub(super) fn pairs_as_points(env: &Env) -> Result<()> {
    let traced = Trace::run(env)?
        .args(["-u", "pairs:query-*", "-u", "twin-*", "--no-pairs"])
        .program(&env.targets.get(&program("usdt_pairs.c"))?, ["40"])
        .finish()?
        .expect_code(0)?;
    let (report, printed) = (traced.report()?, &traced.finished.stdout);
    check_hits(report, printed, "")?;
    ensure!(report.functions().count() == 4, "there are other rows than those of four probes");
    Ok(())
}

/// Compares the rows of pairs with the program's lines.
fn check(report: &Report, printed: &str) -> Result<()> {
    let lines: Vec<&str> = printed.lines().filter_map(|line| line.strip_prefix("pair ")).collect();
    ensure!(lines.len() == 8, "the target printed {printed}");
    for line in lines {
        let (name, numbers) = line.split_once(' ').context("no numbers")?;
        let numbers: Vec<u64> = numbers.split(' ').map(str::parse).collect::<Result<_, _>>()?;
        let [calls, timed, untimed, headless, low, high] = numbers[..] else {
            anyhow::bail!("the target printed {line}")
        };
        let row = report.expect(name)?;
        let seen = ["calls", "timed", "untimed", "headless"].map(|key| row.0[key].as_u64());
        let told = [calls, timed, untimed, headless].map(Some);
        ensure!(seen == told, "{name} has calls, timed, untimed, headless {seen:?}, not {told:?}");
        let mean = row.0["mean_ns"].as_u64().unwrap_or_default();
        // The mean is rounded.
        ensure!(
            (low / timed.max(1)..=(high / timed.max(1)).saturating_add(1)).contains(&mean),
            "{name} takes {mean} ns in the mean; all {timed} took {low} to {high} ns"
        );
    }
    Ok(())
}

/// Compares the hits of probes that are points with the program's lines.
fn check_hits(report: &Report, printed: &str, prefix: &str) -> Result<()> {
    let lines: Vec<&str> = printed.lines().filter_map(|line| line.strip_prefix("hits ")).collect();
    let lines = lines.iter().filter(|line| line.starts_with(prefix));
    ensure!(lines.clone().count() >= 2, "the target printed {printed}");
    for line in lines {
        let (name, hits) = line.split_once(' ').context("no hits")?;
        let row = report.expect(name)?;
        ensure!(row.name() == name, "{name} is {}", row.name());
        ensure!(row.calls() == hits.parse::<u64>()?, "{name}: {} hits, not {hits}", row.calls());
    }
    Ok(())
}

/// Checks that queries are inside batches, and that pairs of several functions are in nothing.
fn check_paths(report: &Report) -> Result<()> {
    let paths = report.0["paths"].as_array().context("no paths")?;
    let name = |path: &Value| {
        let function = path["function"].as_u64()? as usize;
        Some(report.0["functions"][function]["name"].as_str()?.to_owned())
    };
    let parents_of = |wanted: &str| {
        let of = paths.iter().filter(|path| name(path).is_some_and(|name| name == wanted));
        let parents =
            of.map(|path| path["parent"].as_u64().and_then(|at| name(&paths[at as usize])));
        parents.collect::<Vec<_>>()
    };
    let query = [Some("batch".to_owned()), Some("query".to_owned())];
    ensure!(parents_of("query") == query, "query is in {:?}", parents_of("query"));
    ensure!(parents_of("job") == [None], "job is in {:?}", parents_of("job"));
    ensure!(parents_of("call").len() == 8, "call is in {:?}", parents_of("call"));
    Ok(())
}

/// Returns the number behind the words that a line begins with.
fn number(printed: &str, words: &str) -> Result<i64> {
    let line = printed.lines().find_map(|line| line.strip_prefix(words)).context("no such line")?;
    Ok(line.trim().parse()?)
}
