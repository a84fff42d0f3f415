//! Runs `ctrace record` and `ctrace report`.

use crate::env::Env;
use crate::process::{Finished, Running, run};
use crate::report::Report;
use crate::trace::LIMIT;
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// A recording in the making, or made.
#[derive(Debug)]
pub struct Recorded {
    ctrace: PathBuf,
    command: Command,
    pub file: PathBuf,
    _dir: TempDir,
}

impl Recorded {
    /// Prepares `ctrace record` of these functions, with the environment's link.
    pub fn new<'a>(env: &Env, functions: impl IntoIterator<Item = &'a str>) -> Result<Recorded> {
        let dir = TempDir::new()?;
        let file = dir.path().join("trace.ctrace");
        let mut command = Command::new(&env.ctrace);
        command.args(["record", "--link", env.link.name()]);
        for function in functions {
            command.args(["-f", function]);
        }
        Ok(Recorded { ctrace: env.ctrace.clone(), command, file, _dir: dir })
    }

    pub fn args<'a>(mut self, arguments: impl IntoIterator<Item = &'a str>) -> Recorded {
        self.command.args(arguments);
        self
    }

    pub fn env(mut self, name: &str, value: &str) -> Recorded {
        self.command.env(name, value);
        self
    }

    /// Uses this file instead of the temporary one.
    pub fn to(mut self, file: &Path) -> Recorded {
        self.file = file.to_owned();
        self
    }

    /// Launches the program and records it to its end.
    pub fn program(&mut self, path: &Path, arguments: &[&str]) -> Result<Finished> {
        self.command.arg("-o").arg(&self.file).arg("--").arg(path).args(arguments);
        run(&mut self.command, LIMIT)
    }

    /// Starts to record a process; the caller ends it.
    pub fn start(&mut self, pid: i32) -> Result<Running> {
        self.command.arg("-o").arg(&self.file).args(["-p", &pid.to_string()]);
        Running::start(&mut self.command)
    }

    /// Starts to record the processes that options choose.
    pub fn start_chosen(&mut self) -> Result<Running> {
        self.command.arg("-o").arg(&self.file);
        Running::start(&mut self.command)
    }

    /// Runs `ctrace report --by` for lines of JSON.
    pub fn by(&self, by: &str) -> Result<Finished> {
        let mut command = Command::new(&self.ctrace);
        command.arg("report").arg(&self.file).args(["--by", by, "--format", "json"]);
        run(&mut command, LIMIT)
    }

    /// Returns the result of `ctrace report` with these options.
    pub fn report(&self, options: &[&str]) -> Result<Report> {
        report(&self.ctrace, &self.file, options)
    }
}

/// Returns the result of `ctrace report` on a file.
pub fn report(ctrace: &Path, file: &Path, options: &[&str]) -> Result<Report> {
    let mut command = Command::new(ctrace);
    command.arg("report").arg(file).args(["--format", "json"]).args(options);
    let finished = run(&mut command, LIMIT)?;
    let shown = || format!("ctrace report {}: {}", file.display(), finished.stderr);
    ensure!(finished.shell_code() == 0, "{}", shown());
    let report = Report::parse(&finished.stdout).with_context(shown)?;
    report.check_schema()?;
    report.check_sums()?;
    Ok(report)
}
