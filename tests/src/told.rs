//! Values of calls: what a program prints of its own calls, and what ctrace exports of them.

use crate::env::Env;
use crate::process::run;
use crate::recorded::Recorded;
use crate::report::Report;
use crate::trace::LIMIT;
use anyhow::{Result, ensure};
use serde_json::{Map, Value};
use std::path::Path;
use std::process::Command;

/// A call of a function, and its values by name.
#[derive(Clone, Debug)]
pub struct Told {
    pub function: String,
    pub values: Map<String, Value>,
}

impl Told {
    fn of(call: &Value) -> Option<Told> {
        let function = call["function"].as_str()?.to_owned();
        let values = call.get("values").and_then(Value::as_object).cloned().unwrap_or_default();
        Some(Told { function, values })
    }
}

/// Returns the calls of which a program tells in lines `call {…}`, in the order in which they began.
pub fn told(stdout: &str) -> Result<Vec<Told>> {
    let lines = stdout.lines().filter_map(|line| line.strip_prefix("call "));
    let calls: Vec<Value> = lines.map(serde_json::from_str).collect::<Result<_, _>>()?;
    Ok(calls.iter().filter_map(Told::of).collect())
}

/// Records a program with these options. Returns the calls that it tells of, and those that were
/// recorded.
pub fn record(
    env: &Env,
    program: &Path,
    arguments: &[&str],
    options: &[&str],
) -> Result<(Vec<Told>, Vec<Told>)> {
    let (told, seen, _) = record_with_report(env, program, arguments, options)?;
    Ok((told, seen))
}

/// The same, with the report.
pub fn record_with_report(
    env: &Env,
    program: &Path,
    arguments: &[&str],
    options: &[&str],
) -> Result<(Vec<Told>, Vec<Told>, Report)> {
    let mut recorded = Recorded::new(env, [])?.args(options.iter().copied());
    let finished = recorded.program(program, arguments)?;
    ensure!(finished.shell_code() == 0, "record: {}", finished.stderr);
    let report = recorded.report(&["--view", "calls"])?;
    report.check_lossless()?;
    let mut export = Command::new(&env.ctrace);
    export.arg("export").arg(&recorded.file).args(["--format", "jsonl", "-o", "-"]);
    let exported = run(&mut export, LIMIT)?;
    ensure!(exported.shell_code() == 0, "export: {}", exported.stderr);
    let mut calls: Vec<Value> =
        exported.stdout.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    calls.sort_by_key(|call| call["start_ns"].as_u64());
    Ok((told(&finished.stdout)?, calls.iter().filter_map(Told::of).collect(), report))
}

/// Compares call by call, and value by value.
pub fn compare(told: &[Told], seen: &[Told]) -> Result<()> {
    ensure!(!told.is_empty(), "the program tells of no calls");
    ensure!(told.len() == seen.len(), "{} calls, not {}", seen.len(), told.len());
    for (number, (told, seen)) in told.iter().zip(seen).enumerate() {
        let function = &told.function;
        ensure!(seen.function == *function, "call {number}: {}, not {function}", seen.function);
        let names = |values: &Map<String, Value>| {
            let mut names: Vec<_> = values.keys().cloned().collect();
            names.sort();
            names
        };
        ensure!(
            names(&told.values) == names(&seen.values),
            "call {number} of {function}: {:?}, not {:?}",
            seen.values,
            told.values
        );
        for (name, value) in &told.values {
            let other = &seen.values[name];
            let is_same = value == other
                || value.as_f64().is_some_and(|number| {
                    (value.is_f64() || other.is_f64()) && other.as_f64() == Some(number)
                });
            ensure!(is_same, "call {number} of {function}: {name} is {other}, not {value}");
        }
    }
    ensure!(told.len() == seen.len(), "{} calls, not {}", seen.len(), told.len());
    Ok(())
}
