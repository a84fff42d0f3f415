//! Compares an active scope with other ways to time a function from inside. A program outside the
//! workspace uses the crates; uftrace has a C program.

use super::{Row, Times, Traced, scopes, target};
use crate::bench::{call::value, output};
use crate::{machine, paths};
use anyhow::Result;
use std::path::PathBuf;
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
    let mut ours = f64::INFINITY;
    let mut theirs = [f64::INFINITY; CRATES.len()];
    for _ in 0..ROUNDS {
        ours = ours.min(Times::of(&Traced::run(&program, &["ctrace"], &[])?.printed)?.added());
        for (name, best) in CRATES.iter().zip(&mut theirs) {
            let printed = output(name, Command::new(&program).arg(name))?;
            *best = best.min(Times::of(&printed)?.added());
        }
    }
    let mut rows = vec![Row::new("scope in Rust, on: ctrace", nanos(ours))];
    rows.extend(CRATES.iter().zip(theirs).map(|(name, cost)| versus("Rust", name, cost, ours)));
    rows.extend(uftrace()?);
    Ok(rows)
}

fn versus(language: &str, name: &str, cost: f64, ours: f64) -> Row {
    let times = cost / ours;
    Row::new(
        format!("scope in {language}, on: {name}"),
        format!("{}, {times:.1} times ctrace's", nanos(cost)),
    )
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
    Ok(vec![Row::new("scope in C, on: ctrace", nanos(ours)), versus("C", "uftrace", theirs, ours)])
}

fn nanos(cost: f64) -> String {
    format!("{cost:.1} ns")
}
