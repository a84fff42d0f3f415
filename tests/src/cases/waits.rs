//! Checks that waits are told apart on every kernel: by the state of a thread when it loses its processor,
//! and by its system call.

use crate::env::Env;
use crate::report::Report;
use crate::targets::program;
use crate::trace::Trace;
use crate::wakers;
use anyhow::{Result, ensure};

/// Each function of the target waits for one thing, five times for 20 ms.
const WAITS: [(&str, &str); 3] = [
    ("naps", "[blocked: sleep]"),
    ("takes_lock", "[blocked: futex]"),
    ("reads_pipe", "[blocked: read]"),
];

pub(super) fn waits_with_their_reasons(env: &Env) -> Result<()> {
    let traced = Trace::run(env)?
        .functions(WAITS.map(|(function, _)| function))
        .function("works")
        .arg("--cpu")
        .program(&env.targets.get(&program("waits.c"))?, [])
        .finish()?
        .expect_code(0)?;
    let report = traced.report()?;
    report.check_sums()?;
    report.check_lossless()?;
    report.check_schema()?;
    for (name, wait) in WAITS {
        let [_, _, blocked] = parts(report, name)?;
        let waited = waited(report, name, wait);
        // The lock or the pipe is held for 20 ms, from a little before the call. An emulated processor may
        // take most of that until the call begins.
        let least = 5 * 15_000_000 / env.slower;
        ensure!(blocked >= least, "{name} was blocked for {blocked} ns");
        ensure!(waited * 100 >= blocked * 99, "{name}: {waited} of {blocked} ns are {wait}");
    }
    // Two threads take turns on one processor.
    let [running, runnable, _] = parts(report, "works")?;
    ensure!(runnable * 4 > running, "works was runnable for {runnable} ns, and ran for {running}");
    Ok(())
}

pub(super) fn waits_with_who_ended_them(env: &Env) -> Result<()> {
    let traced = Trace::run(env)?
        .functions(wakers::FUNCTIONS)
        .arg("--wakers")
        .program(&env.targets.get(&program("wakers.c"))?, [])
        .finish()?
        .expect_code(0)?;
    let report = traced.report()?;
    report.check_lossless()?;
    report.check_schema()?;
    wakers::check(report)
}

/// Returns `running`, `runnable` and `blocked`, which must be parts of the total.
fn parts(report: &Report, name: &str) -> Result<[u64; 3]> {
    let row = report.expect(name)?;
    let of = |key| row.integer(key);
    let parts = [of("running_ns")?, of("runnable_ns")?, of("blocked_ns")?];
    let total = of("total_ns")?;
    ensure!(parts.iter().sum::<u64>() == total, "{name}: {parts:?} are not {total} ns");
    Ok(parts)
}

/// Returns how long calls of a function waited for this, by the tree.
fn waited(report: &Report, function: &str, wait: &str) -> u64 {
    let paths = report.0["paths"].as_array().into_iter().flatten();
    let is_it = |path: &&serde_json::Value| {
        let names: Vec<_> = path["path"].as_array().into_iter().flatten().collect();
        matches!(names[..], [.., caller, callee] if caller == function && callee == wait)
    };
    paths.filter(is_it).filter_map(|path| path["total_ns"].as_u64()).sum()
}
