//! Child processes that cannot outlive a test, and waiting with a limit.

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use std::io::{BufRead, BufReader, Read};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// A running child; killed by its id when dropped.
#[derive(Debug)]
pub struct Running {
    child: Child,
    name: String,
    stdout: Option<Collected>,
    stderr: Option<Collected>,
}

/// The output of a child so far, read in the background.
#[derive(Debug)]
struct Collected {
    bytes: Arc<Mutex<Vec<u8>>>,
    reader: JoinHandle<()>,
}

impl Collected {
    fn text(&self) -> String {
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// The end and the output of a child.
#[derive(Debug)]
pub struct Finished {
    pub status: ExitStatus,
    pub stdout: String,
    pub stderr: String,
}

impl Finished {
    /// Returns the exit code as a shell shows it: 128+n after signal n.
    pub fn shell_code(&self) -> i32 {
        shell_code(self.status)
    }
}

pub fn shell_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Returns its name, and the child with both outputs piped.
fn spawn(command: &mut Command) -> Result<(String, Child)> {
    let name = command.get_program().to_string_lossy().into_owned();
    let child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting {command:?}"))?;
    Ok((name, child))
}

impl Running {
    /// Starts it with both outputs collected in the background.
    pub fn start(command: &mut Command) -> Result<Running> {
        let (name, mut child) = spawn(command)?;
        let stdout = child.stdout.take().map(collect);
        let stderr = child.stderr.take().map(collect);
        Ok(Running { child, name, stdout, stderr })
    }

    /// Starts a target and returns when it has printed its first line (`ready`).
    pub fn start_ready(command: &mut Command) -> Result<Running> {
        let (name, mut child) = spawn(command)?;
        let stderr = child.stderr.take().map(collect);
        let mut reader = BufReader::new(child.stdout.take().context("stdout is piped")?);
        let mut line = String::new();
        reader.read_line(&mut line)?;
        let stdout = Some(collect(reader));
        let running = Running { child, name, stdout, stderr };
        if line.is_empty() {
            bail!("{} ended before it was ready", running.name);
        }
        Ok(running)
    }

    /// Starts a child to write to and to read from.
    pub fn start_piped(command: &mut Command) -> Result<(Running, ChildStdin, ChildStdout)> {
        let name = command.get_program().to_string_lossy().into_owned();
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .with_context(|| format!("starting {command:?}"))?;
        let input = child.stdin.take().context("stdin is piped")?;
        let output = child.stdout.take().context("stdout is piped")?;
        let stderr = child.stderr.take().map(collect);
        Ok((Running { child, name, stdout: None, stderr }, input, output))
    }

    pub fn pid(&self) -> i32 {
        // Process ids fit: the kernel's maximum is 2^22.
        self.child.id() as i32
    }

    pub fn signal(&self, signal: Signal) -> Result<()> {
        let pid = Pid::from_raw(self.pid()).context("process id 0")?;
        kill_process(pid, signal).with_context(|| format!("signal to {}", self.name))
    }

    /// Returns what it has written to stderr so far.
    pub fn said(&self) -> String {
        self.stderr.as_ref().map(Collected::text).unwrap_or_default()
    }

    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for the end; kills it and fails after `limit`.
    pub fn wait(mut self, limit: Duration) -> Result<Finished> {
        let start = Instant::now();
        let status = loop {
            if let Some(status) = self.child.try_wait()? {
                break status;
            }
            if start.elapsed() > limit {
                self.child.kill()?;
                self.child.wait()?;
                let finished = self.outputs(ExitStatus::default());
                bail!(
                    "{} did not end within {limit:?}\nstdout: {}\nstderr: {}",
                    self.name,
                    finished.stdout,
                    finished.stderr
                );
            }
            std::thread::sleep(Duration::from_millis(2));
        };
        Ok(self.outputs(status))
    }

    fn outputs(&mut self, status: ExitStatus) -> Finished {
        let text = |collected: Option<Collected>| {
            let Some(Collected { bytes, reader }) = collected else { return String::new() };
            let _ = reader.join();
            let bytes = bytes.lock().unwrap_or_else(PoisonError::into_inner);
            String::from_utf8_lossy(&bytes).into_owned()
        };
        Finished { status, stdout: text(self.stdout.take()), stderr: text(self.stderr.take()) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.is_running() {
            // It may already be gone.
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

fn collect(mut source: impl Read + Send + 'static) -> Collected {
    let bytes = Arc::new(Mutex::new(Vec::new()));
    let shared = Arc::clone(&bytes);
    let reader = std::thread::spawn(move || {
        let mut some = [0; 4096];
        // Bytes before an error are still worth showing.
        while let Ok(read @ 1..) = source.read(&mut some) {
            let mut bytes = shared.lock().unwrap_or_else(PoisonError::into_inner);
            bytes.extend_from_slice(&some[..read]);
        }
    });
    Collected { bytes, reader }
}

/// Runs a command to its end.
pub fn run(command: &mut Command, limit: Duration) -> Result<Finished> {
    Running::start(command)?.wait(limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_as_a_shell_shows_them() {
        let code = |script: &str| {
            run(Command::new("sh").args(["-c", script]), Duration::from_secs(10))
                .expect("sh")
                .shell_code()
        };
        assert_eq!(code("exit 3"), 3);
        assert_eq!(code("kill -KILL $$"), 137);
    }

    #[test]
    fn a_child_that_hangs_is_killed_and_its_output_shown() {
        let error = run(
            Command::new("sh").args(["-c", "echo here; exec sleep 100"]),
            Duration::from_millis(300),
        )
        .expect_err("it sleeps");
        assert!(error.to_string().contains("here"), "{error}");
    }

    #[test]
    fn a_dropped_child_is_gone() {
        let running = Running::start(Command::new("sleep").arg("100")).expect("sleep");
        let path = format!("/proc/{}", running.pid());
        drop(running);
        assert!(!std::path::Path::new(&path).exists());
    }
}
