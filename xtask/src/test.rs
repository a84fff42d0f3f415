//! `cargo xtask test`: everything there is to check, in the order in which failures are cheapest.
//! It sets the machine up, runs what can be run here, and says what it skipped and why.

use crate::machine::{self, BpfCompiler, which};
use crate::progress::{self, Done};
use crate::setup::{self, EVERYTHING};
use crate::summary::{Counts, Outcome, Stage, Summary};
use crate::{build, paths, skips, vm};
use anyhow::{Result, bail};
use clap::Args;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Print what would be installed instead of installing it
    #[arg(long)]
    no_install: bool,
    /// Run only the stages whose name contains this (repeatable)
    #[arg(long, value_name = "NAME")]
    only: Vec<String>,
}

type Run = fn(&Options) -> Result<(Outcome, Counts)>;

/// What is in a group runs side by side: a test waits often, and so does an emulated processor.
const GROUPS: &[&[(&str, Run)]] = &[
    &[("setup", setup)],
    &[("format", format)],
    &[("format of the eBPF programs", format_ebpf)],
    &[("clippy", clippy)],
    &[("clippy of the eBPF programs", clippy_ebpf)],
    &[("build without a BPF toolchain", build_without_bpf)],
    &[("unit tests", unit_tests), ("release build", release_build)],
    &[("fuzz", |_| crate::fuzz::run())],
    &[
        ("live tests", live_tests),
        ("vm-test on 6.1", |_| vm_test(|| vm::run("6.1", &[]))),
        ("vm-test on 6.12", |_| vm_test(|| vm::run("6.12", &[]))),
        ("service under systemd", |_| vm_test(vm::service::run)),
    ],
    // They kill ctrace, fill what can be filled, and leave little memory: others would suffer.
    &[("attacks", attacks)],
];

fn all() -> impl Iterator<Item = &'static (&'static str, Run)> {
    GROUPS.iter().copied().flatten()
}

