//! Plain calls: their numbers, their times, their threads.

use super::{MANY, traced_as_untraced};
use crate::env::Env;
use crate::targets::program;
use crate::trace::Trace;
use crate::truth::Truth;
use anyhow::{Context, Result, ensure};

const COUNTS: &[&str] = &["leaf", "ping", "pong", "descend", "tail_*"];

pub(super) fn counts(env: &Env) -> Result<()> {
    let calls = env.scaled(300_000);
    let traced = traced_as_untraced(env, &program("counts.c"), &[&calls], COUNTS, &[])?;
    let report = traced.report()?;
    for name in ["leaf", "ping", "pong", "tail_third"] {
        let (calls, timed, _, _) = report.expect(name)?.ends();
        ensure!(calls == timed, "{name}: {timed} of {calls} calls are timed");
    }
    Ok(())
}

pub(super) fn counts_by_ret_sites(env: &Env) -> Result<()> {
    let calls = env.scaled(50_000);
    let options = ["--returns", "ret-sites"];
    let traced = traced_as_untraced(env, &program("counts.c"), &[&calls], COUNTS, &options)?;
    let report = traced.report()?;
    for name in ["leaf", "ping", "pong", "descend", "tail_first", "tail_second", "tail_third"] {
        let (calls, timed, _, _) = report.expect(name)?.ends();
        ensure!(calls == timed, "{name}: {timed} of {calls} calls are timed");
    }
    Ok(())
}

/// The kernel keeps 64 return addresses per thread.
pub(super) fn recursion_under_return_probes(env: &Env) -> Result<()> {
    let traced = traced_as_untraced(
        env,
        &program("counts.c"),
        &["10"],
        &["descend", "leaf", "ping", "pong", "tail_*"],
        &["--returns", "uretprobe"],
    )?;
    let ends = traced.report()?.expect("descend")?.ends();
    ensure!(ends == (201, 64, 137, 0), "descend: calls, timed, untimed, open are {ends:?}");
    Ok(())
}

/// The time behind a tail call is the function's if its return is seen, or the return of the function
/// to which it jumps. Otherwise the row says that its time ends there.
pub(super) fn time_behind_a_tail_call(env: &Env) -> Result<()> {
    let of = |functions: &[&str], options: &[&str]| {
        let path = env.targets.get(&program("sleeps.c"))?;
        let trace = Trace::run(env)?.functions(functions.iter().copied());
        let trace = trace.args(options.iter().copied());
        let traced = trace.program(&path, []).finish()?.expect_code(0)?;
        let report = traced.report()?;
        let row = report.expect("hands_on")?;
        let inside = report.paths().contains(&vec!["hands_on", "doze_behind"]);
        anyhow::Ok((row.integer("total_ns")?, row.0["until_tail_call"] == true, inside))
    };
    let (total, until, _) = of(&["hands_on"], &[])?;
    ensure!(!until && total >= 100_000_000, "5 calls sleep for 20 ms each: {total} ns, {until}");
    let by_sites = ["--returns", "ret-sites"];
    let (total, until, _) = of(&["hands_on"], &by_sites)?;
    ensure!(until && total < 100_000_000, "until the tail call: {total} ns, {until}");
    let both = ["hands_on", "doze_behind"];
    for options in [&[][..], &by_sites] {
        let (total, until, inside) = of(&both, options)?;
        ensure!(
            !until && inside && total >= 100_000_000,
            "{options:?}: {total} ns, {until}, doze_behind is inside: {inside}"
        );
    }
    // What the kernel counts ends at the jump.
    let (total, until, inside) = of(&both, &["--returns", "ret-sites", "--aggregate"])?;
    ensure!(until && !inside && total < 100_000_000, "counted: {total} ns, {until}, {inside}");
    Ok(())
}

/// Durations must lie between the target's sleeps and its own measurements around its calls.
pub(super) fn known_durations(env: &Env) -> Result<()> {
    let traced = Trace::run(env)?
        .functions(["outer", "nap_*", "overlap", "hands_on"])
        .program(&env.targets.get(&program("sleeps.c"))?, [])
        .finish()?
        .expect_code(0)?;
    let report = traced.report()?;
    let truth = Truth::parse(&traced.finished.stdout);
    truth.check_calls(report)?;
    truth.check_times(report)?;
    let overlap = report.expect("overlap")?;
    let (total, active) = (overlap.integer("total_ns")?, overlap.integer("active_ns")?);
    ensure!(active + 50_000_000 <= total, "50 ms in two threads: active {active}, total {total}");
    let outer = report.expect("outer")?;
    let least = outer.integer("min_ns")?;
    ensure!(least >= 60_000_000, "outer sleeps 60 ms, its fastest call took {least} ns");
    let own = outer.integer("self_ns")?;
    let naps = report.expect("nap_short")?.integer("total_ns")?
        + report.expect("nap_long")?.integer("total_ns")?;
    ensure!(own >= 100_000_000, "outer sleeps 20 ms itself in each of 5 calls: {own} ns");
    ensure!(own + naps == outer.integer("total_ns")?, "self {own}, callees {naps}: {}", outer.0);
    Ok(())
}

pub(super) fn threads(env: &Env) -> Result<()> {
    let (calls, brief) = (env.scaled(20_000), env.scaled(2_000));
    let traced = traced_as_untraced(
        env,
        &program("threads.c"),
        &[&calls, &brief],
        &["work", "inner", "blink"],
        &[],
    )?;
    let report = traced.report()?;
    let threads = report.expect("work")?.integer("threads")?;
    ensure!(threads == 8, "work ran in {threads} threads, not 8");
    let threads = report.expect("blink")?.integer("threads")?;
    ensure!(threads.to_string() == brief, "blink ran in {threads} threads, not {brief}");
    Ok(())
}

pub(super) fn switches_and_tail_jumps(env: &Env) -> Result<()> {
    for returns in ["uretprobe", "ret-sites"] {
        let options = ["--returns", returns];
        traced_as_untraced(env, &program("switch.c"), &[], &["*"], &options)
            .with_context(|| format!("--returns {returns}"))?;
    }
    Ok(())
}

pub(super) fn a_thousand_functions(env: &Env) -> Result<()> {
    let path = env.targets.many_functions(MANY)?;
    let traced = Trace::run(env)?.function("f*").program(&path, []).finish()?.expect_code(0)?;
    let report = traced.report()?;
    let right = report
        .functions()
        .filter(|f| f.name().strip_prefix('f').is_some_and(|n| n.parse::<usize>().is_ok()))
        .filter(|f| f.calls() == 1)
        .count();
    ensure!(right == MANY, "{right} of {MANY} functions have their one call");
    report.check_lossless()
}
