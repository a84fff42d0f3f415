//! Programs with exceptions and panics. bpftrace takes no part: with its return probes, the first
//! exception kills them.

use super::process::{Gated, tied};
use super::tracers::Tracer;
use super::turns::{Load, Rate, Started, Turns, Work, median, race};
use crate::bench::{Row, call::value, target};
use anyhow::{Result, ensure};
use std::path::{Path, PathBuf};

const CALLS: &str = "300000";
const THROWS: &str = "1000";

const FUNCTIONS: &[&str] = &["plain", "catcher", "passer", "thrower"];

/// The goal, in nanoseconds.
const MOST: f64 = 1300.0;

pub(in crate::bench) fn run() -> Result<Vec<Row>> {
    let mut all = rows("C++ with exceptions", target::compile("cost_throw.cpp")?)?;
    all.extend(rows("Rust with panics", target::compile("cost_panic.rs")?)?);
    Ok(all)
}

fn rows(name: &'static str, program: PathBuf) -> Result<Vec<Row>> {
    let started = program.clone();
    let start = Box::new(move || start(&started));
    let rate = Rate::PerSecond("call");
    let load = Load { name, rate, program, functions: FUNCTIONS, start };
    let turns = race(&load, &[Tracer::Ctrace])?;
    let [untraced, traced] = &turns[..] else { return Ok(Vec::new()) };
    let sums = |turns: &Turns| {
        turns.work.iter().map(|work| value(&work.printed, "sum")).collect::<Result<Vec<_>>>()
    };
    ensure!(sums(untraced)? == sums(traced)?, "{name} computes something else while traced");
    let added =
        |word| -> Result<(f64, f64)> { Ok((figure(untraced, word)?, figure(traced, word)?)) };
    let (bare, call) = added("ns_per_call")?;
    let (bare_throw, throw) = added("ns_per_throw")?;
    let cost = call - bare;
    Ok(vec![
        Row::new(
            format!("{name}, a call through which nothing is thrown"),
            format!("untraced {bare:.0} ns, ctrace {call:.0} ns; bpftrace kills the program"),
        )
        .goal("ctrace adds at most 1.3 µs", cost <= MOST),
        Row::new(
            format!("{name}, a throw through 3 calls, caught in the 4th"),
            format!(
                "untraced {:.1} µs, ctrace {:.1} µs; {}",
                bare_throw / 1e3,
                throw / 1e3,
                traced.gaps(FUNCTIONS)
            ),
        ),
        counts(name, traced)?,
    ])
}

fn figure(turns: &Turns, word: &str) -> Result<f64> {
    let values = turns.work.iter().map(|work| value(&work.printed, word));
    Ok(median(values.collect::<Result<_>>()?))
}

/// Compares ctrace's counts with the program's own.
fn counts(name: &str, traced: &Turns) -> Result<Row> {
    let mut apart = Vec::new();
    for (i, function) in FUNCTIONS.iter().enumerate() {
        let own = figure(traced, &format!("calls {function}"))?;
        let rounds = traced.calls_of(i);
        if rounds.iter().any(|seen| *seen as f64 != own) {
            apart.push(format!("{function} {own} times, ctrace {rounds:?}"));
        }
    }
    let agree = apart.is_empty();
    let measured = if agree { "the same".into() } else { apart.join("; ") };
    Ok(Row::new(format!("{name}, calls by its own count and by ctrace's"), measured)
        .goal("the same", agree))
}

fn start(program: &Path) -> Result<Started> {
    let mut program = Gated::start(tied(program).args([CALLS, THROWS]))?;
    let pid = program.id();
    let work = move || {
        let printed = program.work()?;
        let nanos = value(&printed, "ns_per_call")?;
        Ok(Work { units: 1e9, seconds: nanos, printed })
    };
    Ok(Started { pid, work: Box::new(work) })
}
