//! A running `ctrace daemon` with a configuration, a socket and folders of its own.

use crate::env::Env;
use crate::look::wait_until;
use crate::machine::Machine;
use crate::process::{Finished, Running, run};
use crate::targets::Build;
use anyhow::{Context, Result, bail, ensure};
use rustix::process::Signal;
use serde_json::Value;
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(120);

pub struct Daemon {
    running: Running,
    ctrace: PathBuf,
    /// The folder: `ctrace.toml`, `socket`, `recordings/`, and the test's own files.
    pub dir: TempDir,
}

/// Makes a folder with copies of targets, which no other test's daemon finds.
pub fn folder(env: &Env, builds: &[(&str, &Build)]) -> Result<TempDir> {
    let dir = TempDir::new()?;
    for (name, build) in builds {
        std::fs::copy(env.targets.get(build)?, dir.path().join(name))?;
    }
    Ok(dir)
}

impl Daemon {
    /// Starts one. `targets` is the rest of the file, with `DIR` for the folder. It may begin with
    /// `rescan`.
    pub fn start(env: &Env, dir: TempDir, targets: &str) -> Result<Daemon> {
        configure(dir.path(), targets)?;
        Daemon::start_again(env, dir)
    }

    /// Like [`Self::start`], with more variables in its environment.
    pub fn start_with(
        env: &Env,
        dir: TempDir,
        targets: &str,
        variables: &[(String, String)],
    ) -> Result<Daemon> {
        configure(dir.path(), targets)?;
        Daemon::begin(env, Command::new(&env.ctrace), dir, variables)
    }

    /// Starts one on a machine of its own, with this configuration or the one that is there.
    pub fn start_on(
        env: &Env,
        machine: &Machine,
        dir: TempDir,
        targets: Option<&str>,
        variables: &[(String, String)],
    ) -> Result<Daemon> {
        targets.map_or(Ok(()), |targets| configure(dir.path(), targets))?;
        Daemon::begin(env, machine.command(&env.ctrace), dir, variables)
    }

    /// Starts one in the folder of a killed one.
    pub fn start_again(env: &Env, dir: TempDir) -> Result<Daemon> {
        Daemon::begin(env, Command::new(&env.ctrace), dir, &[])
    }

    fn begin(
        env: &Env,
        mut command: Command,
        dir: TempDir,
        variables: &[(String, String)],
    ) -> Result<Daemon> {
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        command.arg("daemon").arg("--config").arg(dir.path().join("ctrace.toml"));
        let running = Running::start(&mut command)?;
        let mut daemon = Daemon { running, ctrace: env.ctrace.clone(), dir };
        wait_until("the daemon listens", || {
            daemon.request(r#"{"v":1,"do":"status"}"#).is_ok() || !daemon.running.is_running()
        })?;
        if !daemon.running.is_running() {
            bail!("it ended: {:?}", daemon.running.wait(LIMIT)?);
        }
        Ok(daemon)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn socket(&self) -> PathBuf {
        self.path("socket")
    }

    pub fn pid(&self) -> i32 {
        self.running.pid()
    }

    /// Returns what it has written to stderr so far.
    pub fn said(&self) -> String {
        self.running.said()
    }

    pub fn configure(&self, targets: &str) -> Result<()> {
        configure(self.dir.path(), targets)
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        self.running.signal(signal)
    }

    /// Starts one of the copies.
    pub fn target(&self, name: &str, arguments: &[&str]) -> Result<Running> {
        Running::start_ready(Command::new(self.path(name)).args(arguments))
    }

    /// Runs `ctrace ctl` and returns its result.
    pub fn ctl(&self, arguments: &[&str]) -> Result<Finished> {
        run(&mut self.ctl_command(arguments), LIMIT)
    }

    pub fn ctl_command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.ctrace);
        command.arg("ctl").arg("--socket").arg(self.socket()).args(arguments);
        command
    }

    /// Returns the answer as JSON.
    pub fn ask(&self, arguments: &[&str]) -> Result<Value> {
        let mut all = vec!["--json"];
        all.extend(arguments);
        let finished = self.ctl(&all)?;
        ensure!(finished.shell_code() == 0, "{}", finished.stderr);
        serde_json::from_str(&finished.stdout).context("the answer is no JSON")
    }

