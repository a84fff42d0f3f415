//! Measures the time from start to armed, and from Ctrl-C to gone: 5,000 functions of one binary,
//! and bpftrace on 100; and how much later a launched command begins.

use super::{Row, target, watch};
use crate::{machine, paths};
use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub(super) fn run() -> Result<Vec<Row>> {
    let program = target::many(5000)?;
    let mut rows = Vec::new();
    let (mut armed, mut gone) = (Duration::MAX, Duration::MAX);
    for _ in 0..3 {
        let process = target::start(&program, &["300"])?;
        let mut command = Command::new(paths::ctrace());
        command.args(["attach", &process.0.id().to_string(), "-f", "f*"]);
        let (up, down) = time(&mut command, process.0.id(), &program, 5000)?;
        armed = armed.min(up);
        gone = gone.min(down);
    }
    rows.push(
        Row::new("5,000 functions, start to armed", seconds(armed))
            .goal("under 0.3 s", armed < Duration::from_millis(300)),
    );
    rows.push(
        Row::new("5,000 functions, Ctrl-C to the last probe gone", seconds(gone))
            .goal("under 0.2 s", gone < Duration::from_millis(200)),
    );
    let launched = launched()?;
    rows.push(
        Row::new(
            "`ctrace run` of one function, start to the command's first line",
            seconds(launched),
        )
        .goal("under 0.06 s", launched < Duration::from_millis(60)),
    );
    if machine::which("bpftrace").is_some() {
        let process = target::start(&program, &["300"])?;
        let path = program.display();
        let probes: Vec<String> = (0..100).map(|i| format!("uprobe:{path}:f{i}")).collect();
        let script = format!("{} {{ @[probe] = count(); }}", probes.join(", "));
        let mut command = Command::new("bpftrace");
        command.args(["-p", &process.0.id().to_string(), "-e", &script]);
        let (up, down) = time(&mut command, process.0.id(), &program, 100)?;
        rows.push(Row::new("bpftrace, 100 of them, start to armed", seconds(up)));
        rows.push(Row::new("bpftrace, 100 of them, Ctrl-C to the last probe gone", seconds(down)));
    }
    Ok(rows)
}

/// Returns the time from the start of ctrace to the first line of its command, which runs when its
/// probes are armed.
fn launched() -> Result<Duration> {
    let program = target::many(1)?;
    let mut best = Duration::MAX;
    for _ in 0..10 {
        let mut command = Command::new(paths::ctrace());
        command.args(["run", "-f", "f*", "--"]).arg(&program).arg("0");
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let start = Instant::now();
        let mut tracer = target::Running(command.spawn()?);
        let output = tracer.0.stdout.take().context("a pipe")?;
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        ensure!(line == "ready\n", "the command says {line:?}");
        best = best.min(start.elapsed());
        tracer.0.wait()?;
    }
    Ok(best)
}

fn time(
    command: &mut Command,
    pid: u32,
    program: &Path,
    probes: usize,
) -> Result<(Duration, Duration)> {
    let text = watch::Text::of(pid, program)?;
    let start = Instant::now();
    let tracer =
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let mut tracer = target::Running(tracer);
    // A return probe changes no byte; a few functions may be refused.
    let up = text.until(start, Some(&mut tracer.0), |changed| changed >= probes * 99 / 100)?;
    std::thread::sleep(Duration::from_millis(300));
    let asked = Instant::now();
    watch::interrupt(tracer.0.id())?;
    let down = text.until(asked, None, |changed| changed == 0)?;
    tracer.0.wait()?;
    Ok((up, down))
}

fn seconds(time: Duration) -> String {
    format!("{:.3} s", time.as_secs_f64())
}
