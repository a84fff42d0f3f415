//! Tests marked async functions: calls from the first poll to the end, on any thread.

use crate::env::Env;
use crate::report::{Function, Report};
use crate::targets::{Build, program};
use crate::trace::Trace;
use crate::truth::Truth;
use anyhow::{Context, Result, ensure};

pub(super) fn async_program() -> Build {
    program("marks_async.rs").flags(["-O"])
}

/// Tasks change between two threads with every poll; some calls go on at one time, some are dropped, some panic.
pub(crate) fn async_calls_across_threads(env: &Env) -> Result<()> {
    let rounds = env.scaled(40);
    let traced =
        Trace::run(env)?.program(&env.targets.get(&async_program())?, [&*rounds]).finish()?;
    let report = traced.report()?;
    let told = &traced.finished.stdout;
    let truth = Truth::parse(told);
    ensure!(!truth.calls.is_empty() && !truth.least_time.is_empty(), "no counts: {told}");
    for (name, calls) in &truth.calls {
        let untimed =
            truth.untimed.iter().find(|(of, _)| of == name).map_or(0, |(_, number)| *number);
        let seen = report.expect(name)?.ends();
        ensure!(
            seen == (*calls, calls - untimed, untimed, 0),
            "{name}: {seen:?} of {calls}, {untimed}"
        );
    }
    for (name, least) in &truth.least_time {
        let total = report.expect(name)?.integer("total_ns")?;
        ensure!(total >= *least, "{name}: {total} ns, but it slept {least}");
    }
    let polls = told.lines().filter_map(|line| line.strip_prefix("polls "));
    for line in polls {
        let (name, number) = line.split_once(' ').context("a line of polls")?;
        let row = row(report, &format!("{name} (poll)"))?;
        ensure!(row.calls() == number.parse::<u64>()?, "{name}: {} polls of {number}", row.calls());
        ensure!(row.integer("timed")? == row.calls(), "{name}: each poll is timed");
    }
    check_waits(report)?;
    report.check_schema()?;
    report.check_sums()?;
    report.check_lossless()
}

fn row<'a>(report: &'a Report, name: &str) -> Result<Function<'a>> {
    report.functions().find(|row| row.name() == name).with_context(|| format!("no row {name}"))
}

/// The sleeps are waits: nearly all of the time of a call that sleeps, and none of its polls.
fn check_waits(report: &Report) -> Result<()> {
    let total = |name: &str| row(report, name)?.integer("total_ns");
    let (naps, polls, waits) = (total("nap")?, total("nap (poll)")?, total("[await]")?);
    ensure!(
        polls * 4 < naps && waits * 4 > naps * 3,
        "{naps}, {polls} of it polled, {waits} waits"
    );
    Ok(())
}
