//! `cargo xtask test`: runs all checks, the cheapest failures first. It sets the machine up, runs
//! all possible checks, and reports the skipped ones with reasons.
//!
//! Each stage names the faults that it finds. The usual run is the gate: it asks each question
//! once. `--all` repeats questions that rarely have another answer. `--quick` leaves out slow
//! stages.

mod cargo;
mod containers;
mod headers;
mod lint;
mod live;
mod packages;
mod programs;
mod store;

use crate::setup::{self, COMPILERS, EVERYTHING, Need};
use crate::summary::{Counts, Outcome, Stage as Ended, Summary};
use crate::{build, fuzz, machine, paths, picture, vm};
use anyhow::{Result, bail};
use clap::Args;
use std::time::Instant;

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Print what would be installed instead of installing it
    #[arg(long)]
    no_install: bool,
    /// Run only the stage of this name, or all whose name contains it (repeatable)
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
    /// Run what takes a short time on a built tree
    #[arg(long)]
    quick: bool,
    /// Run every check with every kernel and link, and fuzz for real
    #[arg(long, conflicts_with = "quick")]
    all: bool,
    /// Show the stages and what each is there to find
    #[arg(long)]
    list: bool,
}

/// The extent of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Extent {
    Quick,
    Gate,
    All,
}

impl Options {
    fn extent(&self) -> Extent {
        match (self.quick, self.all) {
            (true, _) => Extent::Quick,
            (_, true) => Extent::All,
            _ => Extent::Gate,
        }
    }
}

type Run = fn(&Options) -> Result<(Outcome, Counts)>;

/// One part of the test run.
struct Stage {
    name: &'static str,
    /// Faults that this stage finds and no earlier one.
    finds: &'static str,
    /// The smallest run that includes it.
    from: Extent,
    run: Run,
}

const fn stage(name: &'static str, from: Extent, run: Run, finds: &'static str) -> Stage {
    Stage { name, finds, from, run }
}

/// Groups of stages that run side by side: tests and emulated CPUs wait often.
const GROUPS: &[&[Stage]] = &[
    &[stage(
        "setup of compilers",
        Extent::Gate,
        |it| setup(it, COMPILERS),
        "a machine that lacks them",
    )],
    &[
        stage("format", Extent::Quick, lint::format, "code that rustfmt would change"),
        stage("format of the eBPF programs", Extent::Quick, lint::format_ebpf, "the same there"),
        // Packages are unpacked while compilers work.
        stage("setup", Extent::Gate, |it| setup(it, EVERYTHING), "a machine that lacks tools"),
        stage(
            "build",
            Extent::Quick,
            build_for_tests,
            "code that does not compile, and a binary without its eBPF programs",
        ),
        stage(
            "uploads to stores",
            Extent::Gate,
            store::build_and_test,
            "files of tables that an object store loses, has twice or in part; credentials in a log",
        ),
    ],
    &[
        stage(
            "unit tests",
            Extent::Quick,
            cargo::unit_tests,
            "wrong results of any part that needs no kernel; inputs that once broke a fuzz target",
        ),
        stage(
            "examples in documentation",
            Extent::Gate,
            cargo::examples_in_documentation,
            "examples that do not compile, or do not do what they say",
        ),
        stage(
            "picture",
            Extent::Quick,
            |_| picture::check(&paths::tested()).map(|()| PASSED),
            "a picture in the README that shows another screen than ctrace prints",
        ),
    ],
    &[
        stage(
            "vm-test on 6.1",
            Extent::Gate,
            |options| vm(|| vm::run("6.1", &[], options.extent())),
            "programs that the verifier of an old kernel refuses; perf links, and what such a \
             kernel tells of processes",
        ),
        stage(
            "vm-test on 6.12",
            Extent::Gate,
            |options| vm(|| vm::run("6.12", &[], options.extent())),
            "the same with multi links, the best that this kernel has",
        ),
        stage(
            "service under systemd",
            Extent::Gate,
            |_| vm(vm::service::run),
            "rights, limits and signals that the daemon has as a service",
        ),
    ],
    &[
        stage(
            "live tests",
            Extent::Quick,
            live::tests,
            "wrong counts and times of real programs on this kernel, harm to them, other commands; \
             what a hostile file, target, user or signal can do to ctrace, to others and the host",
        ),
        // It takes the time in which they wait.
        stage(
            "clippy",
            Extent::Quick,
            lint::clippy,
            "mistakes and unsafe code that lints know; code that needs more than stable Rust",
        ),
    ],
    &[
        stage(
            "tests that run alone",
            Extent::Gate,
            live::alone,
            "what ctrace does where every probe of the machine is slow; breakpoints that it leaves",
        ),
        // These need one processor, and the tests beside them wait.
        stage(
            "packages",
            Extent::Gate,
            packages::run,
            "packages that lack files; eBPF programs that depend on where they are built",
        ),
        stage(
            "clippy of the eBPF programs",
            Extent::Gate,
            lint::clippy_ebpf,
            "mistakes in the programs that lints know, with their own compiler",
        ),
    ],
    &[
        stage(
            "every case with multi links",
            Extent::All,
            |_| live::every_case("multi"),
            "a case that depends on the kind of link although the table says it does not",
        ),
        stage(
            "every case with perf links",
            Extent::All,
            |_| live::every_case("perf"),
            "the same with perf links",
        ),
    ],
    &[stage(
        "other runtimes",
        Extent::All,
        live::other_runtimes,
        "harm to languages that unwind or switch stacks in their own ways",
    )],
    &[stage(
        "clippy of ctrace-store",
        Extent::All,
        store::clippy,
        "the same mistakes in the program that sends tables",
    )],
    &[stage(
        "queries in Spark",
        Extent::All,
        live::spark,
        "queries for Spark that it does not take, or that have other numbers than ctrace",
    )],
    &[stage(
        "uploads to Azure",
        Extent::All,
        live::azure,
        "requests that Azure's own emulator does not take; tables that differ there",
    )],
    &[stage("fuzz", Extent::All, |_| fuzz::run(), "inputs that nobody thought of")],
    &[stage(
        "build without a BPF toolchain",
        Extent::All,
        |_| build::without_bpf().map(|()| PASSED),
        "a build that fails without the second compiler; a binary that does not say what it lacks",
    )],
    &[stage(
        "installed packages",
        Extent::All,
        containers::run,
        "optimized code that does not build; packages that need more than they say, or do not trace",
    )],
    &[stage(
        "build systems",
        Extent::All,
        headers::run,
        "headers that CMake, pkg-config or Meson do not find",
    )],
];

