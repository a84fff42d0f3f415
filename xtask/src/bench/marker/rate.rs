//! Ten million calls a second into statistics that are reported every second; and more than that.

use super::{Row, Traced, scopes};
use crate::bench::{call::value, throughput::events};
use anyhow::{Context, Result};
use std::path::Path;

const RATE: f64 = 10e6;

pub(in crate::bench) fn run() -> Result<Vec<Row>> {
    let program = scopes()?;
    Ok(vec![sustained(&program)?, beyond(&program)?])
}

fn sustained(program: &Path) -> Result<Row> {
    let arguments = ["rate", "2", &RATE.to_string(), "30"];
    let traced = Traced::run(program, &arguments, &["--interval", "1", "--cumulative"])?;
    let rate = value(&traced.printed, "calls_per_second")?;
    let calls = value(&traced.printed, "calls")? as u64;
    let (lost, (seen, timed)) = (traced.lost()?, traced.calls()?);
    let what = "scopes at 10 M calls/s for 30 s, a report every second";
    Ok(Row::new(
        what,
        format!("{:.2} M/s, {lost} events lost, {timed} of {calls} timed", rate / 1e6),
    )
    .goal(
        "10 M/s reached, nothing lost",
        rate >= 0.99 * RATE && lost == 0 && seen == calls && timed == calls,
    ))
}

/// The target's own exec, rename and exit are events as well, and may be among the lost.
const LIFE: u64 = 16;

/// As fast as the threads can: each of the two events of a call is delivered or counted.
fn beyond(program: &Path) -> Result<Row> {
    let traced = Traced::run(program, &["rate", "2", "0", "5"], &[])?;
    let rate = value(&traced.printed, "calls_per_second")?;
    let calls = value(&traced.printed, "calls")? as u64;
    let (delivered, _) = events(&traced.printed).context("no line of events")?;
    let lost = traced.lost()?;
    Ok(Row::new(
        "scopes at full speed",
        format!("{:.1} M/s; {delivered} events delivered, {lost} lost", rate / 1e6),
    )
    .goal("every lost event counted", (2 * calls..=2 * calls + LIFE).contains(&(delivered + lost))))
}
