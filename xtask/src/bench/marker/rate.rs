//! Feeds ten million calls a second, and more, into live statistics.

use super::{Row, Traced, scopes};
use crate::bench::{call::value, throughput::events};
use anyhow::{Context, Result};
use std::path::Path;

const RATE: f64 = 10e6;

pub(in crate::bench) fn run() -> Result<Vec<Row>> {
    let program = scopes()?;
    let plain = sustained(&program, &[])?;
    let what = "scopes at 10 M calls/s for 30 s";
    Ok(vec![
        Row::new(what, plain.measured()).goal("10 M/s reached, nothing lost", plain.is_whole()),
        Row::new(
            format!("{what}, with a report of it all every second"),
            sustained(&program, &["--interval", "1", "--cumulative"])?.measured(),
        ),
        beyond(&program)?,
    ])
}

struct Sustained {
    rate: f64,
    calls: u64,
    seen: u64,
    timed: u64,
    lost: u64,
}

impl Sustained {
    fn measured(&self) -> String {
        let Sustained { rate, calls, timed, lost, .. } = self;
        format!("{:.2} M/s, {lost} events lost, {timed} of {calls} timed", rate / 1e6)
    }

    fn is_whole(&self) -> bool {
        let all = self.seen == self.calls && self.timed == self.calls;
        self.rate >= 0.99 * RATE && self.lost == 0 && all
    }
}

fn sustained(program: &Path, options: &[&str]) -> Result<Sustained> {
    let traced = Traced::run(program, &["rate", "2", &RATE.to_string(), "30"], options)?;
    let (seen, timed) = traced.calls()?;
    Ok(Sustained {
        rate: value(&traced.printed, "calls_per_second")?,
        calls: value(&traced.printed, "calls")? as u64,
        seen,
        timed,
        lost: traced.lost()?,
    })
}

/// Limit of lost events that are the target's own exec, rename and exit.
const LIFE: u64 = 16;

/// Calls at full speed: each of the two events of a call is delivered or counted.
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
