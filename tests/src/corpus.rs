//! Traces everything selectable over a corpus of programs and compiler flags. The traced run must
//! print and return the same as the untraced run, and count the same.

use crate::env::Env;
use crate::process::{Finished, run};
use crate::targets::{Build, program};
use crate::trace::Trace;
use crate::truth::Truth;
use anyhow::{Context, Result, ensure};
use std::process::Command;
use std::time::Duration;

/// Sources whose output does not depend on time, with small arguments.
const SOURCES: &[(&str, &[&str])] = &[
    ("counts.c", &["2000"]),
    ("threads.c", &["300", "50"]),
    ("longjmp.c", &["100"]),
    ("setjmp.c", &[]),
    ("execself.c", &["self", "2"]),
    ("forker.c", &["3"]),
    ("nop5.c", &["3"]),
    ("altstack.c", &[]),
    ("ownstack.c", &[]),
    ("switch.c", &[]),
    ("crash.c", &["abort"]),
    ("throw.cpp", &[]),
    ("catches.cpp", &[]),
    ("cold.cpp", &[]),
];

pub const OPTIMISATIONS: [&str; 3] = ["-O1", "-O2", "-Os"];
pub const PROTECTIONS: [&str; 2] = ["-fcf-protection=full", "-fcf-protection=none"];

/// One program of the corpus.
#[derive(Clone, Debug)]
pub struct Member {
    pub build: Build,
    pub arguments: &'static [&'static str],
}

/// All C and C++ members with these flags.
pub fn members(optimisation: &str, protection: &str) -> Vec<Member> {
    SOURCES
        .iter()
        .map(|(source, arguments)| Member {
            build: program(source).flags([optimisation, protection]),
            arguments,
        })
        .collect()
}

/// Returns members built in other ways: statically linked C (the whole C library is selected),
/// optimised and plain Rust.
pub fn unusual_members() -> Vec<Member> {
    let of = |build: Build| Member { build, arguments: &[] };
    vec![
        of(program("setjmp.c").flags(["-O2", "-fcf-protection=full", "-static"])),
        of(program("switch.c").flags(["-O2", "-fcf-protection=none", "-static"])),
        of(program("switch.c").flags(["-O0", "-fcf-protection=full"])),
        of(program("throw.cpp").flags(["-O2", "-static"])),
        of(program("panic.rs").flags(["-O"])),
        of(program("panic.rs").flags(["-Copt-level=1"])),
        of(program("panic.rs").flags(["-Copt-level=s"])),
        of(program("panic.rs").flags(["-Copt-level=0"])),
    ]
}

/// Traces one member with `-f '*'` and these further options.
pub fn check(env: &Env, member: &Member, options: &[&str]) -> Result<()> {
    let path = env.targets.get(&member.build)?;
    let alone = run(Command::new(&path).args(member.arguments), Duration::from_secs(30))?;
    let traced = Trace::run(env)?
        .function("*")
        .args(options.iter().copied())
        .program(&path, member.arguments.iter().copied())
        .finish()?;
    same(&alone, &traced.finished).with_context(|| member.build.file_name())?;
    let report = traced.report().with_context(|| member.build.file_name())?;
    Truth::parse(&alone.stdout).check_calls(report).with_context(|| member.build.file_name())
}

fn same(alone: &Finished, traced: &Finished) -> Result<()> {
    ensure!(
        alone.shell_code() == traced.shell_code() && alone.stdout == traced.stdout,
        "untraced: exit {}, {}\ntraced: exit {}, {}\nstderr: {}",
        alone.shell_code(),
        alone.stdout,
        traced.shell_code(),
        traced.stdout,
        traced.stderr
    );
    Ok(())
}

/// Checks all members and reports all failures at once.
pub fn check_all(env: &Env, members: &[Member], options: &[&str]) -> Result<()> {
    let failures: Vec<String> = members
        .iter()
        .filter_map(|member| check(env, member, options).err())
        .map(|error| format!("{error:#}"))
        .collect();
    ensure!(
        failures.is_empty(),
        "{} of {} programs differ under trace:\n\n{}",
        failures.len(),
        members.len(),
        failures.join("\n\n")
    );
    Ok(())
}
