//! Tests the points of markers: each message is printed, each value of a plot and each frame mark is
//! counted, and frames are between the marks.

use super::ends::ROOM;
use super::{TELLS_OF_EXIT, wait_before};
use crate::env::Env;
use crate::process::run;
use crate::targets::program;
use crate::trace::{LIMIT, Trace};
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::Command;
use tempfile::TempDir;

/// Two processes, with two threads each, end in every way with what they wrote last in their buffers.
pub(crate) fn messages_and_plots(env: &Env) -> Result<()> {
    let (wait, each) = (wait_before(TELLS_OF_EXIT), env.scaled(1203));
    let number: usize = each.parse()?;
    for end in ["exit", "abort", "kill"] {
        let arguments = [&*each, "2", end, wait];
        messages(env, &arguments, number).context(end)?;
        plots_and_frames(env, &arguments, 4 * number as u64).context(end)?;
    }
    Ok(())
}

fn messages(env: &Env, arguments: &[&str], number: usize) -> Result<()> {
    let folder = TempDir::new()?;
    let file = folder.path().join("lines");
    let mut command = Command::new(&env.ctrace);
    command.args(["log", "--link", env.link.name(), "--follow", "--json"]).args(ROOM);
    command.arg("-o").arg(&file).arg("--").arg(env.targets.get(&program("marks_log.c"))?);
    let finished = run(command.args(arguments), LIMIT)?;
    ensure!(finished.shell_code() == 0, "{}", finished.stderr);
    let lines = std::fs::read_to_string(&file)?;
    let all: Vec<Value> = lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
    let (last, said) = all.split_last().context("no messages")?;
    ensure!((&last["text"], &last["stack"]) == (&json!("bye"), &json!([])), "the last: {last}");
    let mut of_threads: BTreeMap<u64, Vec<&Value>> = BTreeMap::new();
    for message in said {
        let thread = message["tid"].as_u64().context("a thread")?;
        of_threads.entry(thread).or_default().push(message);
    }
    ensure!(of_threads.len() == 4, "{} threads", of_threads.len());
    for messages in of_threads.values() {
        ensure!(messages.len() == number, "{} messages; {}", messages.len(), finished.stderr);
        for (number, message) in messages.iter().enumerate() {
            let (level, text) = match number % 5 {
                4 => (json!("warn"), format!("miss for {number}")),
                _ => (json!(null), format!("loaded {number} files")),
            };
            let seen = [&message["level"], &message["text"], &message["stack"]];
            let expected = [level, json!(text), json!(["request", "parse"])];
            ensure!(seen.into_iter().eq(&expected), "number {number} is {message}");
        }
    }
    Ok(())
}

fn plots_and_frames(env: &Env, arguments: &[&str], times: u64) -> Result<()> {
    let traced = Trace::run(env)?
        .args(["--follow", "--view", "plots", "--view", "summary", "--frame", "turn"])
        .args(ROOM)
        .program(&env.targets.get(&program("marks_log.c"))?, arguments.iter().copied())
        .finish()?
        .expect_code(0)?;
    let report = traced.report()?;
    for (name, shape) in [("queue", "plot"), ("turn", "frame")] {
        let point = report.expect(name)?;
        ensure!(point.0["point"]["shape"] == shape, "{}", point.0);
        ensure!(point.calls() == times, "{}\n{}", point.0, report.losses());
    }
    // Each process has one frame less than marks.
    let (frames, marks) = (&report.0["frames"], &report.0["frames"]["marks"]);
    ensure!(
        frames["frames"] == times - 2 && marks["unknown"] == 0,
        "{frames}\n{}",
        report.losses()
    );
    let parts = frames["parts"].as_array().context("parts")?;
    let names = parts.iter().filter_map(|part| {
        let function = part["function"].as_u64()? as usize;
        report.0["functions"][function]["name"].as_str()
    });
    ensure!(names.into_iter().any(|name| name == "parse"), "{frames}");
    let plots = report.0["plots"].as_array().context("plots")?;
    let [plot] = &plots[..] else { anyhow::bail!("plots are {plots:?}") };
    let of_number = |key: &str| plot[key].as_f64();
    ensure!(plot["count"] == times, "{plot}");
    let highest = (times / 4 - 1) as f64;
    ensure!((of_number("min"), of_number("max")) == (Some(0.0), Some(highest)), "{plot}");
    Ok(())
}