    /// Sends a line to the socket without `ctrace ctl`, and returns the answer's line.
    pub fn request(&self, line: &str) -> Result<Value> {
        let mut stream = UnixStream::connect(self.socket())?;
        stream.set_read_timeout(Some(LIMIT))?;
        writeln!(stream, "{line}")?;
        let mut answer = String::new();
        BufReader::new(stream).read_line(&mut answer)?;
        serde_json::from_str(&answer).context("the answer is no JSON")
    }

    /// Kills it by SIGKILL and keeps the folder.
    pub fn kill(self) -> Result<(Finished, TempDir)> {
        self.running.signal(Signal::KILL)?;
        Ok((self.running.wait(LIMIT)?, self.dir))
    }

    /// Returns the processes with probes in place, and their sessions.
    pub fn sessions(&self) -> HashMap<i32, u64> {
        let all = self.request(r#"{"v":1,"do":"targets"}"#).unwrap_or_default();
        let targets = all["targets"].as_array().cloned().unwrap_or_default();
        let processes = targets.iter().flat_map(|t| t["processes"].as_array().cloned()).flatten();
        let traced = processes.filter(|process| process["state"] == "traced");
        let ids = |process: Value| {
            Some((process["pid"].as_i64()?.try_into().ok()?, process["session"].as_u64()?))
        };
        traced.filter_map(ids).collect()
    }

    /// Returns the processes with probes in place.
    pub fn traced(&self) -> Vec<i64> {
        let Ok(all) = self.ask(&["targets"]) else { return Vec::new() };
        let targets = all["targets"].as_array().cloned().unwrap_or_default();
        let processes = targets.iter().flat_map(|t| t["processes"].as_array().cloned());
        let traced = processes.flatten().filter(|process| process["state"] == "traced");
        traced.filter_map(|process| process["pid"].as_i64()).collect()
    }

    pub fn wait_until_traced(&self, pid: i32) -> Result<()> {
        wait_until("the process is traced", || self.traced().contains(&pid.into()))
    }

    /// Ends it by SIGTERM and returns its output.
    pub fn end(self) -> Result<(Finished, TempDir)> {
        self.running.signal(Signal::TERM)?;
        self.wait()
    }

    /// Waits for the end that it was told, and returns its output.
    pub fn wait(self) -> Result<(Finished, TempDir)> {
        Ok((self.running.wait(LIMIT)?, self.dir))
    }
}

fn configure(dir: &Path, targets: &str) -> Result<()> {
    let metrics = if targets.contains("[metrics]") { "" } else { "[metrics]\nlisten = \"off\"\n" };
    let rescan = if targets.starts_with("rescan") { "" } else { "rescan = \"5s\"\n" };
    let head = "[daemon]\nsocket = \"DIR/socket\"\nrecordings = \"DIR/recordings\"\n";
    let text =
        format!("{metrics}{head}{rescan}{targets}").replace("DIR", &dir.display().to_string());
    Ok(std::fs::write(dir.join("ctrace.toml"), text)?)
}

/// Parses the reports in a text of JSON lines.
pub fn reports(text: &str) -> Result<Vec<Value>> {
    text.lines().map(|line| serde_json::from_str(line).with_context(|| line.to_owned())).collect()
}

/// Checks that the reports of one session lie end to end, and that sums do not go back.
pub fn check_reports(reports: &[Value]) -> Result<()> {
    let mut ends = HashMap::new();
    let mut sums = HashMap::new();
    for report in reports {
        let facts = &report["daemon"];
        let (session, target) = (facts["session"].to_string(), facts["target"].to_string());
        let number = |key: &str| report[key].as_u64().context("a number");
        let (start, end) = (number("start_ns")?, number("end_ns")?);
        if let Some(before) = ends.insert(session, end) {
            ensure!(before == start, "a gap of {} ns", start.abs_diff(before));
        }
        let calls = facts["since_start"]["calls"].as_u64().context("calls")?;
        let before = sums.insert(target, calls).unwrap_or(0);
        ensure!(before <= calls, "the sum went from {before} to {calls}");
    }
    Ok(())
}

/// Returns the calls of a function in one report.
pub fn calls(report: &Value, name: &str) -> u64 {
    let functions = report["functions"].as_array().cloned().unwrap_or_default();
    let found = functions.iter().find(|function| function["name"] == name);
    found.and_then(|function| function["calls"].as_u64()).unwrap_or(0)
}
