//! Starts the processes of a load, so that each is bounded in time and ends with the benchmark,
//! also after an error.

use crate::bench::{target::Running, watch};
use crate::peers;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The limit for anything that is waited for.
pub(super) const PATIENCE: Duration = Duration::from_secs(180);

/// The unprivileged user of servers.
pub(super) const NOBODY: u32 = 65534;

/// A command that ends with this process, even if that is killed.
pub(super) fn tied(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "TERM"]).arg(program);
    peers::with_libraries(&mut command).stdin(Stdio::null());
    command
}

/// Like [`tied`], as the unprivileged user.
pub(super) fn unprivileged(program: &Path) -> Command {
    let mut command = Command::new("setpriv");
    let id = NOBODY.to_string();
    command.args(["--reuid", &id, "--regid", &id, "--clear-groups", "--pdeathsig", "TERM"]);
    command.arg(program);
    peers::with_libraries(&mut command).stdin(Stdio::null());
    command
}

/// A command that is killed when it takes too long.
pub(super) fn bounded(program: &Path) -> Command {
    let mut command = Command::new("timeout");
    command.args(["--kill-after", "5", &PATIENCE.as_secs().to_string()]).arg(program);
    peers::with_libraries(&mut command);
    command
}

/// Repeats a question until the answer is there.
pub(super) fn wait_for<T>(what: &str, mut answer: impl FnMut() -> Result<Option<T>>) -> Result<T> {
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        if let Some(answer) = answer()? {
            return Ok(answer);
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    bail!("{what}: nothing within {} s", PATIENCE.as_secs())
}

/// A server with processes of its own. Dropping this ends all of them.
pub(super) struct Server(pub(super) Child);

impl Server {
    /// Starts it. Its output goes to a file.
    pub(super) fn start(command: &mut Command, log: &Path) -> Result<Server> {
        let file = File::create(log)?;
        command.stdout(file.try_clone()?).stderr(file);
        Ok(Server(command.spawn().with_context(|| format!("{command:?}"))?))
    }

    pub(super) fn id(&self) -> u32 {
        self.0.id()
    }

    /// Waits until it serves.
    pub(super) fn until_ready(
        &mut self,
        log: &Path,
        mut is_ready: impl FnMut() -> Result<bool>,
    ) -> Result<()> {
        wait_for("a server", || {
            if let Some(status) = self.0.try_wait()? {
                bail!("it ended with {status}: {}", std::fs::read_to_string(log)?);
            }
            Ok(is_ready()?.then_some(()))
        })
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Whatever fails here, the next step is stronger.
        let workers = children(self.id());
        let _ = watch::signal(self.id(), "-INT");
        for _ in 0..1000 {
            if self.0.try_wait().is_ok_and(|status| status.is_some()) {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        let _ = self.0.kill();
        let _ = self.0.wait();
        for worker in workers.into_iter().filter(|worker| parent(*worker) == Some(1)) {
            let _ = watch::signal(worker, "-KILL");
        }
    }
}

/// Returns the processes that a process has started. Not every kernel lists them.
pub(super) fn children(of: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let ids = processes.filter_map(|process| process.file_name().to_str()?.parse().ok());
    ids.filter(|id| parent(*id) == Some(of)).collect()
}

fn parent(of: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{of}/stat")).ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    after_name.split_whitespace().nth(1)?.parse().ok()
}

/// A program that prints `ready`, works when it reads a line, prints its results, and ends with its
/// input.
pub(super) struct Gated {
    process: Running,
    input: ChildStdin,
    lines: Receiver<String>,
}

impl Gated {
    pub(super) fn start(command: &mut Command) -> Result<Gated> {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("{command:?}"))?;
        let (input, output) = (child.stdin.take(), child.stdout.take());
        let process = Running(child);
        let (input, output) = (input.context("a pipe")?, output.context("a pipe")?);
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                if sender.send(line).is_err() {
                    break;
                }
            }
        });
        let mut gated = Gated { process, input, lines };
        gated.until("ready")?;
        Ok(gated)
    }

    pub(super) fn id(&self) -> u32 {
        self.process.0.id()
    }

    /// Lets it work. Returns what it prints.
    pub(super) fn work(&mut self) -> Result<String> {
        self.input.write_all(b"go\n")?;
        self.until("done")
    }

    /// Returns the lines before a line.
    fn until(&mut self, last: &str) -> Result<String> {
        let mut printed = String::new();
        loop {
            match self.lines.recv_timeout(PATIENCE) {
                Ok(line) if line == last => return Ok(printed),
                Ok(line) => printed = printed + &line + "\n",
                Err(_) => match self.process.0.try_wait()? {
                    Some(status) => bail!("the program ended with {status} after: {printed}"),
                    None => bail!("the program prints no `{last}` after: {printed}"),
                },
            }
        }
    }
}
