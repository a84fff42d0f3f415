//! Runs the tests of the package `ctrace-tests`: they trace real programs on this machine's kernel.

use super::{Options, cargo};
use crate::summary::{Counts, Outcome};
use crate::{build, paths, progress};
use anyhow::Result;
use std::process::Command;

/// Prefix of the files of live tests that do what an attacker would.
const ATTACK: &str = "attack_";

pub(super) fn tests(_: &Options) -> Result<(Outcome, Counts)> {
    // Without root or BPF the harness's own tests still run. The live ones skip themselves.
    let names = test_names()?;
    let others = names.iter().filter(|name| !name.starts_with(ATTACK));
    let chosen = others.flat_map(|name| ["--test", name]);
    run("live tests", ["--lib", "--bins"].into_iter().chain(chosen))
}

pub(super) fn attacks(_: &Options) -> Result<(Outcome, Counts)> {
    let names = test_names()?;
    let attacks = names.iter().filter(|name| name.starts_with(ATTACK));
    run("attacks", attacks.flat_map(|name| ["--test", name]))
}

/// Returns the names of the package's files of tests.
fn test_names() -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(paths::root().join("tests/tests"))? {
        let path = entry?.path();
        let is_test =
            path.extension().is_some_and(|ext| ext == "rs") || path.join("main.rs").exists();
        if let Some(name) = path.file_stem().and_then(|stem| stem.to_str()).filter(|_| is_test) {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn run<'a>(stage: &str, chosen: impl IntoIterator<Item = &'a str>) -> Result<(Outcome, Counts)> {
    // A part that is run alone must test the last change.
    build::tested()?;
    let mut command = paths::cargo();
    command.args(["test", "--locked", "--package", "ctrace-tests", "--no-fail-fast"]);
    command.args(chosen).env("CTRACE_BIN", paths::tested());
    let done = progress::run(stage, &mut command)?;
    cargo::tell_skips(stage, &done);
    cargo::judge(&done)
}

/// Runs the whole table of cases with one kind of link.
pub(super) fn every_case(link: &str) -> Result<(Outcome, Counts)> {
    let cases = paths::target().join("debug/cases");
    let targets = paths::target().join("cases");
    progress::must("build the targets", Command::new(&cases).arg("build").arg(&targets))?;
    let mut command = Command::new(&cases);
    command.args(["run", "--link", link, "--ctrace"]).arg(paths::tested());
    command.arg("--targets").arg(&targets);
    let done = progress::run(&format!("every case with {link} links"), &mut command)?;
    let counts = Counts::of_cases(&done.output);
    let failed = done.output.lines().filter(|line| line.starts_with("failed "));
    failed.for_each(|line| eprintln!("{line}"));
    match done.status.success() {
        true => Ok((Outcome::Passed, counts)),
        false => Ok((Outcome::Failed(format!("see {}", done.log.display())), counts)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each file of live tests is in one of the two stages, under cargo's name for it.
    #[test]
    fn live_tests_are_found() {
        let names = test_names().expect("there are some");
        for name in ["attack_daemon", "attack_limits", "daemon_control", "tools"] {
            assert!(names.iter().any(|found| found == name), "{name}: {names:?}");
        }
    }
}
