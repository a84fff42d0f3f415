//! Libraries, USDT probes, parts of functions, and instructions that carry no probe.

use super::traced_as_untraced;
use crate::env::{Env, Link};
use crate::probes::wait_until_armed;
use crate::process::Running;
use crate::report::Report;
use crate::targets::program;
use crate::trace::{Trace, Traced};
use crate::truth::Truth;
use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use std::process::Command;
use std::time::Duration;

pub(super) fn cold_parts(env: &Env) -> Result<()> {
    traced_as_untraced(env, &program("cold.cpp"), &[], &["h_*"], &[]).map(drop)
}

/// A library that is open before attaching is found by its name.
pub(super) fn opened_library(env: &Env) -> Result<()> {
    let library = env.targets.get(&program("libplug.c"))?;
    let mut command = Command::new(env.targets.get(&program("dl.c"))?);
    let target = Running::start_ready(command.arg(&library).args(["50", "wait"]))?;
    let started = Trace::attach(env, target.pid())?.function("plug_*@libplug*").start()?;
    wait_until_armed(target.pid(), &library)?;
    target.signal(Signal::USR1)?;
    let finished = target.wait(Duration::from_secs(30))?;
    ensure!(finished.shell_code() == 0, "the target was disturbed: {}", finished.stderr);
    let traced = started.wait()?.expect_code(0)?;
    let report = traced.report()?;
    for name in ["plug_work", "plug_inner"] {
        let calls = report.expect(name)?.calls();
        ensure!(calls == 50, "{name}: {calls} calls reported, 50 made");
    }
    ensure!(report.function("host_work").is_none(), "host_work was not selected");
    report.check_sums()
}

/// A library opened after attaching is armed when it is found. From then on every call counts.
pub(super) fn library_opened_after_attach(env: &Env) -> Result<()> {
    let library = env.targets.get(&program("libplug.c"))?;
    let path = env.targets.get(&program("dl.c"))?;
    let mut target = Running::start_ready(Command::new(&path).arg(&library).args(["50", "late"]))?;
    let globs = ["host_work", "plug_*@libplug*"];
    let started = Trace::attach(env, target.pid())?.functions(globs).start()?;
    wait_until_armed(target.pid(), &path)?;
    target.signal(Signal::USR1)?;
    wait_until_armed(target.pid(), &library)?;
    ensure!(target.is_running(), "it was to wait for a second signal");
    target.signal(Signal::USR1)?;
    let finished = target.wait(Duration::from_secs(30))?;
    ensure!(finished.shell_code() == 0, "the target was disturbed: {}", finished.stderr);
    let traced = started.wait()?.expect_code(0)?;
    let report = traced.report()?;
    report.expect_note(&["libplug.so", since_late(env)])?;
    Truth::parse(&finished.stdout).check_calls(report)
}

/// Guards let return probes stay. Without them, the report has a note of these words.
fn expect_kept_or(env: &Env, report: &Report, note: &[&str]) -> Result<()> {
    if env.link != Link::Session {
        return report.expect_note(note);
    }
    ensure!(report.expect_note(&["the return probes of"]).is_err(), "{:?}", report.0["notes"]);
    Ok(())
}

/// Returns how a note says from when on functions of a late library are counted. With guards, the
/// thread that loads it is held meanwhile.
pub(in crate::cases) fn since_late(env: &Env) -> &'static str {
    match env.link {
        Link::Session => "when it was loaded",
        Link::Multi | Link::Perf => "earlier calls are not counted",
    }
}

/// A library that comes late and forbids return probes: what had some is timed in another way.
pub(super) fn a_library_that_forbids_return_probes(env: &Env) -> Result<()> {
    let library = env.targets.get(&program("libswitch.c"))?;
    let path = env.targets.get(&program("dl.c"))?;
    for options in [&[][..], &["--budget", "50%"]] {
        if env.link == Link::Perf && !options.is_empty() {
            continue;
        }
        let mut command = Command::new(&path);
        let target = Running::start_ready(command.arg(&library).args(["50", "late"]))?;
        let globs = ["host_work", "plug_*@libswitch*"];
        let trace = Trace::attach(env, target.pid())?.functions(globs);
        let started = trace.args(options.iter().copied()).start()?;
        wait_until_armed(target.pid(), &path)?;
        target.signal(Signal::USR1)?;
        wait_until_armed(target.pid(), &library)?;
        target.signal(Signal::USR1)?;
        let finished = target.wait(Duration::from_secs(30))?;
        ensure!(finished.shell_code() == 0, "the target was disturbed: {}", finished.stderr);
        let traced = started.wait()?.expect_code(0)?;
        let report = traced.report()?;
        expect_kept_or(
            env,
            report,
            &["the return probes of 1 function ", "libswitch.so uses sigaltstack"],
        )?;
        Truth::parse(&finished.stdout).check_calls(report)?;
        let ends = report.expect("host_work")?.ends();
        ensure!(ends == (50, 50, 0, 0), "{options:?}: host_work is timed otherwise: {ends:?}");
    }
    Ok(())
}

