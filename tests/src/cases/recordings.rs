//! Recordings of programs that know their own counts.

use crate::env::Env;
use crate::recorded::Recorded;
use crate::targets::program;
use crate::truth::Truth;
use anyhow::{Result, ensure};

/// Compares counts of a program with those of its recording and of parts of it.
pub(super) fn a_recording_is_a_trace(env: &Env) -> Result<()> {
    let calls = env.scaled(300_000);
    let globs = ["leaf", "ping", "pong", "descend", "tail_*"];
    let mut recorded = Recorded::new(env, globs)?;
    let path = env.targets.get(&program("counts.c"))?;
    let finished = recorded.program(&path, &[&calls])?;
    ensure!(finished.shell_code() == 0, "record: {}", finished.stderr);
    let report = recorded.report(&[])?;
    report.check_lossless()?;
    Truth::parse(&finished.stdout).check_calls(&report)?;
    ensure!(report.0["approximate"] == false, "the report of a recording is exact");
    let leaf = report.expect("leaf")?.ends();
    let alone = recorded.report(&["-f", "leaf"])?;
    ensure!(alone.expect("leaf")?.ends() == leaf, "leaf alone");
    ensure!(alone.function("ping").is_none_or(|ping| ping.calls() == 0), "ping was not chosen");
    let length = report.0["duration_ns"].as_u64().unwrap_or(0) / 1_000_000;
    let middle = format!("{}ms", length / 2);
    let parts = [format!("..{middle}"), format!("{middle}..")];
    let parts = parts.map(|part| recorded.report(&["--time", &part]));
    let mut ended = 0;
    for part in parts {
        let (_, timed, untimed, _) = part?.expect("leaf")?.ends();
        ended += timed + untimed;
    }
    ensure!(ended == leaf.1 + leaf.2, "{ended} calls of leaf ended in two halves of {leaf:?}");
    Ok(())
}
