//! A target that obeys commands line by line: `tests/targets/marks_serve.c`.

use crate::env::Env;
use crate::look::wait_until;
use crate::process::{Finished, Running};
use crate::targets::program;
use anyhow::{Context, Result, bail, ensure};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{ChildStdin, Command};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

/// Time limit of an answer.
const LIMIT: Duration = Duration::from_secs(120);

#[derive(Debug)]
pub struct Server {
    running: Running,
    input: ChildStdin,
    answers: Receiver<String>,
}

impl Server {
    pub fn path(env: &Env) -> Result<PathBuf> {
        env.targets.get(&program("marks_serve.c"))
    }

    pub fn start(env: &Env) -> Result<Server> {
        Server::start_as(&mut Command::new(Server::path(env)?))
    }

    /// Starts it by a command that becomes the target, or runs it.
    pub fn start_as(command: &mut Command) -> Result<Server> {
        let (running, input, output) = Running::start_piped(command)?;
        let (sender, answers) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(output).lines() {
                let Ok(line) = line else { return };
                if sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Server { running, input, answers })
    }

    pub fn pid(&self) -> i32 {
        self.running.pid()
    }

    pub fn ask(&mut self, line: &str) -> Result<String> {
        writeln!(self.input, "{line}").with_context(|| format!("asking for `{line}`"))?;
        self.input.flush()?;
        let answer = self.answers.recv_timeout(LIMIT);
        answer.with_context(|| format!("no answer to `{line}`"))
    }

    /// Enters a scope this many times.
    pub fn call(&mut self, name: &str, times: u64) -> Result<()> {
        let answer = self.ask(&format!("calls {name} {times}"))?;
        ensure!(answer == "done", "{answer}");
        Ok(())
    }

    /// Starts threads in the scopes `turn` and `half`, until [`Server::stop`].
    pub fn spin(&mut self, threads: u64) -> Result<()> {
        let answer = self.ask(&format!("spin {threads}"))?;
        ensure!(answer == "done", "{answer}");
        Ok(())
    }

    /// Returns how often the threads were in either scope.
    pub fn stop(&mut self) -> Result<u64> {
        let answer = self.ask("stop")?;
        let turns = answer.strip_prefix("turns ").and_then(|number| number.parse().ok());
        turns.with_context(|| answer.clone())
    }

    /// Returns the semaphore of each scope.
    pub fn semaphores(&mut self) -> Result<BTreeMap<String, u64>> {
        let answer = self.ask("semaphores")?;
        let pairs = answer.split_whitespace().skip(1).map(|word| {
            let (name, value) = word.split_once('=').with_context(|| word.to_owned())?;
            Ok((name.to_owned(), value.parse()?))
        });
        pairs.collect()
    }

    /// Waits until each scope's semaphore has the `value` for its name.
    pub fn wait_for_semaphores(&mut self, value: impl Fn(&str) -> u64) -> Result<()> {
        let mut seen = Ok(BTreeMap::new());
        let reached = wait_until("the semaphores are as they should", || {
            seen = self.semaphores();
            seen.as_ref().map_or(true, |all| all.iter().all(|(name, is)| *is == value(name)))
        });
        let seen = seen?;
        ensure!(!seen.is_empty(), "there are no semaphores");
        if reached.is_err() {
            let wrong: Vec<_> = seen.iter().filter(|(name, is)| **is != value(name)).collect();
            bail!("semaphores are {wrong:?}");
        }
        Ok(())
    }

    /// Ends it in order.
    pub fn end(self) -> Result<Finished> {
        drop(self.input);
        let finished = self.running.wait(LIMIT)?;
        ensure!(
            finished.shell_code() == 0,
            "the target was disturbed: exit {}, {}",
            finished.shell_code(),
            finished.stderr
        );
        Ok(finished)
    }
}