/// Its thread is held until the library has its guards.
pub(super) fn a_library_that_switches_stacks_at_once(env: &Env) -> Result<()> {
    let library = env.targets.get(&program("libfiber.c"))?;
    let library = library.to_str().context("path is text")?;
    let globs = ["begin", "dive", "resume"];
    let traced = traced_as_untraced(env, &program("opened_fiber.c"), &[library], &globs, &[])?;
    traced.report()?.expect_note(&["put back", "of stacks"])
}

/// The same by a program that the command executes: it is held until the other probes are there.
pub(super) fn a_program_that_forbids_return_probes(env: &Env) -> Result<()> {
    let first = env.targets.get(&program("execself.c"))?;
    let second = env.targets.get(&program("ownids.c"))?;
    let second = second.to_str().context("path is text")?;
    for options in [&[][..], &["--follow"]] {
        let traced = Trace::run(env)?
            .functions(["work", "getuid@libc*"])
            .args(options.iter().copied())
            .program(&first, ["other", second, "77"])
            .finish()?
            .expect_code(0)?;
        let report = traced.report()?;
        expect_kept_or(env, report, &["the return probes of 2 functions "])?;
        for (name, calls) in [("work", 100), ("getuid", 77)] {
            let ends = report.expect(name)?.ends();
            ensure!(ends == (calls, calls, 0, 0), "{options:?} {name}: {ends:?}");
        }
        ensure!(report.loss("calls_headless") == 0, "{}", report.losses());
    }
    Ok(())
}

pub(super) fn usdt_probes(env: &Env) -> Result<()> {
    let traced = Trace::run(env)?
        .args(["-u", "ctdemo:*", "--frame-function", "ctdemo:tick"])
        .program(&env.targets.get(&program("usdt.c"))?, ["500"])
        .finish()?
        .expect_code(0)?;
    check_hits(&traced, 2)?;
    // A frame goes from one hit to the next.
    let frames = &traced.report()?.0["frames"];
    ensure!(frames["frames"] == 499 && frames["marks"]["unknown"] == 0, "{frames}");
    ensure!(
        traced.finished.stdout.contains("guarded 500"),
        "the semaphore was not up all the time: {}",
        traced.finished.stdout
    );
    Ok(())
}

/// Probes with values count like others, and values that a view asks for but cannot be read are
/// reported.
pub(super) fn usdt_values(env: &Env) -> Result<()> {
    let traced = Trace::run(env)?
        .args(["-u", "values:*", "--view", "calls"])
        .program(&env.targets.get(&program("usdt_values.c"))?, ["700"])
        .finish()?
        .expect_code(0)?;
    check_hits(&traced, 7)?;
    let report = traced.report()?;
    report.expect_note(&[
        "values:floating",
        "arg0 (8f@%xmm",
        "in a register that ctrace does not read",
    ])?;
    report.expect_note(&["values:places", "arg1 is not read at 1 of 2 places"])
}

/// Checks that every USDT probe was hit as often as the target says.
fn check_hits(traced: &Traced, probes: usize) -> Result<()> {
    let report = traced.report()?;
    let truth = Truth::parse(&traced.finished.stdout);
    ensure!(truth.usdt.len() == probes, "the target printed {}", traced.finished.stdout);
    for (name, calls) in &truth.usdt {
        let (_, short) = name.split_once(':').context("PROVIDER:NAME")?;
        let seen: u64 = report
            .functions()
            .filter(|function| function.0["kind"] == "usdt" && function.name().ends_with(short))
            .map(|function| function.calls())
            .sum();
        ensure!(seen == *calls, "{name}: {seen} hits reported, {calls} made");
    }
    Ok(())
}

/// A probe on an instruction with a `lock` prefix attaches and never fires. So the function must be
/// counted by other means or refused with a reason; silence would be a wrong number.
pub(super) fn an_instruction_the_kernel_refuses(env: &Env) -> Result<()> {
    let traced = Trace::run(env)?
        .function("locked_entry")
        .program(&env.targets.get(&program("locked.c"))?, [])
        .finish()?;
    if traced.code() == 125 {
        let message = &traced.finished.stderr;
        ensure!(message.starts_with("ctrace:") && message.contains("locked_entry"), "{message}");
        return Ok(());
    }
    Truth::parse(&traced.finished.stdout).check_calls(traced.report()?)
}
