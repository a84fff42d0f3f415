//! A million calls a second from one thread for ten seconds: nothing may be lost.

use super::{Row, call, output, target};
use crate::paths;
use anyhow::{Context, Result};
use serde_json::Value;
use std::process::Command;

const CALLS: u64 = 10_000_000;

pub(super) fn run() -> Result<Vec<Row>> {
    let program = target::compile("cost.c")?;
    let report = paths::target().join("bench/throughput.json");
    let mut command = Command::new(paths::ctrace());
    command.args(["run", "-f", "nop_entry", "--format", "json", "-o"]).arg(&report);
    command.arg("--").arg(&program).args(["nop", &CALLS.to_string(), "1000000"]);
    let printed = output("a million calls a second", &mut command)?;
    let rate = call::value(&printed, "calls_per_second")?;
    let report: Value = serde_json::from_str(&std::fs::read_to_string(&report)?)?;
    let lost = report["loss"]["events"].as_u64().context("loss.events")?;
    let calls = report["functions"][0]["calls"].as_u64().context("calls")?;
    let timed = report["functions"][0]["timed"].as_u64().context("timed")?;
    Ok(vec![
        Row::new(
            "10 M calls at 1 M/s asked",
            format!("{:.2} M/s, {lost} events lost, {timed} of {calls} timed", rate / 1e6),
        )
        .goal("nothing lost", lost == 0 && calls == CALLS && timed == CALLS),
    ])
}
