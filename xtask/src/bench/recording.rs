//! Measures recordings: their rate, their size, and the speed of a report, beside uftrace's report
//! of as many records.

use super::{Row, call::value, output, redis, target, watch::Used};
use crate::{machine, paths};
use anyhow::{Context, Result, ensure};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Calls a second, by two threads, and for how long.
const RATE: f64 = 10e6;

pub(super) fn run() -> Result<Vec<Row>> {
    let program = target::compile("scopes.c")?;
    let long = recorded(&program, 30)?;
    let mut rows = vec![long.kept_up(), long.size("scopes, two deep")];
    drop(std::fs::remove_file(&long.file));
    rows.push(demo()?);
    rows.push(served()?);
    let five = recorded(&program, 5)?;
    rows.extend(five.reports()?);
    rows.extend(beside_uftrace(&program)?);
    Ok(rows)
}

/// A finished recording, and the target's own output.
struct Recorded {
    file: PathBuf,
    rate: f64,
    calls: u64,
}

fn file(name: &str) -> PathBuf {
    paths::target().join("bench").join(name)
}

fn record(file: &Path, options: &[&str], program: &Path, arguments: &[&str]) -> Result<String> {
    drop(std::fs::remove_file(file));
    let mut command = Command::new(paths::ctrace());
    command.arg("record").args(options).arg("-o").arg(file).arg("--").arg(program).args(arguments);
    output("record", &mut command)
}

fn recorded(program: &Path, seconds: u32) -> Result<Recorded> {
    let file = file("bench.ctrace");
    let arguments = ["rate", "2", &RATE.to_string(), &seconds.to_string()];
    let printed = record(&file, &["-m", "*"], program, &arguments)?;
    Ok(Recorded {
        file,
        rate: value(&printed, "calls_per_second")?,
        calls: value(&printed, "calls")? as u64,
    })
}

/// Runs `ctrace report` in JSON. Also returns its resources.
fn report(file: &Path) -> Result<(Value, Used)> {
    let mut command = Command::new(paths::ctrace());
    command.arg("report").arg(file).args(["--format", "json"]);
    let (printed, used) = Used::by(&mut command)?;
    Ok((serde_json::from_str(&printed)?, used))
}

fn calls(report: &Value, field: &str) -> u64 {
    let functions = report["functions"].as_array().into_iter().flatten();
    functions.filter_map(|function| function[field].as_u64()).sum()
}

impl Recorded {
    fn kept_up(&self) -> Row {
        let what = "recording scopes at 10 M calls/s for 30 s";
        let Ok((report, _)) = report(&self.file) else { return Row::new(what, "cannot be read") };
        let (lost, seen) =
            (report["loss"]["events"].as_u64().unwrap_or(0), calls(&report, "timed"));
        let measured = format!(
            "{:.2} M/s, {lost} events lost, {seen} of {} calls recorded",
            self.rate / 1e6,
            self.calls
        );
        let whole = self.rate >= 0.99 * RATE && lost == 0 && seen == self.calls;
        Row::new(what, measured).goal("10 M/s reached, nothing lost", whole)
    }

    fn size(&self, what: &str) -> Row {
        size(what, &self.file, 2 * self.calls)
    }

    /// Measures the reading speed: 100 M events.
    fn reports(&self) -> Result<Vec<Row>> {
        let (report, used) = report(&self.file)?;
        let events = 2.0 * calls(&report, "calls") as f64;
        let rate = events / used.processor.as_secs_f64() / 1e6;
        let whole = events / used.elapsed.as_secs_f64() / 1e6;
        let peak = used.peak_kib >> 10;
        Ok(vec![
            Row::new(
                format!("report of {:.0} M events", events / 1e6),
                format!("{rate:.1} M events/s and core, {whole:.1} M events/s on 2 cores"),
            )
            .goal("at least 30 M events/s and core", rate >= 30.0),
            Row::new("memory of that report, at most", format!("{peak} MiB"))
                .goal("under 300 MiB", peak < 300),
        ])
    }
}

