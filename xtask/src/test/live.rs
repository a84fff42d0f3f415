//! Runs the tests of the package `ctrace-tests`: they trace real programs on this machine's kernel.

use super::programs::{self, Program, Way};
use super::{Extent, Options};
use crate::summary::{Counts, Outcome};
use crate::{paths, progress};
use anyhow::Result;
use std::process::Command;

/// The prefix of test files that act as attackers.
const ATTACK: &str = "attack_";
/// The prefix of test files that disturb all others.
const ALONE: &str = "alone_";
/// Others disturb this one: it looks for breakpoints in the C library, where they have guards.
const DISTURBED: &str = "attack_heal";
/// The test files that take longest, but attacks. They start first, so that none of them runs last.
const LONGEST: &[&str] = &["kernel", "budget", "corpus", "options", "tools", "recordings"];
/// The attack that takes longest.
const LONGEST_ATTACK: &str = "attack_guard";

/// Test files that together take a minute and cover every part.
const QUICK: &[&str] =
    &["clocks", "daemon_follow", "follow", "markers", "recordings", "surroundings", "top", "views"];

/// Runs the live tests, which skip themselves without root or BPF. Most of them wait for their
/// targets.
pub(super) fn tests(options: &Options) -> Result<(Outcome, Counts)> {
    let is_chosen = |name: &str| match options.extent() {
        Extent::Quick => QUICK.contains(&name),
        _ => !name.starts_with(ALONE) && name != DISTURBED,
    };
    // In each of these rounds every kind of probes meets every moment of an attack.
    let rounds = (options.extent() == Extent::All).then_some(21);
    run("live tests", Way { at_once: 2, rounds, ..Way::default() }, is_chosen)
}

pub(super) fn alone(_: &Options) -> Result<(Outcome, Counts)> {
    let way = Way { at_once: 1, ..Way::default() };
    run("tests that run alone", way, |name| name.starts_with(ALONE) || name == DISTURBED)
}

/// Runs the tests that depend on which runtimes are installed.
pub(super) fn other_runtimes(_: &Options) -> Result<(Outcome, Counts)> {
    let way = Way { at_once: 1, ignored: true, ..Way::default() };
    run("other runtimes", way, |name| name == "attack_unwinding")
}

/// Runs the queries of a fleet's tables in the engine that takes long.
pub(super) fn spark(_: &Options) -> Result<(Outcome, Counts)> {
    let way = Way { at_once: 1, ignored: true, ..Way::default() };
    run("queries in Spark", way, |name| name == "fleet_engines")
}

/// Runs the uploads to a server that is large to install.
pub(super) fn azure(_: &Options) -> Result<(Outcome, Counts)> {
    crate::store::build_for_tests()?;
    let way = Way { at_once: 1, ignored: true, ..Way::default() };
    run("uploads to Azure", way, |name| name == "fleet_azure")
}

/// Returns whether a program holds live tests.
pub(super) fn is_live(program: &Program) -> bool {
    program.package == "ctrace-tests" && program.is_file
}

fn run(stage: &str, way: Way, chosen: impl Fn(&str) -> bool) -> Result<(Outcome, Counts)> {
    let mut programs = programs::build()?;
    programs.retain(|program| is_live(program) && chosen(&program.name));
    programs.sort_by_key(|program| place(&program.name));
    programs::run(stage, &programs, way)
}

/// Returns where a test file runs in the list, whose ends run first. Attacks are at one end: as long
/// as there are others, no two of them run side by side.
fn place(name: &str) -> usize {
    if name == LONGEST_ATTACK {
        return LONGEST.len() + 2;
    }
    if name.starts_with(ATTACK) {
        return LONGEST.len() + 1;
    }
    LONGEST.iter().position(|long| *long == name).unwrap_or(LONGEST.len())
}

/// Runs the whole table of cases with one kind of link.
pub(super) fn every_case(link: &str) -> Result<(Outcome, Counts)> {
    let cases = paths::cases();
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
