//! Values beside calls: the arguments of a program's USDT probes, which it adds up itself.
//! Floating-point numbers are added up in quarters, so that every sum is an integer.

use crate::env::Env;
use crate::process::run;
use crate::recorded::Recorded;
use crate::targets::program;
use crate::trace::{LIMIT, Trace};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Command;

/// For each `PROVIDER:NAME:ARG`, the number of reads and the sum of the values, modulo 2^64.
type Sums = BTreeMap<String, (u64, u64)>;

/// Each argument of each hit is in the recording, with the program's value or marked as unread.
pub(super) fn arguments_of_usdt_probes(env: &Env) -> Result<()> {
    let rounds = env.scaled(2_000);
    let mut recorded = Recorded::new(env, [])?.args(["-u", "values:*"]);
    let target = env.targets.get(&program("usdt_values.c"))?;
    let finished = recorded.program(&target, &[&rounds])?;
    ensure!(finished.shell_code() == 0, "record: {}", finished.stderr);
    recorded.report(&["--view", "calls"])?.check_lossless()?;
    let mut export = Command::new(&env.ctrace);
    export.arg("export").arg(&recorded.file).args(["--format", "jsonl", "-o", "-"]);
    let exported = run(&mut export, LIMIT)?;
    ensure!(exported.shell_code() == 0, "export: {}", exported.stderr);
    let calls: Vec<Value> =
        exported.stdout.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let function = |call: &Value| Some(call["function"].as_str()?.to_owned());
    compare(&finished.stdout, &seen(&calls, function)?)
}

/// A point and a pair have the text of each hit, and the numbers that are asked for beside it.
pub(super) fn texts_of_usdt_probes(env: &Env) -> Result<()> {
    let rounds = env.scaled(2_000);
    let asked = ["--arg", "texts:query: sql=0:str, 1:i64", "--arg", "texts:say: 1:str, n=0:i16"];
    let mut recorded = Recorded::new(env, [])?.args(asked);
    let finished = recorded.program(&env.targets.get(&program("usdt_texts.c"))?, &[&rounds])?;
    ensure!(finished.shell_code() == 0, "record: {}", finished.stderr);
    recorded.report(&["--view", "calls"])?.check_lossless()?;
    let mut export = Command::new(&env.ctrace);
    export.arg("export").arg(&recorded.file).args(["--format", "jsonl", "-o", "-"]);
    let exported = run(&mut export, LIMIT)?;
    let (mut queries, mut said) = (0_i64, 0_i64);
    let mut calls: Vec<Value> =
        exported.stdout.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    calls.sort_by_key(|call| call["start_ns"].as_u64());
    for call in calls {
        let values = &call["values"];
        let (number, expected) = match call["function"].as_str() {
            Some("texts:query") => {
                ensure!(call["timed"] == true, "a pair without an end: {call}");
                queries += 1;
                let number = queries - 1;
                (number, json!({ "sql": format!("select {}", number * 7), "arg1": number }))
            }
            _ => {
                said += 1;
                let number = said - 1;
                let short = i64::from(-number as i16);
                (number, json!({ "arg1": format!("select {}", number * 7), "n": short }))
            }
        };
        ensure!(*values == expected, "hit {number} has {values}, not {expected}");
    }
    let rounds: i64 = rounds.parse()?;
    ensure!((queries, said) == (rounds, rounds), "{queries} queries, {said} said of {rounds}");
    Ok(())
}

/// The same in a session that keeps all calls in its temporary file.
pub(super) fn arguments_through_the_spool(env: &Env) -> Result<()> {
    let traced = Trace::run(env)?
        .args(["-u", "values:*", "--spool", "0", "--view", "calls", "--top", "100000"])
        .program(&env.targets.get(&program("usdt_values.c"))?, ["200"])
        .finish()?
        .expect_code(0)?;
    let report = traced.report()?;
    report.check_lossless()?;
    let hits = report.0["points"]["first"].as_array().context("no hits")?;
    let function = |hit: &Value| Some(format!("values:{}", hit["name"].as_str()?));
    compare(&traced.finished.stdout, &seen(hits, function)?)
}

/// Compares the values that were seen with what the program printed.
fn compare(printed: &str, seen: &Sums) -> Result<()> {
    let told = told(printed);
    ensure!(told.len() > 20, "the target printed {printed}");
    for (name, truth) in &told {
        let seen = seen.get(name).copied().unwrap_or_default();
        ensure!(seen == *truth, "{name}: read and sum are {seen:?}, not {truth:?}");
    }
    let unknown = seen.keys().find(|name| !told.contains_key(*name));
    ensure!(unknown.is_none(), "{unknown:?} has values that the program does not tell of");
    Ok(())
}

/// Returns the sums that the program prints.
fn told(stdout: &str) -> Sums {
    let lines = stdout.lines().filter_map(|line| line.strip_prefix("value "));
    let sums = lines.filter_map(|line| {
        let mut words = line.split_whitespace();
        let name = words.next()?.to_owned();
        let [read, sum] = [words.next()?, words.next()?].map(|word| word.parse::<i64>().ok());
        Some((name, (read? as u64, sum? as u64)))
    });
    sums.filter(|(_, (read, _))| *read > 0).collect()
}

/// Returns the sums of the values of calls.
fn seen(calls: &[Value], function: impl Fn(&Value) -> Option<String>) -> Result<Sums> {
    let mut sums = Sums::new();
    for call in calls {
        let function = function(call).context("a call without a function")?;
        for (name, value) in call["values"].as_object().into_iter().flatten() {
            let integer = value.as_u64().or(value.as_i64().map(|value| value as u64));
            let quarters = value.as_f64().map(|value| (value * 4.0) as i64 as u64);
            let Some(value) = integer.or(quarters) else { continue };
            let (read, sum) = sums.entry(format!("{function}:{name}")).or_default();
            (*read, *sum) = (*read + 1, sum.wrapping_add(value));
        }
    }
    Ok(sums)
}
