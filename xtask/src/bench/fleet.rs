//! Writes a simulated fleet of a thousand hosts and a day, and queries it.

use super::{Row, number, output};
use crate::paths;
use anyhow::{Context, Result};
use std::process::Command;
use std::time::Instant;

pub(super) fn run() -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let mut command = paths::cargo();
    command.args(["run", "--release", "--package", "ctrace-core", "--features", "parquet"]);
    command.args(["--example", "fleet"]).arg(folder.path());
    let printed = output("fleet", &mut command)?;
    let [bytes, paths, slow_calls] =
        ["rows", "paths", "slow calls"].map(|name| number(&printed, name, " bytes a row"));
    let (bytes, paths, slow_calls) = (bytes?, paths?, slow_calls?);
    let ctrace = paths::ctrace();
    let timed = |arguments: &[&str]| -> Result<(String, f64)> {
        let begun = Instant::now();
        let mut command = Command::new(&ctrace);
        command.arg("fleet").args(arguments).arg(folder.path());
        let printed = output("fleet", &mut command)?;
        Ok((printed, begun.elapsed().as_secs_f64()))
    };
    let (_, report) = timed(&["report", "--top", "3"])?;
    let builds = ["diff", "--format", "json", "--version", "aaaa", "bbbb"];
    let (found, compared) = timed(&builds)?;
    let slower = super::line(&printed, "slower")?;
    let verdicts = slower_functions(&found).context("no comparison")?;
    Ok(vec![
        Row::new("fleet: 4.8 M rows of 20 calls", format!("{bytes:.1} bytes a row")),
        Row::new("fleet: their paths", format!("{paths:.1} bytes a row")),
        Row::new("fleet: a slow call of each", format!("{slow_calls:.1} bytes a row")),
        Row::new("fleet report over them", format!("{report:.1} s"))
            .goal("at most 3 s", report <= 3.0),
        Row::new("fleet diff of two builds", format!("{compared:.1} s")),
        Row::new("a function 7 % slower on a tenth of the hosts", verdicts.join(", "))
            .goal("found, and no other", verdicts == [slower]),
    ])
}

/// Returns the names of the functions that a comparison calls slower or faster.
fn slower_functions(json: &str) -> Option<Vec<String>> {
    let found: serde_json::Value = serde_json::from_str(json).ok()?;
    let functions = found["functions"].as_array()?;
    let is_changed =
        |row: &&serde_json::Value| row["verdict"] == "slower" || row["verdict"] == "faster";
    let names = functions.iter().filter(is_changed);
    names.map(|row| Some(row["name"].as_str()?.to_owned())).collect()
}
