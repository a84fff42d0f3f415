//! Programs that execute others, fork, and end in every way.

use super::traced_as_untraced;
use crate::env::Env;
use crate::install::install;
use crate::targets::program;
use crate::trace::Trace;
use anyhow::{Context, Result, ensure};

pub(super) fn exec_of_itself(env: &Env) -> Result<()> {
    traced_as_untraced(env, &program("execself.c"), &["self", "3"], &["work"], &[]).map(drop)
}

/// The launcher, which is a ctrace, allocates, reads and executes in the library of the command.
pub(super) fn nothing_of_the_launcher(env: &Env) -> Result<()> {
    let idle = env.targets.get(&program("idle.c"))?;
    let folder = tempfile::TempDir::new()?;
    let script = folder.path().join("script");
    install(format!("#!{}\n", idle.display()).as_bytes(), &script);
    let no_arguments = &[][..];
    let eight = &["1", "22", "333", "4444", "55555", "666666", "7777777", "88888888"][..];
    for (command, arguments, options) in [
        (&idle, no_arguments, no_arguments),
        (&idle, eight, no_arguments),
        (&idle, eight, &["--follow"]),
        (&script, eight, no_arguments),
    ] {
        let traced = Trace::run(env)?
            .functions(["malloc@libc*", "read@libc*", "execve@libc*"])
            .args(options.iter().copied())
            .program(command, arguments.iter().copied())
            .finish()?
            .expect_code(0)?;
        let report = traced.report()?;
        for name in ["malloc", "read", "execve"] {
            let calls = report.expect(name)?.calls();
            ensure!(calls == 0, "{options:?} {arguments:?}: {calls} calls of {name}");
        }
        ensure!(report.loss("calls_headless") == 0, "{}", report.losses());
        report.check_lossless()?;
    }
    Ok(())
}

pub(super) fn exec_of_another_program(env: &Env) -> Result<()> {
    let other = env.targets.get(&program("longjmp.c"))?;
    let other = other.to_str().context("path is text")?;
    // A glob that matches in both programs.
    let arguments = ["other", other, "5"];
    traced_as_untraced(env, &program("execself.c"), &arguments, &["*"], &[]).map(drop)
}

pub(super) fn fork_and_vfork(env: &Env) -> Result<()> {
    let globs = ["work", "in_child"];
    let traced = traced_as_untraced(env, &program("forker.c"), &["5"], &globs, &[])?;
    let children = &traced.report()?.0["target"]["untraced_children"];
    ensure!(*children == 7, "untraced_children is {children}, not 7");
    Ok(())
}

/// Linux 6.18 turns a 5-byte nop under a probe into a call that leads nowhere in a forked child.
pub(super) fn a_fork_over_long_nops(env: &Env) -> Result<()> {
    let globs = ["five", "ten", "notrack"];
    let traced = traced_as_untraced(env, &program("nop5.c"), &["3"], &globs, &[])?;
    let report = traced.report()?;
    for name in globs {
        ensure!(report.expect(name)?.ends() == (100, 100, 0, 0), "{name} is timed");
    }
    Ok(())
}

const CRASH: &[&str] = &["work", "in_flight"];

pub(super) fn exit_code_is_the_targets(env: &Env) -> Result<()> {
    let traced = traced_as_untraced(env, &program("crash.c"), &["exit", "77"], CRASH, &[])?;
    ensure!(traced.code() == 77, "exit code {}", traced.code());
    let ends = traced.report()?.expect("in_flight")?.ends();
    ensure!(ends == (1, 0, 1, 0), "in_flight was left by exit, without returning: {ends:?}");
    Ok(())
}

pub(super) fn death_by_signal(env: &Env) -> Result<()> {
    let ends = [("segv", 139), ("kill", 137), ("abort", 134), ("term", 143)];
    // Of a fault and of a signal from outside; each takes an emulated CPU seconds.
    let ends = if env.slower > 1 { &ends[..2] } else { &ends };
    for &(how, code) in ends {
        let traced = traced_as_untraced(env, &program("crash.c"), &[how], CRASH, &[])
            .with_context(|| how.to_owned())?;
        ensure!(traced.code() == code, "{how}: exit code {}, not {code}", traced.code());
        let exit = &traced.report()?.0["target"]["exit"];
        ensure!(exit["signal"] == code - 128, "{how}: target.exit is {exit}");
    }
    Ok(())
}
