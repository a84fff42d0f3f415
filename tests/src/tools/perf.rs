//! perf with its own home, so that the user's settings and cache of build ids have no effect, and
//! with a private tracefs.
//!
//! Its probes are the kernel's, visible to all, and outlive it. Dropping a [`Perf`] deletes them by
//! name. A machine has one `Perf` at a time, so that names do not collide.

use super::has;
use crate::process::{Finished, run};
use anyhow::{Context, Result, ensure};
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

const LIMIT: Duration = Duration::from_secs(60);

const TRACING: &str = "/sys/kernel/tracing";

/// Mounts a tracefs where there is none, then executes its arguments.
const WITH_TRACEFS: &str = r#"
    probes=/sys/kernel/tracing/uprobe_events
    if [ ! -e $probes ]; then mount -t tracefs none /sys/kernel/tracing || exit; fi
    exec "$@"
"#;

#[derive(Debug)]
pub struct Perf {
    home: TempDir,
    defined: Vec<String>,
    _only: File,
}

impl Perf {
    /// Makes one, or returns why it cannot run here.
    pub fn new() -> Result<Perf, String> {
        has("perf")?;
        has("unshare")?;
        let home = TempDir::new().map_err(|error| error.to_string())?;
        let only = File::open(TRACING).map_err(|error| format!("{TRACING}: {error}"))?;
        flock(&only, FlockOperation::LockExclusive).map_err(|error| error.to_string())?;
        let perf = Perf { home, defined: Vec::new(), _only: only };
        let tried = perf.run("test", ["-w".as_ref(), "/sys/kernel/tracing/uprobe_events".as_ref()]);
        tried.map_err(|error| format!("no tracefs with uprobes for perf: {error:#}"))?;
        Ok(perf)
    }

    fn run<'a>(
        &self,
        program: &str,
        arguments: impl IntoIterator<Item = &'a Path>,
    ) -> Result<Finished> {
        let mut command = Command::new("unshare");
        command.args(["--mount", "sh", "-c", WITH_TRACEFS, "sh", program]).args(arguments);
        command.env("HOME", self.home.path()).env_remove("DEBUGINFOD_URLS");
        let finished = run(&mut command, LIMIT)?;
        let code = finished.shell_code();
        ensure!(code == 0, "exit {code}\n{}{}", finished.stdout, finished.stderr);
        Ok(finished)
    }

    fn perf(&self, arguments: &[&str]) -> Result<Finished> {
        let cache = self.path("buildid");
        let words = ["--buildid-dir".as_ref(), &*cache].into_iter();
        self.run("perf", words.chain(arguments.iter().map(Path::new)))
            .with_context(|| format!("perf {}", arguments.join(" ")))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.home.path().join(name)
    }

    /// Adds the notes of a program to the cache.
    pub fn add(&self, program: &str) -> Result<()> {
        self.perf(&["buildid-cache", "--add", program]).map(drop)
    }

    /// Returns the USDT probes of all programs in the cache.
    pub fn list(&self) -> Result<Vec<String>> {
        let listed = self.perf(&["list", "sdt"])?.stdout;
        let names = listed.lines().filter(|line| line.ends_with("[SDT event]"));
        Ok(names.filter_map(|line| Some(line.split_whitespace().next()?.to_owned())).collect())
    }

    /// Defines a probe. Returns its name, perhaps with a number that makes it unique, and its
    /// number of places.
    pub fn define(&mut self, program: &str, probe: &str) -> Result<(String, usize)> {
        let said = self.perf(&["probe", "--force", "--exec", program, "--add", probe])?;
        let lines = [said.stdout, said.stderr].concat();
        let lines = lines.lines().filter(|line| line.contains(" (on "));
        let names: Vec<_> = lines.filter_map(|line| line.split_whitespace().next()).collect();
        let name = (*names.first().context("no probe was defined")?).to_owned();
        self.defined.push(name.clone());
        ensure!(names.iter().all(|other| *other == name), "names are {names:?}");
        Ok((name, names.len()))
    }

    /// Runs a program. Returns a line for each hit of a defined probe: `NAME: (ADDRESS) arg1=…
    /// arg2=…`.
    pub fn record(&self, program: &[&str]) -> Result<Vec<String>> {
        let data = self.path("data");
        let data = data.to_str().context("a path")?;
        let events = self.defined.iter().flat_map(|name| ["-e", name]);
        let mut words = vec!["record", "--quiet", "--count", "1", "-o", data];
        words.extend(events.chain(["--"]).chain(program.iter().copied()));
        self.perf(&words)?;
        let samples = self.perf(&["script", "-i", data, "-F", "event,trace"])?.stdout;
        Ok(samples.lines().map(|line| line.trim().to_owned()).collect())
    }
}

impl Drop for Perf {
    fn drop(&mut self) {
        for name in &self.defined {
            if let Err(error) = self.perf(&["probe", "--quiet", "--del", name]) {
                eprintln!("perf's probe {name} is still defined: {error:#}");
            }
        }
    }
}
