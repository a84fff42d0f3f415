//! Measures the cost of a scope in a call, dormant and while ctrace takes its events. It counts the
//! CPU time of the calling threads, so there may be more threads than CPUs. The compared variants
//! take turns within one process.

use super::{Row, Times, Traced, peers, scopes, site};
use crate::bench::{call::value, output};
use anyhow::{Result, bail};
use std::path::Path;
use std::process::Command;

const ROUNDS: usize = 5;
/// Rounds for a dormant scope. Code and stack lie differently in each process, which matters more
/// than the scope.
const DORMANT_ROUNDS: usize = 25;

/// Calls a second of all threads together while delivery is measured: ctrace has to keep up, as
/// lost events cost less.
const RATE: &str = "4000000";

pub(in crate::bench) fn run() -> Result<Vec<Row>> {
    let (c, rust) = (scopes()?, peers::program()?);
    let mut rows = vec![
        dormant("C", &c, &["cost", "1", "0"])?,
        site::row("C", &c, "bare", "scoped")?,
        dormant("Rust", &rust, &["ctrace"])?,
        site::row("Rust", &rust, "peers::bare", "peers::contenders::marked")?,
    ];
    for threads in ["1", "2", "8"] {
        rows.push(active(&c, threads)?);
    }
    Ok(rows)
}

/// Returns the median of several processes.
fn dormant(language: &str, program: &Path, arguments: &[&str]) -> Result<Row> {
    let mut added = Vec::new();
    for _ in 0..DORMANT_ROUNDS {
        let printed = output("dormant scopes", Command::new(program).args(arguments))?;
        added.push(Times::of(&printed)?.added());
    }
    added.sort_by(f64::total_cmp);
    let median = added[DORMANT_ROUNDS / 2];
    let measured = format!("{median:+.2} ns a call");
    Ok(Row::new(format!("dormant scope, {language}"), measured)
        .goal("at most 0.5 ns", median <= 0.5))
}

fn active(program: &Path, threads: &str) -> Result<Row> {
    let mut best: Option<(f64, f64, f64)> = None;
    for _ in 0..ROUNDS {
        let traced = Traced::run(program, &["cost", threads, RATE], &[])?;
        let (times, rdtsc) = (Times::of(&traced.printed)?, value(&traced.printed, "two_rdtsc_ns")?);
        let calls = value(&traced.printed, "calls")? as u64;
        let (lost, (seen, timed)) = (traced.lost()?, traced.calls()?);
        if lost > 0 || seen != calls || timed != calls {
            bail!("of {calls} calls {seen} were seen and {timed} timed, {lost} events were lost");
        }
        let (scope, two) = (times.added(), rdtsc - times.bare);
        if best.is_none_or(|(ratio, ..)| scope / two < ratio) {
            best = Some((scope / two, scope, two));
        }
    }
    let (ratio, scope, two) = best.unwrap_or_default();
    let threads = if threads == "1" { "1 thread".into() } else { format!("{threads} threads") };
    Ok(Row::new(
        format!("scope that is on, all delivered, {threads}"),
        format!("{scope:.1} ns a call, two rdtsc {two:.1} ns: {ratio:.2} times"),
    )
    .goal("at most 1.4 times", ratio <= 1.4))
}
