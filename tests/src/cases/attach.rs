//! Attaches to a running process until its end or ctrace's.

use crate::env::Env;
use crate::probes::{changed_bytes, wait_until_armed};
use crate::process::Running;
use crate::targets::program;
use crate::trace::Trace;
use anyhow::{Result, ensure};
use rustix::process::Signal;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

pub(super) fn spinning(env: &Env, arguments: &[&str]) -> Result<Running> {
    Running::start_ready(Command::new(spin(env)?).args(arguments))
}

/// Checks that a spinning target ends well after SIGTERM.
pub(super) fn ends_well(target: Running) -> Result<()> {
    target.signal(Signal::TERM)?;
    let finished = target.wait(Duration::from_secs(60))?;
    ensure!(
        finished.shell_code() == 0 && finished.stdout.starts_with("ok "),
        "the target was disturbed: exit {}, output {}",
        finished.shell_code(),
        finished.stdout
    );
    Ok(())
}

pub(super) fn attach_for_a_while(env: &Env) -> Result<()> {
    let target = spinning(env, &["0", "2000"])?;
    let traced = Trace::attach(env, target.pid())?
        .functions(["step", "mix"])
        .args(["-d", "1"])
        .finish()?
        .expect_code(0)?;
    let report = traced.report()?;
    report.check_sums()?;
    report.check_lossless()?;
    let calls = report.expect("step")?.calls();
    ensure!((200..6000).contains(&calls), "step: {calls} calls in a second at 2,000 a second");
    ensure!(changed_bytes(target.pid(), &spin(env)?)?.is_empty());
    ends_well(target)
}

pub(super) fn attach_until_the_target_ends(env: &Env) -> Result<()> {
    let target = spinning(env, &["0", "1000"])?;
    let started = Trace::attach(env, target.pid())?.functions(["step", "mix"]).start()?;
    wait_until_armed(target.pid(), &spin(env)?)?;
    std::thread::sleep(Duration::from_millis(500));
    ends_well(target)?;
    let traced = started.wait()?.expect_code(0)?;
    let report = traced.report()?;
    report.check_sums()?;
    ensure!(report.expect("step")?.calls() > 0, "no call was seen");
    let exit = &report.0["target"]["exit"];
    ensure!(exit["code"] == 0, "target.exit is {exit}");
    Ok(())
}

pub(super) fn attach_until_the_target_is_killed(env: &Env) -> Result<()> {
    for signal in [Signal::KILL, Signal::SEGV] {
        let target = spinning(env, &["0", "5000"])?;
        let started = Trace::attach(env, target.pid())?.functions(["step", "mix"]).start()?;
        wait_until_armed(target.pid(), &spin(env)?)?;
        std::thread::sleep(Duration::from_millis(300));
        target.signal(signal)?;
        target.wait(Duration::from_secs(10))?;
        let traced = started.wait()?.expect_code(0)?;
        let report = traced.report()?;
        report.check_sums()?;
        ensure!(report.expect("step")?.calls() > 0, "no call was seen");
    }
    Ok(())
}

pub(super) fn a_killed_ctrace_leaves_nothing(env: &Env) -> Result<()> {
    let program = spin(env)?;
    let target = spinning(env, &["0", "5000", "2"])?;
    let started = Trace::attach(env, target.pid())?.functions(["step", "mix"]).start()?;
    wait_until_armed(target.pid(), &spin(env)?)?;
    started.running.signal(Signal::KILL)?;
    let _ = started.wait()?;
    // The kernel removes the breakpoints when the last link closes, perhaps a little later.
    let mut left = Vec::new();
    for _ in 0..100 {
        left = changed_bytes(target.pid(), &program)?;
        if left.is_empty() {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    ensure!(left.is_empty(), "still changed at file offsets {left:x?}");
    ends_well(target)
}

pub(super) fn spin(env: &Env) -> Result<PathBuf> {
    env.targets.get(&program("spin.c"))
}
