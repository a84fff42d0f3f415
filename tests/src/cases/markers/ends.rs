//! Tests the ends of threads, programs and processes, and interrupted or abandoned scopes.

use super::{TELLS_OF_EXEC, TELLS_OF_EXIT, scopes, wait_before};
use crate::env::Env;
use crate::targets::program;
use anyhow::{Context, Result, ensure};

/// Rings with room for all that a program writes at full speed, even if ctrace reads nothing at
/// that time.
pub(super) const ROOM: [&str; 2] = ["--ring-size", "256MiB"];

/// The process ends within a scope, with other threads within theirs, all in mid-batch.
pub(crate) fn markers_to_every_end(env: &Env) -> Result<()> {
    let wait = wait_before(TELLS_OF_EXIT);
    let ends = [("exit", 7), ("_exit", 7), ("segv", 139), ("abort", 134), ("kill", 137)];
    let counts = if env.slower > 1 { &["1007"][..] } else { &["0", "1000", "1007"] };
    for (how, code) in ends {
        for &calls in counts {
            scopes(env, &program("marks_end.c"), &[how, calls, wait], &[])?.expect_code(code)?;
        }
    }
    Ok(())
}

/// Thousands of threads reuse the buffers of ended ones.
pub(crate) fn markers_in_brief_threads(env: &Env) -> Result<()> {
    let (threads, calls) = (env.scaled(4000), "25");
    let build = program("marks_threads.c");
    let traced = scopes(env, &build, &["brief", &threads, calls], &[])?.expect_code(0)?;
    let output = &traced.finished.stdout;
    let buffers = output.lines().find_map(|line| line.strip_prefix("buffers ")?.parse().ok());
    let buffers: u64 = buffers.context("the target tells its buffers")?;
    // A thread may have announced its end before it gives its buffer back.
    ensure!((1..=16).contains(&buffers), "{buffers} buffers for 8 threads at a time");
    let seen = traced.report()?.expect("brief")?.integer("threads")?;
    ensure!(seen >= threads.parse::<u64>()?.div_ceil(8) * 8, "{seen} of {threads} threads");
    Ok(())
}

pub(crate) fn markers_at_full_rate(env: &Env) -> Result<()> {
    let calls = env.scaled(300_000);
    let build = program("marks_threads.c");
    scopes(env, &build, &["rate", "8", &calls], &ROOM)?.expect_code(0).map(drop)
}

pub(crate) fn markers_as_threads_leave(env: &Env) -> Result<()> {
    let arguments = ["leave", "40", "30"];
    scopes(env, &program("marks_threads.c"), &arguments, &[])?.expect_code(0).map(drop)
}

pub(crate) fn markers_over_exec(env: &Env) -> Result<()> {
    let wait = wait_before(TELLS_OF_EXEC);
    scopes(env, &program("marks_exec.c"), &["self", "5", wait], &[])?.expect_code(0).map(drop)
}

/// A thread other than the first one executes a program, and the first one is gone.
pub(crate) fn markers_over_exec_of_a_thread(env: &Env) -> Result<()> {
    // The exec ends the others.
    let wait = wait_before(TELLS_OF_EXIT);
    let arguments = ["thread", "5", wait];
    scopes(env, &program("marks_exec.c"), &arguments, &["--follow"])?.expect_code(0).map(drop)
}

pub(crate) fn markers_over_fork(env: &Env) -> Result<()> {
    for how in ["fork", "vfork"] {
        for (children, options) in [("alone", &[][..]), ("followed", &["--follow"])] {
            let arguments = [how, "7", children];
            scopes(env, &program("marks_fork.c"), &arguments, options)?.expect_code(0)?;
        }
    }
    Ok(())
}

/// Recursion, early ends, `continue`, `break`, `goto`, `return`, and longjmp, which leaves scopes
/// without their end.
pub(crate) fn markers_in_all_flows(env: &Env) -> Result<()> {
    scopes(env, &program("marks_flow.c"), &["100"], &[])?.expect_code(0).map(drop)
}

pub(crate) fn markers_in_signal_handlers(env: &Env) -> Result<()> {
    let (signals, pause) = (env.scaled(20_000), if env.slower > 1 { "4000" } else { "40" });
    let arguments = [&*signals, pause];
    scopes(env, &program("marks_signals.c"), &arguments, &ROOM)?.expect_code(0).map(drop)
}

pub(crate) fn markers_under_exceptions(env: &Env) -> Result<()> {
    scopes(env, &program("marks_throw.cpp"), &[], &[])?.expect_code(0).map(drop)
}
