//! Tests programs and libraries built in many ways, with one runtime or several.

use super::scopes;
use crate::cases::objects::since_late;
use crate::env::Env;
use crate::targets::{Build, program};
use crate::trace::Trace;
use anyhow::{Context, Result, ensure};
use std::time::Duration;

pub(super) fn linked_program() -> Build {
    program("marks_linked.c").with("libmarked.c")
}

pub(super) fn rust_program() -> Build {
    program("marks_rust.rs").flags(["-O"])
}

pub(super) fn linked_rust_program() -> Build {
    rust_program().with("libmarked.c")
}

/// Returns programs that leave scopes in all ways.
pub(super) fn unusual_programs() -> Vec<Build> {
    let flags = |flags: &[&str]| program("marks_flow.c").flags(flags.iter().copied());
    vec![
        program("marks_flow.c").stripped(),
        flags(&["-O2", "-static-pie"]),
        flags(&["-O2", "-static", "-fcf-protection=none"]).stripped(),
        flags(&["-O1", "-no-pie", "-fno-pie"]),
        flags(&["-O0"]),
        flags(&["-Os", "-flto", "-Wl,--gc-sections", "-ffunction-sections"]),
    ]
}

pub(crate) fn markers_in_unusual_programs(env: &Env) -> Result<()> {
    for build in unusual_programs() {
        scopes(env, &build, &["100"], &[])?.expect_code(0)?;
    }
    Ok(())
}

pub(crate) fn markers_of_rust(env: &Env) -> Result<()> {
    scopes(env, &rust_program(), &["300"], &[])?.expect_code(0).map(drop)
}

/// Two runtimes in one program: two of C, and one of Rust and C each.
pub(crate) fn markers_of_two_runtimes(env: &Env) -> Result<()> {
    scopes(env, &linked_program(), &["10000"], &[])?.expect_code(0)?;
    scopes(env, &linked_rust_program(), &["300"], &[])?.expect_code(0).map(drop)
}

/// The library is closed and opened again while it is traced.
pub(crate) fn markers_of_an_opened_library(env: &Env) -> Result<()> {
    let library = env.targets.get(&program("libmarked.c"))?;
    let library = library.to_str().context("path is text")?;
    let traced = scopes(env, &program("marks_dl.c"), &[library, "12", "300"], &[])?;
    traced.expect_code(0)?.report()?.expect_note(&["libmarked.so", since_late(env)])
}

/// A program that overwrites its marker memory loses only its own data: a report comes, and its
/// numbers add up.
pub(crate) fn markers_scribbled_over(env: &Env) -> Result<()> {
    let path = env.targets.get(&program("marks_scribble.c"))?;
    for what in ["slots", "header", "magic", "sites", "list", "all"] {
        let traced = Trace::run(env)?
            .program(&path, [what, "300"])
            .finish()
            .and_then(|traced| traced.expect_code(0))
            .with_context(|| what.to_owned())?;
        let output = &traced.finished.stdout;
        ensure!(output.contains("survived"), "{what}: the target said {output}");
        let report = traced.report()?;
        report.check_sums().with_context(|| what.to_owned())?;
        let told = report.loss("decode_errors") + report.loss("events") + report.loss("late");
        let calls = report.expect("work")?.calls();
        let is_whole = calls == 300 * 200 && told == 0;
        // ctrace does not read the sites, nor the list of a program that it started.
        let is_harmless = ["sites", "list"].contains(&what);
        ensure!(is_whole == is_harmless, "{what}: {calls} calls, {}", report.losses());
    }
    Ok(())
}

/// The list of buffers is endless.
pub(crate) fn markers_in_an_endless_list(env: &Env) -> Result<()> {
    use crate::process::Running;
    use std::process::Command;
    let mut command = Command::new(env.targets.get(&program("marks_scribble.c"))?);
    let target = Running::start_ready(command.args(["list", "1", "wait"]))?;
    let traced = Trace::attach(env, target.pid())?
        .args(["-d", "0.3"])
        .limit(Duration::from_secs(30))
        .finish()?
        .expect_code(0)?;
    traced.report()?.check_sums()
}
