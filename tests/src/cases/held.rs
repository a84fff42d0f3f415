//! A launched command is held at each exec until the new program has its probes. It must go on
//! whatever becomes of ctrace.

use crate::env::Env;
use crate::look::{self, wait_until};
use crate::probes::{changed_bytes, wait_until_armed};
use crate::targets::program;
use crate::trace::{Started, Trace};
use crate::truth::Truth;
use anyhow::{Context, Result, ensure};
use rustix::process::{Pid, Signal, kill_process};
use std::path::{Path, PathBuf};

/// The traced `becomes`, and the program that it will execute.
struct Becoming {
    started: Started,
    pid: i32,
    other: PathBuf,
}

impl Becoming {
    /// Starts it armed, waiting for SIGUSR1 or spinning.
    fn start(
        env: &Env,
        how: &str,
        other: &Path,
        arguments: &[&str],
        options: &[&str],
    ) -> Result<Self> {
        let path = env.targets.get(&program("becomes.c"))?;
        let other = std::fs::canonicalize(other)?;
        let words = [how, other.to_str().context("path is text")?];
        let started = Trace::run(env)?
            .functions(["work", "leaf"])
            .args(options.iter().copied())
            .program(&path, words.into_iter().chain(arguments.iter().copied()))
            .start()?;
        let pid = look::child_running(started.running.pid(), &path)?;
        wait_until_armed(pid, &path)?;
        if how != "hot" {
            wait_until("it waits for the signal", || look::blocks(pid, Signal::USR1))?;
        }
        Ok(Self { started, pid, other })
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        let pid = Pid::from_raw(self.pid).context("process id 0")?;
        kill_process(pid, signal).context("signal to the command")
    }

    /// Executes the other program, unnoticed by ctrace. The command is held there.
    fn hold_behind_its_back(&self) -> Result<()> {
        self.started.running.signal(Signal::STOP)?;
        wait_until("ctrace is stopped", || look::is_stopped(self.started.running.pid()))?;
        self.signal(Signal::USR1)?;
        wait_until("the command is held at its exec", || {
            look::runs(self.pid, &self.other) && look::is_stopped(self.pid)
        })
    }
}

/// After the session's end nothing may hold the command any more.
pub(super) fn exec_after_a_stop_for_slowness(env: &Env) -> Result<()> {
    let path = env.targets.get(&program("becomes.c"))?;
    let other = env.targets.get(&program("longjmp.c"))?;
    // Lost events cost the target as much as the others.
    let limit = ["--max-slowdown", "5%", "--ring-size", "4KiB"];
    let becoming = Becoming::start(env, "hot", &other, &["5"], &limit)?;
    wait_until("it is stopped for slowness", || becoming.started.has_reported())?;
    wait_until("the probes are gone", || {
        changed_bytes(becoming.pid, &path).is_ok_and(|changed| changed.is_empty())
    })?;
    becoming.signal(Signal::USR1)?;
    let traced = becoming.started.wait()?.expect_code(0)?;
    let output = &traced.finished.stdout;
    ensure!(output.contains("calls catcher 5"), "the other program did not run: {output}");
    let report = traced.report()?;
    report.expect_note(&["stopped early", "--max-slowdown"])?;
    report.check_sums()?;
    let (seen, made) = (report.expect("work")?.calls(), made(output, "work")?);
    ensure!(seen < made, "all {made} calls were traced, so nothing was stopped");
    Ok(())
}

/// ctrace is killed while it holds the command: the guard continues it.
pub(super) fn a_held_command_outlives_ctrace(env: &Env) -> Result<()> {
    let other = env.targets.get(&program("counts.c"))?;
    let becoming = Becoming::start(env, "10", &other, &["7"], &[])?;
    becoming.hold_behind_its_back()?;
    becoming.started.running.signal(Signal::KILL)?;
    let went_on = wait_until("the command ends", || look::has_ended(becoming.pid));
    if went_on.is_err() {
        becoming.signal(Signal::KILL)?;
    }
    let output = becoming.started.wait()?.finished.stdout;
    went_on.with_context(|| format!("held for ever; it said: {output}"))?;
    ensure!(made(&output, "leaf")? == 7, "the other program did not run: {output}");
    Ok(())
}

/// The record of the exec is lost in a full ring. The held command is still found, and its new
/// program armed.
pub(super) fn exec_with_full_rings(env: &Env) -> Result<()> {
    let other = env.targets.get(&program("counts.c"))?;
    let calls = env.scaled(200_000);
    let rings = ["--ring-size", "4096"];
    let becoming = Becoming::start(env, "5000", &other, &[&calls], &rings)?;
    becoming.hold_behind_its_back()?;
    becoming.started.running.signal(Signal::CONT)?;
    let traced = becoming.started.wait()?.expect_code(0)?;
    let report = traced.report()?;
    report.check_sums()?;
    report.expect_note(&["before the program's first instruction"])?;
    let output = &traced.finished.stdout;
    for name in ["work", "leaf"] {
        let (seen, made) = (report.expect(name)?.calls(), made(output, name)?);
        ensure!(seen > 0, "{name} was not seen\n{}", report.losses());
        ensure!(
            seen + report.loss("events") >= made,
            "{name}: {seen} of {made} calls\n{}",
            report.losses()
        );
    }
    ensure!(report.loss("events") > 5000, "the rings were not full: {}", report.losses());
    Ok(())
}

/// Returns the number of calls that the command reports for a function.
fn made(output: &str, name: &str) -> Result<u64> {
    let calls = Truth::parse(output).calls;
    let found = calls.iter().find(|(known, _)| known == name).map(|(_, calls)| *calls);
    found.with_context(|| format!("no calls of {name} in: {output}"))
}
