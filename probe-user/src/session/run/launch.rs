//! Starts a command so that probes are in place before its first instruction.

use super::{
    event_loop::{self, Ending},
    release::Releaser,
    setup::Setup,
    signals, wrapper,
};
use crate::{
    bpf,
    inherited::pass_on_signals,
    session::{keep::output::Output, plan::Plan, spec::TraceSpec},
    target::{launch::Launch, process::Process},
    ui,
    user::Identity,
    writing,
};
use anyhow::Context;
use ctrace_core::units::Pid;
use rustix::{
    io::{FdFlags, fcntl_setfd},
    process::{self, Signal, WaitId, WaitIdOptions, kill_process, waitid},
};
use std::{
    ffi::OsString,
    io::{self, ErrorKind, IsTerminal, Read as _, Write as _},
    os::{
        fd::AsRawFd as _,
        unix::{
            net::UnixStream,
            process::{CommandExt, ExitStatusExt},
        },
    },
    process::{Child, Command, ExitStatus, Stdio},
};

/// The streams that the command reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// The same as ctrace's.
    Ours,
    /// The same, except for the terminal, which belongs to ctrace alone.
    NoTerminal,
}

/// The program to launch.
pub struct Program<'a> {
    /// The words of the command line.
    pub words: &'a [OsString],
    pub resolved: &'a Launch,
    pub user: &'a Identity,
    pub streams: Streams,
}

/// Launches a command, traces it from its first instruction on, and traces until the end.
/// `prepared` gets the plan before it is armed, and returns the events that end the trace besides
/// the command. Returns the command, which may go on, with the result of the trace.
pub(crate) fn trace(
    spec: &TraceSpec,
    program: &Program<'_>,
    output: Output,
    prepared: impl FnOnce(&Plan, Pid) -> anyhow::Result<Ending>,
    started: impl FnOnce() -> anyhow::Result<()>,
) -> anyhow::Result<(Launched, anyhow::Result<()>)> {
    let Program { words, resolved, .. } = program;
    let followed = TraceSpec { probes: spec.probes.following(), ..spec.clone() };
    let setup = Setup::plan(spec, &resolved.objects, &output).or_else(|error| {
        ui::say(&wrapper::starts_others(&error, program).ok_or(error)?);
        Setup::plan(&followed, &resolved.objects, &output)
    })?;
    for remark in resolved.remarks() {
        ui::say(&remark);
    }
    let mut launched = Launched::begin(program)?;
    let pid = launched.pid();
    let command = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let is_there = || launched.await_child();
    let (mut session, plan) = setup.launched(pid, &resolved.exe, command, output, is_there)?;
    let ending = prepared(&plan, pid)?;
    session.arm(&plan, &resolved.objects)?;
    drop(plan);
    let traced = event_loop::run(&mut session, event_loop::watch(pid)?, ending, || {
        launched.start()?;
        started()
    });
    drop(session);
    Ok((launched, traced))
}

/// A child of ours that runs the command once [`Launched::start`] is called.
pub struct Launched {
    child: Child,
    /// The child waits for a byte from here, and ends without one if ctrace ends first.
    socket: UnixStream,
    has_started: bool,
    releaser: Option<Releaser>,
}

impl Launched {
    /// Forks a child that waits just before it executes the command.
    pub fn waiting(program: &Program<'_>) -> anyhow::Result<Self> {
        let mut launched = Self::begin(program)?;
        launched.await_child()?;
        Ok(launched)
    }

    /// Forks a child that will wait just before it executes the command.
    fn begin(program: &Program<'_>) -> anyhow::Result<Self> {
        let (socket, theirs) = UnixStream::pair().context("cannot make a socket")?;
        let mut exec = Command::new("/proc/self/exe");
        exec.arg0("ctrace").arg("__exec");
        if let Some(rights) = program.user.rights() {
            exec.args(["--as", &rights.to_string()]);
        }
        exec.arg(theirs.as_raw_fd().to_string());
        exec.arg(&program.resolved.command).arg("--").args(program.words);
        program.user.apply_environment(&mut exec);
        pass_on_signals(&mut exec);
        if program.streams == Streams::NoTerminal {
            keep_off_the_terminal(&mut exec);
        }
        // The guard closes it if the guard is started meanwhile.
        fcntl_setfd(&theirs, FdFlags::empty()).context("cannot hand on a socket")?;
        let child = exec.spawn().context("cannot start a child process")?;
        Ok(Self { child, socket, has_started: false, releaser: None })
    }

    /// Returns when the child waits. Until it sends its byte, it may not run ctrace's own program yet.
    fn await_child(&mut self) -> anyhow::Result<()> {
        self.socket.read_exact(&mut [0]).context("the child ended before it could be traced")
    }

    pub fn pid(&self) -> Pid {
        Pid(self.child.id())
    }

    /// Lets the child execute the command. From now on the command goes on even if ctrace is
    /// killed, also while it is held, or if this thread, which runs the loop, waits long in a
    /// write.
    pub fn start(&mut self) -> anyhow::Result<()> {
        bpf::hold(self.pid()).context("cannot tell the guard process of the command")?;
        writing::watch_this_thread();
        self.releaser = Some(Releaser::start(self.pid())?);
        self.has_started = true;
        match self.socket.write_all(&[0]) {
            // A signal ended it; its status is reported as for any command.
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                signals::say_that_nothing_was_traced();
                Ok(())
            }
            told => told.context("cannot start the child"),
        }
    }

    /// Ends ctrace's part: nothing is held any more.
    pub(crate) fn let_go(&mut self) -> anyhow::Result<()> {
        if Process::is_held_at_start(self.child.id()) {
            go_on(self.pid()).context("cannot continue the command")?;
        }
        self.releaser = None;
        bpf::let_go();
        Ok(())
    }

    /// True if the child was let go, to become the command.
    pub(crate) fn has_started(&self) -> bool {
        self.has_started
    }

    /// True if it has not ended.
    pub(crate) fn goes_on(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for its end and returns its status.
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
pub(crate) fn go_on(pid: Pid) -> rustix::io::Result<()> {
    let raw = process::Pid::from_raw(pid.0 as i32).ok_or(rustix::io::Errno::SRCH)?;
    kill_process(raw, Signal::CONT)
}

/// Returns whether a child of ours has ended, whether or not it was waited for.
pub(crate) fn has_ended(pid: Pid) -> bool {
    let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    let raw = process::Pid::from_raw(pid.0 as i32);
    raw.is_none_or(|pid| !matches!(waitid(WaitId::Pid(pid), look), Ok(None)))
}

/// Hands a signal on. A process that has ended needs none.
pub(crate) fn forward(pid: Pid, signal: i32) {
    if let (Some(pid), Some(signal)) =
        (process::Pid::from_raw(pid.0 as i32), Signal::from_named_raw(signal))
    {
        let _ = kill_process(pid, signal);
    }
}

/// Ends a child that never became the command: it must not stay behind.
impl Drop for Launched {
    fn drop(&mut self) {
        if self.goes_on() {
            let is_still_ctrace = std::fs::read_link(format!("/proc/{}/exe", self.child.id()))
                .ok()
                .zip(std::fs::read_link("/proc/self/exe").ok())
                .is_some_and(|(child, own)| child == own);
            if is_still_ctrace {
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
        }
    }
}

/// Returns the exit status to hand on: the command's own, or 128+n if signal n ended it.
pub fn exit_code(status: ExitStatus) -> u8 {
    match (status.code(), status.signal()) {
        (Some(code), _) => code as u8,
        (None, Some(signal)) => (128 + signal) as u8,
        (None, None) => 125,
    }
}