pub(crate) fn main(options: &Options) -> Result<()> {
    let mut summary = Summary::default();
    let wanted = |(name, _): &&(&str, Run)| {
        options.only.is_empty() || options.only.iter().any(|part| name.contains(&**part))
    };
    if !all().any(|stage| wanted(&stage)) {
        let names: Vec<&str> = all().map(|(name, _)| *name).collect();
        bail!("no stage is named like that; there are: {}", names.join(", "));
    }
    for group in GROUPS {
        std::thread::scope(|scope| {
            let stages = group.iter().filter(wanted);
            let running: Vec<_> =
                stages.map(|stage| scope.spawn(|| run_stage(stage, options))).collect();
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

fn run_stage((name, run): &(&str, Run), options: &Options) -> Stage {
    let start = Instant::now();
    let (outcome, counts) = run(options)
        .unwrap_or_else(|error| (Outcome::Failed(format!("{error:#}")), Counts::default()));
    Stage { name: (*name).into(), outcome, seconds: start.elapsed().as_secs_f64(), counts }
}

const PASSED: (Outcome, Counts) = (Outcome::Passed, Counts { passed: 0, failed: 0, skipped: 0 });

fn skipped(why: impl Into<String>) -> Result<(Outcome, Counts)> {
    Ok((Outcome::Skipped(why.into()), Counts::default()))
}

/// Installing may be impossible here; the stages that need what is missing say so themselves.
fn setup(options: &Options) -> Result<(Outcome, Counts)> {
    let missing = setup::missing(EVERYTHING);
    if missing.is_empty() {
        return Ok(PASSED);
    }
    if options.no_install {
        setup::ensure(EVERYTHING, true)?;
        return skipped("--no-install");
    }
    match setup::ensure(EVERYTHING, false) {
        Ok(()) => Ok(PASSED),
        Err(error) if !machine::is_root() => skipped(format!("{error:#}")),
        Err(error) => Err(error),
    }
}

fn format(_: &Options) -> Result<(Outcome, Counts)> {
    progress::must("format", paths::cargo().args(["fmt", "--all", "--check"]))?;
    Ok(PASSED)
}

fn ebpf_dir() -> std::path::PathBuf {
    paths::root().join("probe-ebpf")
}

fn format_ebpf(_: &Options) -> Result<(Outcome, Counts)> {
    if !ebpf_dir().join("Cargo.toml").exists() {
        return skipped("there is no probe-ebpf/Cargo.toml");
    }
    let mut command = paths::cargo();
    command.current_dir(ebpf_dir()).args(["fmt", "--check"]);
    progress::must("format of the eBPF programs", &mut command)?;
    Ok(PASSED)
}

fn clippy(_: &Options) -> Result<(Outcome, Counts)> {
    let mut command = paths::cargo();
    command.args(["clippy", "--locked", "--workspace", "--all-targets", "--", "-D", "warnings"]);
    progress::must("clippy", &mut command)?;
    Ok(PASSED)
}

/// With the clippy of the compiler that builds them.
fn clippy_ebpf(_: &Options) -> Result<(Outcome, Counts)> {
    if !ebpf_dir().join("Cargo.toml").exists() {
        return skipped("there is no probe-ebpf/Cargo.toml");
    }
    let mut command;
    match machine::bpf_compiler() {
        Some(BpfCompiler::Rustup(name)) => {
            if machine::output_of("rustup", &["run", &name, "cargo", "clippy", "-V"]).is_none() {
                return skipped(format!("{name} has no clippy"));
            }
            command = Command::new("rustup");
            command.args(["run", &name, "cargo", "clippy", "-Z", "build-std=core"]);
        }
        Some(BpfCompiler::System(cargo)) => {
            let bin = cargo.parent().unwrap_or(Path::new("/usr/bin"));
            if !bin.join("cargo-clippy").is_file() {
                return skipped(format!("{} has no clippy beside it", cargo.display()));
            }
            command = Command::new(&cargo);
            command.arg("clippy").env("RUSTC_BOOTSTRAP", "1");
            // Before rustup's shims, which would choose another compiler.
            let path = std::env::var_os("PATH").unwrap_or_default();
            let path = std::iter::once(bin.to_owned()).chain(std::env::split_paths(&path));
            command.env("PATH", std::env::join_paths(path)?);
        }
        Some(BpfCompiler::Given(cargo)) => {
            return skipped(format!("CTRACE_BPF_CARGO names {}", cargo.display()));
        }
        None => return skipped("there is no compiler for eBPF programs"),
    }
    command.args(["--locked", "--release", "--target", "bpfel-unknown-none"]);
    command.args(["--", "-D", "warnings"]).current_dir(ebpf_dir());
    command.env_remove("RUSTUP_TOOLCHAIN").env_remove("CARGO").env_remove("RUSTC");
    command.env_remove("CARGO_ENCODED_RUSTFLAGS").env_remove("LD_LIBRARY_PATH");
    command.env("CARGO_TARGET_DIR", paths::target().join("ebpf-clippy"));
    command.env("RUSTFLAGS", "--cfg=bpf_target_arch=\"x86_64\"");
    progress::must("clippy of the eBPF programs", &mut command)?;
    Ok(PASSED)
}

/// Plain stable Rust must do, and the binary must say at once what it lacks.
fn build_without_bpf(_: &Options) -> Result<(Outcome, Counts)> {
    let mut command = paths::cargo();
    command.args(["build", "--locked", "--package", "ctrace"]).env("CTRACE_BPF_CARGO", "none");
    progress::must("build without a BPF toolchain", &mut command)?;
    let binary = paths::target().join("debug/ctrace");
    if machine::holds_bpf_object(&binary) {
        bail!("{} has eBPF programs inside although it was built without", binary.display());
    }
    let output = Command::new(&binary).args(["run", "-f", "*", "--", "/bin/true"]).output()?;
    let message = String::from_utf8_lossy(&output.stderr);
    if output.status.code() != Some(125) || !message.starts_with("ctrace:") {
        bail!(
            "a binary without eBPF programs should exit with 125 and say so in a line that starts \
             `ctrace:`; it gave {} and: {message}",
            output.status
        );
    }
    Ok(PASSED)
}

fn unit_tests(_: &Options) -> Result<(Outcome, Counts)> {
    let mut command = paths::cargo();
    command.args([
        "test",
        "--locked",
        "--workspace",
        "--exclude",
        "ctrace-tests",
        "--no-fail-fast",
        // What they skip they say in what libtest captures.
        "--",
        "--show-output",
    ]);
    let done = progress::run("unit tests", &mut command)?;
    tell_skips("unit tests", &done);
    judge(&done)
}

fn release_build(_: &Options) -> Result<(Outcome, Counts)> {
    if machine::bpf_compiler().is_none() || which("bpf-linker").is_none() {
        return skipped("no BPF toolchain: `cargo xtask setup` installs one");
    }
    build::release()?;
    Ok(PASSED)
}

/// What the files of live tests begin with that do what an attacker would.
const ATTACK: &str = "attack_";

fn live_tests(_: &Options) -> Result<(Outcome, Counts)> {
    // Without root or BPF the harness's own tests still run; the live ones skip themselves.
    let names = live_test_names()?;
    let others = names.iter().filter(|name| !name.starts_with(ATTACK));
    let chosen = others.flat_map(|name| ["--test", name]);
    run_live("live tests", ["--lib", "--bins"].into_iter().chain(chosen))
}

fn attacks(_: &Options) -> Result<(Outcome, Counts)> {
    let names = live_test_names()?;
    let attacks = names.iter().filter(|name| name.starts_with(ATTACK));
    run_live("attacks", attacks.flat_map(|name| ["--test", name]))
}

/// Of the package's files of tests.
fn live_test_names() -> Result<Vec<String>> {
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

fn run_live<'a>(
    stage: &str,
    chosen: impl IntoIterator<Item = &'a str>,
) -> Result<(Outcome, Counts)> {
    let mut command = paths::cargo();
    command.args(["test", "--locked", "--package", "ctrace-tests", "--no-fail-fast"]);
    command.args(chosen).env("CTRACE_BIN", paths::ctrace());
    let done = progress::run(stage, &mut command)?;
    tell_skips(stage, &done);
    judge(&done)
}

fn tell_skips(stage: &str, done: &Done) {
    for (why, count) in skips::reasons(&done.output) {
        eprintln!("{stage}: {count} SKIPPED: {why}");
    }
}

fn judge(done: &Done) -> Result<(Outcome, Counts)> {
    let counts = Counts::of_cargo_test(&done.output);
    if done.status.success() {
        return Ok((Outcome::Passed, counts));
    }
    eprintln!("{}", failures(&done.output));
    let why = format!("{}; see {}", done.status, done.log.display());
    Ok((Outcome::Failed(why), counts))
}

/// The parts of a test run's output that tell of failures; its end when there are none.
fn failures(output: &str) -> String {
    let mut shown = Vec::new();
    let (mut inside, mut passed) = (false, false);
    for line in output.lines() {
        if line.starts_with("failures:") {
            (inside, passed) = (true, false);
        }
        passed |= line.starts_with("successes:");
        if inside || line.starts_with("error") && !passed {
            shown.push(line);
        }
        if line.starts_with("test result:") {
            (inside, passed) = (false, false);
        }
    }
    if shown.is_empty() { progress::tail(output) } else { shown.join("\n") }
}

fn vm_test(run: impl Fn() -> Result<(Outcome, Counts)>) -> Result<(Outcome, Counts)> {
    if !machine::holds_bpf_object(&paths::ctrace()) {
        return skipped(format!("no {} with eBPF programs inside", shown(&paths::ctrace())));
    }
    run()
}

fn shown(path: &Path) -> String {
    path.strip_prefix(paths::root()).unwrap_or(path).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_cut_out_of_the_output() {
        let output = "test a ... ok\nsuccesses:\n---- a ----\nerror 5\nfailures:\n---- b ----\nwrong\nfailures:\n    b\n\ntest result: \
                      FAILED. 1 passed\nrunning 1 test\ntest result: ok.";
        let shown = failures(output);
        assert!(shown.contains("wrong") && !shown.contains("running"), "{shown}");
        assert!(!shown.contains("error 5"), "{shown}");
    }

    /// Each file of live tests is in one of the two stages, and named as cargo does.
    #[test]
    fn live_tests_are_found() {
        let names = live_test_names().expect("there are some");
        for name in ["attack_daemon", "attack_limits", "daemon_control", "tools"] {
            assert!(names.iter().any(|found| found == name), "{name}: {names:?}");
        }
    }

    #[test]
    fn stage_names_are_unique() {
        let names: Vec<_> = all().map(|(name, _)| name).collect();
        for (index, name) in names.iter().enumerate() {
            assert!(!names[..index].contains(name));
        }
    }
}
