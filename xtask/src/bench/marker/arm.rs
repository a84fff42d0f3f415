//! Switches on all of 10,000 scopes, and measures the memory that scopes take in their program.

use super::{Row, scopes, target};
use crate::bench::{call::value, output, watch};
use crate::paths;
use anyhow::{Context, Result, bail};
use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

const ROUNDS: usize = 5;
const SCOPES: usize = 10_000;

pub(in crate::bench) fn run() -> Result<Vec<Row>> {
    let program = target::many_scopes(SCOPES)?;
    let mut best = f64::INFINITY;
    for _ in 0..ROUNDS {
        let process = target::start(&program, &["300"])?;
        best = best.min(millis_to_arm(process.0.id())?);
    }
    let scopes_row =
        Row::new("10,000 scopes, all chosen: start of arming to armed", format!("{best:.1} ms"))
            .goal("under 50 ms", best < 50.0);
    Ok(vec![scopes_row, memory(5, 3)?])
}

/// Returns the milliseconds in the output of `ctrace attach -v`.
fn millis_to_arm(pid: u32) -> Result<f64> {
    let mut command = Command::new(paths::ctrace());
    command.args(["-v", "attach", &pid.to_string(), "-m", "*"]).stdin(Stdio::null());
    let tracer = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let mut tracer = target::Running(tracer);
    let mut lines = BufReader::new(tracer.0.stderr.take().context("stderr is piped")?).lines();
    let millis = loop {
        let line = lines.next().context("ctrace ended before it was armed")??;
        if let Some(millis) = armed(&line, SCOPES) {
            break millis;
        }
    };
    watch::interrupt(tracer.0.id())?;
    // It writes at most a line for each scope that was not called.
    lines.try_for_each(|line| line.map(drop))?;
    tracer.0.wait()?;
    Ok(millis)
}

/// Parses ctrace's line `armed: N places in X ms`.
fn armed(line: &str, least: usize) -> Option<f64> {
    let (_, rest) = line.split_once("armed: ")?;
    let (places, rest) = rest.split_once(" places in ")?;
    let millis = rest.split_once(" ms")?.0.parse().ok()?;
    (places.parse::<usize>().ok()? >= least).then_some(millis)
}

fn memory(users: u64, idlers: u64) -> Result<Row> {
    let program = scopes()?;
    let mut command = Command::new(paths::ctrace());
    command.args(["run", "-m", "*", "--"]).arg(&program);
    command.args(["buffers", &users.to_string(), &idlers.to_string()]);
    let kib = value(&output("memory of scopes", &mut command)?, "kib")?;
    let dormant =
        output("memory of dormant scopes", Command::new(&program).args(["buffers", "5", "3"]))?;
    if value(&dormant, "kib")? != 0.0 {
        bail!("dormant scopes took memory");
    }
    Ok(Row::new(
        format!("memory of scopes that are on, {users} threads of {} use them", users + idlers),
        format!("{kib} KiB"),
    )
    .goal("4 KiB for each of these threads", kib == 4.0 * users as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_line_is_found() {
        assert_eq!(armed(" INFO armed: 10002 places in 12.5 ms", 10_000), Some(12.5));
        assert_eq!(armed(" INFO armed: 2 places in 12.5 ms", 10_000), None);
        assert_eq!(armed("armed", 1), None);
    }
}
