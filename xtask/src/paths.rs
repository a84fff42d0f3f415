//! Paths in the repository and in cargo's target directory.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Returns the root of the repository.
pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new("."))
}

/// Returns cargo's target directory. It is always inside the repository, so that the documented
/// path of the binary is correct.
pub(crate) fn target() -> PathBuf {
    root().join("target")
}

pub(crate) fn ctrace() -> PathBuf {
    target().join("release/ctrace")
}

/// Rust's name of targets whose programs need no library.
pub(crate) const MUSL: &str = "x86_64-unknown-linux-musl";

/// Returns the binary that is released for hosts with a C library.
pub(crate) fn packaged() -> PathBuf {
    target().join("packaged/ctrace")
}

/// Returns the binary that is released for all hosts: it needs no library.
pub(crate) fn packaged_alone() -> PathBuf {
    target().join(MUSL).join("packaged/ctrace")
}

/// Returns the ctrace that tests run: built like the tests, so that a gate builds everything once.
pub(crate) fn tested() -> PathBuf {
    target().join("debug/ctrace")
}

/// Returns the program that runs the table of checks.
pub(crate) fn cases() -> PathBuf {
    target().join("debug/cases")
}

/// Returns a path as people would type it in the repository.
pub(crate) fn shown(path: &Path) -> String {
    path.strip_prefix(root()).unwrap_or(path).display().to_string()
}

/// Returns the cargo that runs this chore, in the repository's root.
pub(crate) fn cargo() -> Command {
    in_root(Command::new(cargo_path()))
}

/// Returns a cargo that takes only the CPU time that others leave.
pub(crate) fn cargo_behind_others() -> Command {
    let mut command = Command::new("nice");
    command.args(["-n", "19"]).arg(cargo_path());
    in_root(command)
}

fn cargo_path() -> OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"))
}

fn in_root(mut command: Command) -> Command {
    command.current_dir(root()).env("CARGO_TARGET_DIR", target());
    // Children must not inherit cargo's variables about this package.
    for (name, _) in std::env::vars_os() {
        if name.to_str().is_some_and(|name| name.starts_with("CARGO_PKG_")) {
            command.env_remove(name);
        }
    }
    command.env_remove("CARGO_MANIFEST_DIR").env_remove("CARGO_MANIFEST_PATH");
    command
}
