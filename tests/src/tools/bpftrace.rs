//! Runs bpftrace on a launched or running program, and takes its final maps.

use crate::look::wait_until;
use crate::process::{Finished, Running};
use anyhow::{Context, Result, bail, ensure};
use rustix::process::Signal;
use serde_json::{Map, Value};
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// It takes a second to start and, on some kernels, a tenth to close each probe.
const LIMIT: Duration = Duration::from_secs(180);

/// The time that it has to see an interrupt.
const PATIENCE: Duration = Duration::from_secs(5);

/// A running bpftrace.
#[derive(Debug)]
pub struct Bpftrace {
    running: Running,
    output: TempDir,
}

impl Bpftrace {
    fn start(option: &str, value: &str, script: &str) -> Result<Bpftrace> {
        let output = TempDir::new()?;
        let mut command = Command::new("bpftrace");
        command.args(["-f", "json", "-o"]).arg(output.path().join("maps"));
        command.args([option, value, "-e", script]);
        Ok(Bpftrace { running: Running::start(&mut command)?, output })
    }

    /// Launches the command when all probes are in place. Ends with it.
    pub fn launch(command: &str, script: &str) -> Result<(Value, Finished)> {
        Bpftrace::start("-c", command, script)?.wait()
    }

    /// Attaches to a process. [`crate::probes::changed_bytes`] tells when the probes are in place.
    pub fn attach(
        pid: i32,
        script: &str,
        mut is_in_place: impl FnMut() -> bool,
    ) -> Result<Bpftrace> {
        let mut bpftrace = Bpftrace::start("-p", &pid.to_string(), script)?;
        wait_until("bpftrace has its probes", || is_in_place() || !bpftrace.running.is_running())?;
        if !bpftrace.running.is_running() {
            let (maps, finished) = bpftrace.wait()?;
            bail!("bpftrace ended: {maps} {}", finished.stderr);
        }
        Ok(bpftrace)
    }

    /// Ends it as Ctrl-C does. Version 0.17 sees an interrupt only when a signal ends its wait for
    /// events. One that came outside of a wait is seen with the next signal. It prints its maps for
    /// this one, and never ends by it.
    pub fn end(mut self) -> Result<Value> {
        self.running.signal(Signal::INT)?;
        let mut wake_up = Instant::now() + PATIENCE;
        let end = Instant::now() + LIMIT;
        while self.running.is_running() && Instant::now() < end {
            if Instant::now() > wake_up {
                self.running.signal(Signal::USR1)?;
                wake_up += PATIENCE;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(self.wait()?.0)
    }

    /// Returns all maps in one object, and the other output of it and its command.
    fn wait(self) -> Result<(Value, Finished)> {
        let finished = self.running.wait(LIMIT)?;
        ensure!(finished.shell_code() == 0, "bpftrace: {}", finished.stderr);
        let lines = std::fs::read_to_string(self.output.path().join("maps"))?;
        let mut maps = Map::new();
        for line in lines.lines().filter(|line| !line.is_empty()) {
            let mut line: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
            if line["type"] == "map"
                && let Value::Object(map) = line["data"].take()
            {
                maps.extend(map);
            }
        }
        Ok((Value::Object(maps), finished))
    }
}