fn size(what: &str, file: &Path, events: u64) -> Row {
    let bytes = std::fs::metadata(file).map_or(0, |data| data.len());
    let each = bytes as f64 / events.max(1) as f64;
    Row::new(format!("size of a recording, {what}"), format!("{each:.2} bytes an event"))
        .goal("at most 4 bytes an event", each <= 4.0)
}

/// Records a program of threads that wait, parse and compress.
fn demo() -> Result<Row> {
    let (program, file) = (target::compile("demo.c")?, file("demo.ctrace"));
    record(&file, &["-f", "*"], &program, &[])?;
    let (report, _) = report(&file)?;
    Ok(size("functions of a program", &file, 2 * calls(&report, "calls")))
}

/// Records a real server under load.
fn served() -> Result<Row> {
    let what = "all functions of redis under redis-benchmark";
    let Some(server) = redis::server()? else {
        return Ok(Row::new(what, "redis-tools is not installed"));
    };
    let file = file("redis.ctrace");
    redis::record(&server, &file)?;
    let (report, _) = report(&file)?;
    let (calls, lost) = (calls(&report, "calls"), report["loss"]["events"].as_u64().unwrap_or(0));
    let row = size(&format!("{what} ({calls} calls, {lost} events lost)"), &file, 2 * calls);
    drop(std::fs::remove_file(&file));
    Ok(row)
}

const AS_MANY: u32 = 1;

fn beside_uftrace(program: &Path) -> Result<Vec<Row>> {
    if machine::which("uftrace").is_none() {
        return Ok(vec![Row::new("uftrace's report", "not installed")]);
    }
    let ours = recorded(program, AS_MANY)?;
    let (report, used) = report(&ours.file)?;
    let events = 2 * calls(&report, "calls");
    let rate = events as f64 / used.processor.as_secs_f64() / 1e6;
    let instrumented = target::compile_with("calls.c", &["-pg"])?;
    let data = file("uftrace.report");
    let mut command = Command::new("uftrace");
    command.args(["record", "--no-libcall", "-d"]).arg(&data);
    output("uftrace record", command.arg(&instrumented).arg((events / 2).to_string()))?;
    let mut command = Command::new("uftrace");
    command.args(["report", "-d"]).arg(&data);
    let (printed, used) = Used::by(&mut command)?;
    drop(std::fs::remove_dir_all(&data));
    let theirs = uftraces_calls(&printed).context("uftrace prints no counts")?;
    ensure!(theirs * 10 >= events / 2 * 9, "uftrace has {theirs} of {} calls", events / 2);
    let peer = 2.0 * theirs as f64 / used.processor.as_secs_f64() / 1e6;
    let what = format!("report of {} M events", events / 1_000_000);
    Ok(vec![
        Row::new(format!("{what}: ctrace"), format!("{rate:.1} M events/s and core")),
        Row::new(
            format!("{what}: uftrace"),
            format!("{peer:.1} M records/s and core, ctrace's are {:.1} times that", rate / peer),
        )
        .goal("ctrace at least 2 times as fast", rate >= 2.0 * peer),
    ])
}

/// Sums the column of calls. Columns: total time and unit, self time and unit, calls, function.
fn uftraces_calls(printed: &str) -> Option<u64> {
    let counts = printed.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [_, _, _, _, calls, _] = words[..] else { return None };
        calls.parse::<u64>().ok()
    });
    counts.reduce(|sum, count| sum + count)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uftraces_counts_are_summed() {
        let printed = "  Total time   Self time       Calls  Function\n  ==========  ==========  \
                       ==========  ====================\n    1.2  s      1.0  ms     12345  main\n   \
                       20.0 us     20.0 us         5  leaf\n";
        assert_eq!(uftraces_calls(printed), Some(12_350));
        assert_eq!(uftraces_calls("nothing"), None);
    }
}
