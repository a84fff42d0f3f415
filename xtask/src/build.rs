//! `cargo xtask build`: builds target/release/ctrace, and fails without the eBPF programs inside.

use crate::progress::{self, Done};
use crate::setup::{self, COMPILERS};
use crate::{machine, paths, symbols};
use anyhow::{Result, anyhow, bail};
use std::path::Path;
use std::process::Command;
use std::thread;

/// The limit of a released binary without its line tables.
const MOST_BYTES: u64 = 20_000_000;

const BINARY: &[&str] = &["--locked", "--package", "ctrace", "--bin", "ctrace"];

/// The options of the build for users of a checkout.
const RELEASE: &[&str] = &["--release"];

/// The options of the build for packages.
pub(crate) const PACKAGED: &[&str] = &["--profile", "packaged"];

/// The same for a program that needs no library. musl reads accounts without loading the host's
/// name services, which a static glibc could not do safely.
pub(crate) const PACKAGED_ALONE: &[&str] = &["--profile", "packaged", "--target", paths::MUSL];

/// Returns the command that builds the binary with these options.
pub(crate) fn command(options: &[&str]) -> Command {
    let mut command = paths::cargo();
    command.arg("build").args(BINARY).args(options);
    command
}

/// Builds the release binary, with its line tables beside it. Fails if it lacks the eBPF object.
pub(crate) fn release() -> Result<()> {
    built("release build", &mut release_command(), &paths::ctrace())
}

/// Returns the command of the build for this machine. The linker folds functions of the same code. The
/// relocations of the binary take more than a megabyte unless it packs them, and a C library can read
/// them then from this version on.
fn release_command() -> Command {
    const FOLDS: &str = "-Clink-arg=-Wl,--icf=all";
    const PACKS: &str = "-Clink-arg=-Wl,-z,pack-relative-relocs";
    let mut command = paths::cargo();
    command.arg("rustc").args(BINARY).args(RELEASE).arg("--");
    if machine::linker_takes(FOLDS) {
        command.arg(FOLDS);
    }
    if machine::glibc().is_some_and(|version| version >= (2, 36)) {
        command.arg(PACKS);
    }
    command
}

/// Builds the binaries for packages. Fails if one is larger than promised.
pub(crate) fn packaged() -> Result<()> {
    built("build for packages", &mut command(PACKAGED), &paths::packaged())?;
    built("static build for packages", &mut command(PACKAGED_ALONE), &paths::packaged_alone())?;
    ensure_small(&paths::packaged())?;
    ensure_small(&paths::packaged_alone())
}

/// Builds the release binary while what it needs is installed: most crates need none of it.
pub(crate) fn release_with_setup(no_install: bool) -> Result<()> {
    if no_install || setup::missing(COMPILERS).is_empty() {
        setup::ensure(COMPILERS, no_install)?;
        return release();
    }
    std::fs::create_dir_all(paths::target().join("xtask"))?;
    let installing = tempfile::NamedTempFile::new_in(paths::target().join("xtask"))?;
    let mut early = release_command();
    early.env("CARGO_BUILD_JOBS", (cpus() + 1).to_string());
    // The build script of ctrace waits while this file is there. It is the job beyond the CPUs.
    early.env("CTRACE_BPF_AFTER", installing.path());
    thread::scope(|scope| {
        let build = scope.spawn(|| progress::run("release build", &mut early));
        let installed = setup::ensure(COMPILERS, false);
        installing.close()?;
        // Its outcome is that of the build below.
        build.join().map(drop).map_err(|_| anyhow!("the release build panicked"))?;
        installed
    })?;
    release()
}

fn cpus() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

fn built(stage: &str, command: &mut Command, binary: &Path) -> Result<()> {
    holds_programs(&progress::must(stage, command)?, binary)?;
    symbols::split_off(binary)
}

fn ensure_small(binary: &Path) -> Result<()> {
    let bytes = std::fs::metadata(binary)?.len();
    if bytes > MOST_BYTES {
        bail!("{} has {bytes} bytes, more than {MOST_BYTES}", binary.display());
    }
    Ok(())
}

fn holds_programs(build: &Done, binary: &Path) -> Result<()> {
    if machine::holds_bpf_object(binary) {
        return Ok(());
    }
    let why = build.output.lines().find(|line| line.contains("eBPF")).map(str::trim);
    bail!(
        "{} has no eBPF programs inside{}: run `cargo xtask setup`",
        binary.display(),
        why.map(|line| format!(" ({line})")).unwrap_or_default()
    )
}

/// Builds everything that tests run, including ctrace with its eBPF programs.
pub(crate) fn for_tests() -> Result<()> {
    let done = progress::must("build", &mut tests())?;
    holds_programs(&done, &paths::tested())
}

/// Returns the command that builds all tests, and the programs that they run.
pub(crate) fn tests() -> Command {
    let mut command = workspace();
    command.arg("--tests");
    command
}

/// Returns the command that builds tests of the workspace, without a selection. It always selects
/// the whole workspace: other package selections have other features, and would build crates again.
fn workspace() -> Command {
    let mut command = paths::cargo();
    command.args(["test", "--locked", "--workspace", "--no-run"]);
    command
}

/// Builds with plain stable Rust. That binary must report at once what it lacks.
pub(crate) fn without_bpf() -> Result<()> {
    let mut command = workspace();
    // This is the smallest selection that includes the program.
    command.args(["--test", "kernel_door"]).env("CTRACE_BPF_CARGO", "none");
    progress::must("build without a BPF toolchain", &mut command)?;
    let binary = paths::tested();
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
    Ok(())
}

pub(crate) fn main() -> Result<()> {
    release()?;
    println!("{}", paths::ctrace().display());
    Ok(())
}
