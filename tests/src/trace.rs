//! Runs `ctrace run` and `ctrace attach` and takes their reports.

use crate::env::Env;
use crate::process::{Finished, Running};
use crate::report::Report;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Long enough for a single-stepped million on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(120);
/// The same under an emulator.
const EMULATED_LIMIT: Duration = Duration::from_secs(600);

/// One invocation of ctrace, its JSON report in a file of its own.
#[derive(Debug)]
pub struct Trace {
    command: Command,
    report: PathBuf,
    _dir: TempDir,
    limit: Duration,
}

/// The result of an invocation.
#[derive(Debug)]
pub struct Traced {
    pub finished: Finished,
    report: Result<Report, String>,
}

impl Traced {
    pub fn code(&self) -> i32 {
        self.finished.shell_code()
    }

    pub fn report(&self) -> Result<&Report> {
        self.report.as_ref().map_err(|error| {
            anyhow::anyhow!(
                "no report ({error}); exit {}, stderr: {}",
                self.code(),
                self.finished.stderr
            )
        })
    }

    /// Fails unless it exited with this code.
    pub fn expect_code(self, code: i32) -> Result<Traced> {
        ensure!(
            self.code() == code,
            "exit code {} instead of {code}\nstdout: {}\nstderr: {}",
            self.code(),
            self.finished.stdout,
            self.finished.stderr
        );
        Ok(self)
    }
}

impl Trace {
    /// `ctrace SUBCOMMAND` with the environment's link and a JSON report.
    fn new(env: &Env, subcommand: &str) -> Result<Trace> {
        let dir = TempDir::new()?;
        let report = dir.path().join("report.json");
        let mut command = Command::new(&env.ctrace);
        command.arg(subcommand).args(["--link", env.link.name(), "--format", "json", "-o"]);
        command.arg(&report);
        // The kernel checks programs some ten times as slowly under an emulator, beside others more so.
        let limit = if env.slower > 1 { EMULATED_LIMIT } else { LIMIT };
        Ok(Trace { command, report, _dir: dir, limit })
    }

    /// Launches a program. Finish with [`Trace::program`].
    pub fn run(env: &Env) -> Result<Trace> {
        Trace::new(env, "run")
    }

    /// Attaches to a process.
    pub fn attach(env: &Env, pid: i32) -> Result<Trace> {
        Ok(Trace::new(env, "attach")?.arg(&pid.to_string()))
    }

    /// Attaches to processes that options choose.
    pub fn choosing(env: &Env) -> Result<Trace> {
        Trace::new(env, "attach")
    }

    pub fn arg(mut self, argument: &str) -> Trace {
        self.command.arg(argument);
        self
    }

    pub fn args<'a>(mut self, arguments: impl IntoIterator<Item = &'a str>) -> Trace {
        self.command.args(arguments);
        self
    }

    pub fn function(self, glob: &str) -> Trace {
        self.args(["-f", glob])
    }

    pub fn functions<'a>(self, globs: impl IntoIterator<Item = &'a str>) -> Trace {
        globs.into_iter().fold(self, Trace::function)
    }

    pub fn limit(mut self, limit: Duration) -> Trace {
        self.limit = limit;
        self
    }

    /// Sets the program to launch and its arguments.
    pub fn program<'a>(
        mut self,
        path: &Path,
        arguments: impl IntoIterator<Item = &'a str>,
    ) -> Trace {
        self.command.arg("--").arg(path).args(arguments);
        self
    }

    /// Starts it; the caller ends it.
    pub fn start(mut self) -> Result<Started> {
        let running = Running::start(&mut self.command)?;
        Ok(Started { running, trace: self })
    }

    /// Runs it to its end.
    pub fn finish(self) -> Result<Traced> {
        self.start()?.wait()
    }
}

/// A running ctrace.
#[derive(Debug)]
pub struct Started {
    pub running: Running,
    trace: Trace,
}

impl Started {
    /// Returns whether the last report is complete, though ctrace may go on.
    pub fn has_reported(&self) -> bool {
        let text = std::fs::read_to_string(&self.trace.report).unwrap_or_default();
        Report::parse(&text).is_ok()
    }

    /// Waits until it says that it traces: all probes are in place then.
    pub fn wait_until_tracing(&self) -> Result<()> {
        let begun = Instant::now();
        while !self.running.said().contains("ctrace: tracing ") {
            ensure!(begun.elapsed() < self.trace.limit, "{}", self.running.said());
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    pub fn wait(self) -> Result<Traced> {
        let limit = self.trace.limit;
        let finished = self.running.wait(limit).context("ctrace")?;
        let report = std::fs::read_to_string(&self.trace.report)
            .map_err(|error| error.to_string())
            .and_then(|text| {
                let report = Report::parse(&text).map_err(|error| format!("{error:#}"))?;
                report.check_schema().map_err(|error| format!("{error:#}"))?;
                Ok(report)
            });
        Ok(Traced { finished, report })
    }
}
