//! Tests marker scopes. Every call must arrive, however its thread, its process or ctrace comes and
//! goes.

mod around;
mod async_calls;
mod attached;
mod ends;
mod objects;
mod points;

pub(super) use around::*;
pub(super) use async_calls::async_calls_across_threads;
pub(super) use attached::*;
pub(super) use ends::*;
pub(super) use objects::*;
pub(super) use points::*;

use crate::env::{Env, kernel};
use crate::targets::{Build, program};
use crate::trace::{Trace, Traced};
use crate::truth::Truth;
use anyhow::{Context, Result};

/// Traces all scopes of a program to its end. Each must have the calls that the program counted,
/// and the program must behave as untraced.
fn scopes(env: &Env, build: &Build, arguments: &[&str], options: &[&str]) -> Result<Traced> {
    scopes_or_not(env, build, arguments, options)
        .with_context(|| format!("{} {}", build.file_name(), arguments.join(" ")))
}

fn scopes_or_not(env: &Env, build: &Build, arguments: &[&str], options: &[&str]) -> Result<Traced> {
    let traced = Trace::run(env)?
        .args(options.iter().copied())
        .program(&env.targets.get(build)?, arguments.iter().copied())
        .finish()?;
    Truth::parse(&traced.finished.stdout).check_scopes(traced.report()?)?;
    Ok(traced)
}

/// Returns the milliseconds that a program waits before a disorderly end. Kernels before this one
/// free its memory before they report its end. Then events left in its buffers are seen only if
/// there was time to look.
fn wait_before(first_that_tells: (u32, u32)) -> &'static str {
    if kernel() < first_that_tells { "1500" } else { "0" }
}

/// The first kernel that reports a process's end while its memory is there.
const TELLS_OF_EXIT: (u32, u32) = (6, 16);
/// The first kernel that does so for an exec.
const TELLS_OF_EXEC: (u32, u32) = (6, 10);

/// Programs that the cases run.
pub(super) fn builds() -> Vec<Build> {
    let mut all: Vec<Build> = [
        "marks_end.c",
        "marks_threads.c",
        "marks_exec.c",
        "marks_fork.c",
        "marks_flow.c",
        "marks_signals.c",
        "marks_throw.cpp",
        "marks_serve.c",
        "libmarked.c",
        "marks_dl.c",
        "marks_tree.c",
        "marks_slow.c",
        "marks_log.c",
        "marks_scribble.c",
        "scopes.c",
    ]
    .map(program)
    .into();
    all.extend([
        async_calls::async_program(),
        linked_program(),
        rust_program(),
        linked_rust_program(),
    ]);
    all.extend(unusual_programs());
    all
}
