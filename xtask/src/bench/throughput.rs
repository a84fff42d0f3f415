//! Makes a million calls a second from one thread for ten seconds: nothing may be lost.

use super::{Row, call, output, target};
use crate::paths;
use anyhow::{Context, Result};
use serde_json::Value;
use std::path::Path;
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
            "10 M calls, 1 M/s asked",
            format!("{:.2} M/s, {lost} events lost, {timed} of {calls} timed", rate / 1e6),
        )
        .goal(
            "1 M/s reached, nothing lost",
            // A slower target proves nothing about this rate.
            rate >= 0.95e6 && lost == 0 && calls == CALLS && timed == CALLS,
        ),
        small_rings(&program)?,
    ])
}

const FEW_CALLS: u64 = 1_000_000;

/// Limit of lost events that are the target's own exec, rename and exit.
const LIFE: u64 = 4;

/// Uses rings of one page, far too small: each of the two events of a call is delivered or counted.
fn small_rings(program: &Path) -> Result<Row> {
    let mut command = Command::new(paths::ctrace());
    command.args(["-v", "run", "-f", "nop_entry", "--ring-size", "4KiB", "--"]);
    command.arg(program).args(["nop", &FEW_CALLS.to_string()]);
    let printed = output("rings that are too small", &mut command)?;
    let (delivered, lost) =
        events(&printed).with_context(|| format!("no line of events in: {printed}"))?;
    let what = "1 M calls at full speed, rings of 4 KiB";
    Ok(Row::new(what, format!("{delivered} events delivered, {lost} lost")).goal(
        "every lost event counted",
        lost > 0 && (2 * FEW_CALLS..=2 * FEW_CALLS + LIFE).contains(&(delivered + lost)),
    ))
}

/// Parses ctrace's line `events: N delivered, M lost`.
pub(super) fn events(printed: &str) -> Option<(u64, u64)> {
    let (_, line) = printed.split_once("events: ")?;
    let (delivered, rest) = line.split_once(" delivered, ")?;
    Some((delivered.parse().ok()?, rest.split_once(" lost")?.0.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_found() {
        let printed = " INFO armed\n INFO events: 12 delivered, 3 lost\nmore\n";
        assert_eq!(events(printed), Some((12, 3)));
        assert_eq!(events("events: none"), None);
    }
}
