//! The contenders: attach them to a process with the same functions, and read their counts.

use super::process::{tied, wait_for};
use super::turns::Load;
use crate::bench::{target::Running, watch};
use crate::{machine, paths};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tracer {
    /// `ctrace attach` with its defaults.
    Ctrace,
    /// Entry and return of each function, and a histogram of its durations.
    Bpftrace,
}

/// The counts that a tracer gave.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// The calls of each function of the load. bpftrace's are those that returned.
    pub calls: Vec<u64>,
    /// Those of them without a duration. Only ctrace tells.
    pub untimed: Vec<u64>,
    /// Events lost. Only ctrace tells.
    pub lost: u64,
}

/// A tracer at work.
pub(super) struct Tracing {
    tracer: Tracer,
    process: Running,
    dir: TempDir,
}

impl Tracer {
    pub(super) fn name(self) -> &'static str {
        match self {
            Tracer::Ctrace => "ctrace",
            Tracer::Bpftrace => "bpftrace",
        }
    }

    pub(super) fn is_there(self) -> bool {
        self == Tracer::Ctrace || machine::which("bpftrace").is_some()
    }

    /// Starts it, and returns when all probes are in place.
    pub(super) fn attach(self, load: &Load, pid: u32) -> Result<Tracing> {
        let text = watch::Text::of(pid, &load.program)?;
        let dir = tempfile::tempdir()?;
        let mut command = match self {
            Tracer::Ctrace => ctrace(load, pid, &dir.path().join("report"))?,
            Tracer::Bpftrace => bpftrace(load, pid, &dir.path().join("report")),
        };
        command.stdout(Stdio::null()).stderr(File::create(dir.path().join("errors"))?);
        let mut process = Running(command.spawn()?);
        let armed = armed(&text, &mut process, load.functions.len());
        let errors = dir.path().join("errors");
        armed.with_context(|| std::fs::read_to_string(errors).unwrap_or_default())?;
        Ok(Tracing { tracer: self, process, dir })
    }
}

/// Waits until each function has a probe, and no more come.
fn armed(text: &watch::Text, tracer: &mut Running, functions: usize) -> Result<()> {
    const CALM: Duration = Duration::from_millis(300);
    text.until(Instant::now(), Some(&mut tracer.0), |changed| changed >= functions)?;
    let mut before = text.changed()?;
    wait_for("the last probe", || {
        std::thread::sleep(CALM);
        let last = std::mem::replace(&mut before, text.changed()?);
        Ok((last == before).then_some(()))
    })
}

fn ctrace(load: &Load, pid: u32, report: &Path) -> Result<Command> {
    // A library may have a function of the same name.
    let object = std::fs::canonicalize(&load.program)?;
    let object = object.file_name().context("a program has a name")?.to_string_lossy();
    let mut command = tied(&paths::ctrace());
    command.args(["attach", &pid.to_string(), "--format", "json", "-o"]).arg(report);
    for function in load.functions {
        command.args(["-f", &format!("{function}@{object}")]);
    }
    Ok(command)
}

fn bpftrace(load: &Load, pid: u32, report: &Path) -> Command {
    let mut command = tied(Path::new("bpftrace"));
    command.args(["-f", "json", "-p", &pid.to_string(), "-o"]).arg(report);
    command.args(["-e", &script(&load.program, load.functions, pid)]);
    command
}

/// Older versions of bpftrace do not limit such probes to the process of `-p`, so the script does.
fn script(program: &Path, functions: &[&str], pid: u32) -> String {
    let probe = |(i, function): (usize, &&str)| {
        let at = format!("{}:{function}", program.display());
        format!(
            "uprobe:{at} /pid == {pid}/ {{ @s{i}[tid] = nsecs; }} uretprobe:{at} /@s{i}[tid]/ \
             {{ @h{i} = hist(nsecs - @s{i}[tid]); delete(@s{i}[tid]); }} "
        )
    };
    functions.iter().enumerate().map(probe).collect()
}

impl Tracing {
    /// Ends it. Returns what it saw.
    pub(super) fn end(mut self, load: &Load) -> Result<Seen> {
        watch::interrupt(self.process.0.id())?;
        let status = wait_for(self.tracer.name(), || Ok(self.process.0.try_wait()?))?;
        let errors = std::fs::read_to_string(self.dir.path().join("errors"))?;
        ensure!(status.success(), "{} ended with {status}: {errors}", self.tracer.name());
        let report: PathBuf = self.dir.path().join("report");
        let report = std::fs::read_to_string(&report).with_context(|| errors.clone())?;
        let seen = match self.tracer {
            Tracer::Ctrace => ctrace_saw(&report, load.functions)?,
            Tracer::Bpftrace => bpftrace_saw(&report, load.functions),
        };
        Ok(seen)
    }
}

fn ctrace_saw(report: &str, functions: &[&str]) -> Result<Seen> {
    let report: Value = serde_json::from_str(report)?;
    let rows = report["functions"].as_array().context("functions")?;
    let of = |name: &str, field: &str| {
        rows.iter().find(|row| row["name"] == name).and_then(|row| row[field].as_u64()).unwrap_or(0)
    };
    Ok(Seen {
        calls: functions.iter().map(|name| of(name, "calls")).collect(),
        untimed: functions.iter().map(|name| of(name, "untimed")).collect(),
        lost: report["loss"]["events"].as_u64().context("loss")?,
    })
}

/// Sums each histogram. A line is an object; a histogram is an array of counts by range.
fn bpftrace_saw(report: &str, functions: &[&str]) -> Seen {
    let mut calls = vec![0; functions.len()];
    for line in report.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok()) {
        for (i, calls) in calls.iter_mut().enumerate() {
            let ranges = line["data"][format!("@h{i}")].as_array().into_iter().flatten();
            *calls += ranges.filter_map(|range| range["count"].as_u64()).sum::<u64>();
        }
    }
    Seen { untimed: vec![0; calls.len()], calls, lost: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_found_in_both_reports() {
        let functions = ["one", "two", "three"];
        let theirs = "{\"type\": \"attached_probes\", \"data\": {\"probes\": 6}}\n\
            {\"type\": \"hist\", \"data\": {\"@h1\": [{\"min\": 512, \"max\": 1023, \"count\": 5}, \
            {\"min\": 1024, \"max\": 2047, \"count\": 30}]}}\n{\"type\": \"hist\", \"data\": \
            {\"@h0\": [{\"min\": 1, \"max\": 1, \"count\": 7}]}}\n{\"type\": \"map\", \"data\": {\"@s0\": {}}}\n";
        assert_eq!(bpftrace_saw(theirs, &functions).calls, [7, 35, 0]);
        let ours = r#"{"loss": {"events": 4}, "functions": [
            {"name": "two", "calls": 9, "timed": 8, "untimed": 1},
            {"name": "other", "calls": 100, "timed": 100, "untimed": 50},
            {"name": "one", "calls": 7, "timed": 5, "untimed": 2}]}"#;
        let seen = ctrace_saw(ours, &functions).expect("a report");
        assert_eq!((seen.calls, seen.untimed, seen.lost), (vec![7, 9, 0], vec![2, 1, 0], 4));
    }

    #[test]
    fn each_function_has_a_histogram_of_its_own() {
        let script = script(Path::new("/bin/x"), &["one", "two"], 45);
        assert!(script.contains("uprobe:/bin/x:one /pid == 45/ { @s0[tid] = nsecs; }"), "{script}");
        assert!(script.contains("uretprobe:/bin/x:two /@s1[tid]/ { @h1 = hist("), "{script}");
    }
}
