//! Starting a command so that probes are in place before its first instruction.

use super::{
    Setup,
    output::Output,
    plan::Plan,
    trace::{self, Ending},
};
use crate::{
    cli::WhatArgs,
    inherited::pass_on_signals,
    target::{launch::Launch, process::Process},
    ui,
};
use anyhow::{Context, bail};
use ctrace_core::units::Pid;
use rustix::process::{self, Signal, WaitOptions, kill_process, waitpid};
use std::{
    ffi::OsString,
    io::{self, IsTerminal},
    os::unix::process::CommandExt,
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
};

/// What the command reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// What ctrace does.
    Ours,
    /// The same, but for the terminal, which is ctrace's alone.
    NoTerminal,
}

/// Launches a command that is traced from its first instruction on, and traces until the end.
/// `prepared` hears what is about to be armed, and says what ends the trace besides the command.
/// How the trace ended comes with the command, which may go on.
pub fn trace(
    what: &WhatArgs,
    (words, resolved, streams): (&[OsString], &Launch, Streams),
    output: Output,
    prepared: impl FnOnce(&Plan, Pid) -> Ending,
    started: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<(Launched, anyhow::Result<()>)> {
    let setup = Setup::plan(what, &resolved.objects)?;
    for remark in resolved.remarks() {
        ui::say(&remark);
    }
    let mut launched = Launched::stopped(&resolved.command, words, streams)?;
    let pid = launched.pid();
    let command = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let (mut tracer, plan) = setup.launched(pid, &resolved.exe, command, output)?;
    let ending = prepared(&plan, pid);
    tracer.arm(&plan, &resolved.objects)?;
    drop(plan);
    let traced = trace::run(&mut tracer, trace::watch(pid)?, ending, || {
        launched.start()?;
        started()
    });
    drop(tracer);
    Ok((launched, traced))
}

/// A child of ours that runs the command once [`Launched::start`] is called.
pub struct Launched {
    child: Child,
    /// Continues the command should ctrace be killed while holding it; ends with ctrace.
    guard: Option<Child>,
}

impl Launched {
    /// Forks a child that is stopped short of executing `file`.
    pub fn stopped(file: &Path, command: &[OsString], streams: Streams) -> anyhow::Result<Self> {
        let mut exec = Command::new("/proc/self/exe");
        exec.arg0("ctrace").arg("__exec").arg(file).arg("--").args(command);
        pass_on_signals(&mut exec);
        if streams == Streams::NoTerminal {
            keep_off_the_terminal(&mut exec);
        }
        let child = exec.spawn().context("cannot start a child process")?;
        let launched = Self { child, guard: None };
        match waitpid(Some(launched.raw_pid()), WaitOptions::UNTRACED) {
            Ok(Some((_, status))) if status.stopped() => Ok(launched),
            Ok(_) => bail!("the child ended before it could be traced"),
            Err(error) => Err(error).context("cannot wait for the child"),
        }
    }

    pub fn pid(&self) -> Pid {
        Pid(self.child.id())
    }

    fn raw_pid(&self) -> process::Pid {
        process::Pid::from_child(&self.child)
    }

    /// Lets the child execute the command.
    pub fn start(&mut self) -> anyhow::Result<()> {
        let guard = Command::new("/proc/self/exe")
            .arg0("ctrace")
            .args(["__guard", &self.child.id().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("cannot start a child process")?;
        self.guard = Some(guard);
        go_on(self.pid()).context("cannot continue the child")
    }

    /// The end of ctrace's part: nothing is held any more.
    pub fn let_go(&mut self) -> anyhow::Result<()> {
        if Process::is_held_at_start(self.child.id()) {
            go_on(self.pid()).context("cannot continue the command")?;
        }
        Ok(())
    }

    /// Whether the child was let go, to become the command.
    pub fn has_started(&self) -> bool {
        self.guard.is_some()
    }

    /// Whether it has not ended.
    pub fn goes_on(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Its status, once it has ended.
    pub fn wait(&mut self) -> anyhow::Result<ExitStatus> {
        self.child.wait().context("cannot wait for the command")
    }
}

fn keep_off_the_terminal(command: &mut Command) {
    if io::stdin().is_terminal() {
        command.stdin(Stdio::null());
    }
    if io::stdout().is_terminal() {
        command.stdout(Stdio::null());
    }
    if io::stderr().is_terminal() {
        command.stderr(Stdio::null());
    }
}

/// Continues a process that stopped at the start of a new program.
pub fn go_on(pid: Pid) -> rustix::io::Result<()> {
    let raw = process::Pid::from_raw(pid.0 as i32).ok_or(rustix::io::Errno::SRCH)?;
    kill_process(raw, Signal::CONT)
}

/// Hands a signal on. A process that is gone meanwhile needs none.
pub fn forward(pid: Pid, signal: i32) {
    if let (Some(pid), Some(signal)) =
        (process::Pid::from_raw(pid.0 as i32), Signal::from_named_raw(signal))
    {
        let _ = kill_process(pid, signal);
    }
}

/// A child that never became the command must not stay behind stopped.
impl Drop for Launched {
    fn drop(&mut self) {
        if self.goes_on() {
            let stopped_as_ctrace = std::fs::read_link(format!("/proc/{}/exe", self.child.id()))
                .ok()
                .zip(std::fs::read_link("/proc/self/exe").ok())
                .is_some_and(|(child, own)| child == own);
            if stopped_as_ctrace {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
        }
    }
}

/// The exit status to hand on: the command's own, or 128+n when signal n ended it.
pub fn exit_code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, Some(signal)) => (128 + signal) as u8,
        (None, None) => 125,
    }
}
