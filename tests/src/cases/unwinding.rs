//! Frames that are left without returning, and stacks that are switched.

use super::{panic_program, traced_as_untraced};
use crate::env::{Env, Link};
use crate::targets::program;
use anyhow::{Result, ensure};

pub(super) fn longjmp(env: &Env) -> Result<()> {
    let globs = ["catcher", "dive", "leap", "after"];
    let traced = traced_as_untraced(env, &program("longjmp.c"), &["500"], &globs, &[])?;
    let report = traced.report()?;
    ensure!(
        report.expect("leap")?.ends() == (500, 0, 500, 0),
        "leap never returns, its calls, timed, untimed, open are {:?}",
        report.expect("leap")?.ends()
    );
    ensure!(
        report.expect("dive")?.ends() == (5000, 0, 5000, 0),
        "dive never returns: {:?}",
        report.expect("dive")?.ends()
    );
    let (_, timed, _, _) = report.expect("catcher")?.ends();
    ensure!(timed == 500, "catcher returns 500 times, {timed} are timed");
    Ok(())
}

pub(super) fn setjmp_kin(env: &Env) -> Result<()> {
    traced_as_untraced(env, &program("setjmp.c"), &[], &["*"], &[]).map(drop)
}

pub(super) fn other_stacks(env: &Env) -> Result<()> {
    let globs = ["interrupted", "on_alternate", "fiber_*", "schedule"];
    let traced = traced_as_untraced(env, &program("altstack.c"), &[], &globs, &[])?;
    let report = traced.report()?;
    for name in ["interrupted", "on_alternate", "fiber_step", "schedule"] {
        let (calls, timed, untimed, _) = report.expect(name)?.ends();
        ensure!(calls == timed + untimed, "{name}: {timed} timed, {untimed} untimed of {calls}");
        // Those before the function is moved to its ways out.
        if untimed > 0 {
            report.expect_note(&["passed through", "costlier probes"])?;
        }
    }
    // Without a library, only the code shows the switches.
    traced_as_untraced(env, &program("ownstack.c"), &[], &["dive", "yield_", "resume"], &[])?;
    Ok(())
}

pub(super) fn exceptions(env: &Env) -> Result<()> {
    let traced = traced_as_untraced(env, &program("throw.cpp"), &[], &["*"], &[])?;
    let (_, timed, _, _) = traced.report()?.expect("plain")?.ends();
    ensure!(timed == 300, "plain returns 300 times, {timed} are timed");
    nothing_is_inside_what_was_left(env)?;
    what_throws_has_its_time(env)
}

/// Calls that throw are not timed, but they have lasted until then: their time is not their caller's.
fn what_throws_has_its_time(env: &Env) -> Result<()> {
    let globs = ["works", "catches"];
    let traced = traced_as_untraced(env, &program("throws_late.cpp"), &[], &globs, &[])?;
    let report = traced.report()?;
    let (works, catches) = (report.expect("works")?, report.expect("catches")?);
    let (calls, timed, ..) = works.ends();
    ensure!(calls == 60 && timed <= 30, "30 of 60 calls throw, {timed} of {calls} are timed");
    if env.link == Link::Session {
        let [own, callers] = [works, catches].map(|it| it.integer("self_ns"));
        let (own, callers) = (own?, callers?);
        // While a function is moved to its ways out, nothing tells how long its calls last.
        let known = 30 + timed;
        ensure!(own >= known * 2_000_000, "{known} calls of 2 ms and more took {own} ns");
        ensure!(callers < own / 4, "the caller has {callers} ns, they {own} ns");
    }
    Ok(())
}

/// `request` catches and leaves by a jump, and `reply` begins at the same stack pointer after it.
fn nothing_is_inside_what_was_left(env: &Env) -> Result<()> {
    let globs = ["parse", "request", "reply"];
    let traced = traced_as_untraced(env, &program("catches.cpp"), &[], &globs, &[])?;
    let paths = traced.report()?.paths();
    ensure!(
        paths == [vec!["reply"], vec!["request"], vec!["request", "parse"]],
        "only `request` calls a function: {paths:?}"
    );
    Ok(())
}

/// No processor is free for the guard while the threads wait for it.
pub(super) fn exceptions_at_once(env: &Env) -> Result<()> {
    let globs = ["rounds*", "passer*", "thrower*", "plain"];
    traced_as_untraced(env, &program("throw_at_once.cpp"), &[], &globs, &[]).map(drop)
}

pub(super) fn panics(env: &Env) -> Result<()> {
    let globs = ["thrower", "passer", "catcher", "plain"];
    let traced = traced_as_untraced(env, &panic_program(), &[], &globs, &[])?;
    let (_, timed, _, _) = traced.report()?.expect("plain")?.ends();
    ensure!(timed == 300, "plain returns 300 times, {timed} are timed");
    Ok(())
}
