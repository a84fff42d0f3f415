//! Runs commands as named stages: shows a line of progress, keeps the whole output in a log file,
//! and shows its end after a failure.

use crate::paths;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{IsTerminal, Read, Write};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// The result of a finished stage.
#[derive(Debug)]
pub(crate) struct Done {
    pub status: ExitStatus,
    /// Both outputs, mixed in the order of arrival.
    pub output: String,
    pub log: PathBuf,
}

/// Lines shown of a failed stage.
const TAIL: usize = 60;
/// The time between signs of progress without a terminal.
const PULSE: Duration = Duration::from_secs(20);

/// Runs a command to its end, whatever its status.
pub(crate) fn run(stage: &str, command: &mut Command) -> Result<Done> {
    let start = Instant::now();
    let logs = paths::target().join("xtask");
    std::fs::create_dir_all(&logs)?;
    let log = logs.join(format!("{}.log", stage.replace([' ', '/'], "-").replace(':', "")));
    let mut log_file = File::create(&log).with_context(|| log.display().to_string())?;
    writeln!(log_file, "$ {}", shown(command))?;
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("{stage}: starting `{}`", shown(command)))?;
    let (sender, lines) = channel();
    let readers = [
        child.stdout.take().map(|source| forward(source, sender.clone())),
        child.stderr.take().map(|source| forward(source, sender)),
    ];
    let mut ticker = Ticker::new(stage, start);
    let mut output = Vec::new();
    loop {
        match lines.recv_timeout(Duration::from_millis(500)) {
            Ok(bytes) => {
                log_file.write_all(&bytes)?;
                output.extend_from_slice(&bytes);
                ticker.show(&String::from_utf8_lossy(&bytes));
            }
            Err(RecvTimeoutError::Timeout) => ticker.again(),
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    for reader in readers.into_iter().flatten() {
        // A reader ends with its pipe and cannot panic.
        let _ = reader.join();
    }
    let status = child.wait()?;
    ticker.end(status.success());
    Ok(Done { status, output: String::from_utf8_lossy(&output).into_owned(), log })
}

/// Runs a command that must succeed.
pub(crate) fn must(stage: &str, command: &mut Command) -> Result<Done> {
    let done = run(stage, command)?;
    if !done.status.success() {
        eprintln!("{}", tail(&done.output));
        bail!("{stage} failed ({}); the whole output is in {}", done.status, done.log.display());
    }
    Ok(done)
}

/// Returns the last lines of an output.
pub(crate) fn tail(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    lines[lines.len().saturating_sub(TAIL)..].join("\n")
}

/// Formats a command as one would type it.
pub(crate) fn shown(command: &Command) -> String {
    let mut text = command.get_program().to_string_lossy().into_owned();
    for argument in command.get_args() {
        text.push(' ');
        text.push_str(&argument.to_string_lossy());
    }
    text
}

fn forward(
    mut source: impl Read + Send + 'static,
    sender: Sender<Vec<u8>>,
) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut buffer = [0; 8192];
        while let Ok(count @ 1..) = source.read(&mut buffer) {
            if sender.send(buffer[..count].to_vec()).is_err() {
                break;
            }
        }
    })
}

/// The line of progress.
struct Ticker {
    stage: String,
    start: Instant,
    last: String,
    spoken: Instant,
    terminal: bool,
}

impl Ticker {
    fn new(stage: &str, start: Instant) -> Ticker {
        let terminal = std::io::stderr().is_terminal();
        if !terminal {
            eprintln!("{stage} …");
        }
        Ticker { stage: stage.into(), start, last: String::new(), spoken: start, terminal }
    }

    fn show(&mut self, text: &str) {
        if let Some(line) = text.lines().rev().map(str::trim).find(|line| !line.is_empty()) {
            self.last = line.chars().filter(|c| !c.is_control()).collect();
        }
        self.again();
    }

    fn again(&mut self) {
        let seconds = self.start.elapsed().as_secs();
        if self.terminal {
            let line: String = format!("{:>4} s  {}: {}", seconds, self.stage, self.last)
                .chars()
                .take(78)
                .collect();
            eprint!("\r\x1b[K{line}");
        } else if self.spoken.elapsed() >= PULSE {
            self.spoken = Instant::now();
            eprintln!("{:>4} s  {}: {}", seconds, self.stage, self.last);
        }
    }

    fn end(&mut self, well: bool) {
        let clear = if self.terminal { "\r\x1b[K" } else { "" };
        let seconds = self.start.elapsed().as_secs_f64();
        let word = if well { "done" } else { "FAILED" };
        eprintln!("{clear}{} {word} ({seconds:.1} s)", self.stage);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_stage_shows_its_log() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo out; echo err >&2; exit 4"]);
        let done = run("unit-test stage", &mut command).expect("sh");
        assert_eq!(done.status.code(), Some(4));
        assert!(done.output.contains("out") && done.output.contains("err"));
        let error = must("unit-test stage", &mut command).expect_err("exit 4").to_string();
        assert!(error.contains("unit-test-stage.log"), "{error}");
    }

    #[test]
    fn the_tail_is_the_end() {
        let text: String = (0..100).map(|line| format!("line {line}\n")).collect();
        assert!(tail(&text).starts_with("line 40\n"));
        assert!(tail(&text).ends_with("line 99"));
    }
}