const PASSED: (Outcome, Counts) = (Outcome::Passed, Counts { passed: 0, failed: 0, skipped: 0 });

fn all() -> impl Iterator<Item = &'static Stage> {
    GROUPS.iter().copied().flatten()
}

pub(crate) fn main(options: &Options) -> Result<()> {
    if options.list {
        all().for_each(|stage| println!("{}\n    finds {}", stage.name, stage.finds));
        return Ok(());
    }
    let is_named = |stage: &Stage, part: &String| match all().any(|stage| stage.name == part) {
        true => stage.name == part,
        false => stage.name.contains(&**part),
    };
    let wanted = |stage: &&Stage| match options.only.is_empty() {
        true => stage.from <= options.extent(),
        false => options.only.iter().any(|part| is_named(stage, part)),
    };
    if !all().any(|stage| wanted(&stage)) {
        let names: Vec<&str> = all().map(|stage| stage.name).collect();
        bail!("no stage is named like that; there are: {}", names.join(", "));
    }
    let mut summary = Summary::default();
    for group in GROUPS {
        std::thread::scope(|scope| {
            let stages = group.iter().filter(wanted);
            let running: Vec<_> = stages.map(|stage| scope.spawn(|| stage.run(options))).collect();
            for stage in running {
                match stage.join() {
                    Ok(stage) => summary.add(stage),
                    Err(panic) => std::panic::resume_unwind(panic),
                }
            }
        });
    }
    println!("\n{}", summary.render().trim_end());
    if summary.failed() {
        bail!("not all passed; logs are in {}", paths::target().join("xtask").display());
    }
    Ok(())
}

impl Stage {
    fn run(&self, options: &Options) -> Ended {
        let start = Instant::now();
        let (outcome, counts) = (self.run)(options)
            .unwrap_or_else(|error| (Outcome::Failed(format!("{error:#}")), Counts::default()));
        Ended { name: self.name.into(), outcome, seconds: start.elapsed().as_secs_f64(), counts }
    }
}

fn skipped(why: impl Into<String>) -> Result<(Outcome, Counts)> {
    Ok((Outcome::Skipped(why.into()), Counts::default()))
}

/// Installing may be impossible here. Stages that lack something report it.
fn setup(options: &Options, needs: &[Need]) -> Result<(Outcome, Counts)> {
    let missing = setup::missing(needs);
    if missing.is_empty() {
        return Ok(PASSED);
    }
    if options.no_install {
        setup::ensure(needs, true)?;
        return skipped("--no-install");
    }
    match setup::ensure(needs, false) {
        Ok(()) => Ok(PASSED),
        Err(error) if !machine::is_root() => skipped(format!("{error:#}")),
        Err(error) => Err(error),
    }
}

/// Without a BPF toolchain, tests that trace skip themselves.
fn build_for_tests(_: &Options) -> Result<(Outcome, Counts)> {
    if machine::bpf_compiler().is_none() || machine::which("bpf-linker").is_none() {
        return skipped("no BPF toolchain: `cargo xtask setup` installs one");
    }
    build::for_tests().map(|()| PASSED)
}

/// Runs a stage in a virtual machine, which needs a binary that can trace.
fn vm(run: impl Fn() -> Result<(Outcome, Counts)>) -> Result<(Outcome, Counts)> {
    let ctrace = paths::tested();
    if !machine::holds_bpf_object(&ctrace) {
        return skipped(format!("no {} with eBPF programs inside", paths::shown(&ctrace)));
    }
    run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stage_names_are_unique() {
        let names: Vec<_> = all().map(|stage| stage.name).collect();
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].contains(name));
        }
    }
}
