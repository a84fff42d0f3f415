//! Compares an active scope with other ways to time a function from inside, and messages and plots with
//! Tracy's. A program outside the workspace uses the crates; uftrace has a C program.

use super::{Row, Times, Traced, scopes, target};
use crate::bench::{call::value, output};
use crate::{machine, paths};
use anyhow::{Result, bail};
use std::iter;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROUNDS: usize = 5;
const CRATES: [&str; 4] = ["tracy-client", "puffin", "fastrace", "tracing"];

/// Builds the program with the crates.
pub(super) fn program() -> Result<PathBuf> {
    let dir = paths::root().join("xtask/peers");
    let target = paths::target().join("peers");
    let mut command = paths::cargo();
    command.args(["build", "--release", "--locked"]).current_dir(dir);
    command.env("CARGO_TARGET_DIR", &target);
    output("build the program with ctrace's peers", &mut command)?;
    Ok(target.join("release/peers"))
}

pub(in crate::bench) fn run() -> Result<Vec<Row>> {
    let program = program()?;
    let mut rows = in_rust(&program, "scope", &CRATES, None)?;
    for (marker, goal) in [("message", 60.0), ("plot", 35.0)] {
        rows.extend(in_rust(&program, marker, &CRATES[..1], Some(goal))?);
    }
    rows.extend(uftrace()?);
    Ok(rows)
}

/// Compares a marker with those of crates. `goal` is the most that it may cost.
fn in_rust(
    program: &Path,
    marker: &str,
    crates: &[&'static str],
    goal: Option<f64>,
) -> Result<Vec<Row>> {
    let mut ours = f64::INFINITY;
    let mut theirs = vec![f64::INFINITY; crates.len()];
    for _ in 0..ROUNDS {
        let traced = Traced::run(program, &["ctrace", marker], &[])?;
        if traced.lost()? > 0 {
            bail!("{} events were lost", traced.lost()?);
        }
        ours = ours.min(Times::of(&traced.printed)?.added());
        for (name, best) in crates.iter().zip(&mut theirs) {
            let printed = output(name, Command::new(program).args([name, marker]))?;
            *best = best.min(Times::of(&printed)?.added());
        }
    }
    let row = Row::new(format!("{marker} in Rust, on: ctrace"), nanos(ours));
    let own = match goal {
        Some(most) => row.goal(&format!("at most {most:.0} ns"), ours <= most),
        None => row,
    };
    let what = format!("{marker} in Rust");
    let others = crates.iter().zip(theirs).map(|(name, cost)| versus(&what, name, cost, ours));
    Ok(iter::once(own).chain(others).collect())
}

fn versus(what: &str, name: &str, cost: f64, ours: f64) -> Row {
    let times = cost / ours;
    Row::new(format!("{what}, on: {name}"), format!("{}, {times:.1} times ctrace's", nanos(cost)))
        .goal("at least twice ctrace's", times >= 2.0)
}

/// Measures the same function in C, instrumented by the compiler.
fn uftrace() -> Result<Vec<Row>> {
    if machine::which("uftrace").is_none() {
        return Ok(vec![Row::new("scope in C, on: uftrace", "not installed")]);
    }
    let (scoped, instrumented) = (scopes()?, target::compile_with("instrumented.c", &["-pg"])?);
    let data = paths::target().join("bench/uftrace.data");
    let (mut ours, mut theirs) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..ROUNDS {
        let traced = Traced::run(&scoped, &["cost", "1", "4000000"], &[])?;
        ours = ours.min(Times::of(&traced.printed)?.added());
        let mut command = Command::new("uftrace");
        command.args(["record", "--no-libcall", "-d"]).arg(&data).arg(&instrumented);
        let printed = output("uftrace", &mut command)?;
        theirs = theirs.min(value(&printed, "traced_ns")? - value(&printed, "bare_ns")?);
    }
    Ok(vec![
        Row::new("scope in C, on: ctrace", nanos(ours)),
        versus("scope in C", "uftrace", theirs, ours),
    ])
}

fn nanos(cost: f64) -> String {
    format!("{cost:.1} ns")
}
