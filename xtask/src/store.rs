//! Builds `ctrace-store`, which has a workspace of its own: see probe-user/store/Cargo.toml.

use crate::{build, paths, progress};
use anyhow::{Context, Result};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

pub(crate) const NAME: &str = "ctrace-store";
pub(crate) const MANIFEST: &str = "probe-user/store/Cargo.toml";

/// Returns cargo's command for it. Its target directory is its own, so that other builds go on beside it.
pub(crate) fn cargo(verb: &str) -> Command {
    let mut command = paths::cargo();
    command.args([verb, "--locked", "--manifest-path", MANIFEST]);
    command.env("CARGO_TARGET_DIR", target());
    command
}

fn target() -> PathBuf {
    paths::target().join("store")
}

/// Returns the program that is released for hosts with a C library.
pub(crate) fn packaged() -> PathBuf {
    target().join("packaged").join(NAME)
}

/// Returns the program that is released for all hosts.
pub(crate) fn packaged_alone() -> PathBuf {
    target().join(paths::MUSL).join("packaged").join(NAME)
}

/// Returns the program that tests use. The daemon looks for it beside ctrace.
pub(crate) fn tested() -> PathBuf {
    paths::tested().with_file_name(NAME)
}

/// Builds the programs for packages.
pub(crate) fn build_packaged() -> Result<()> {
    for (stage, options) in [
        ("build of ctrace-store for packages", build::PACKAGED),
        ("static build of ctrace-store for packages", build::PACKAGED_ALONE),
    ] {
        progress::must(stage, cargo("build").args(options))?;
    }
    Ok(())
}

/// Builds the program for tests, and puts it beside ctrace.
pub(crate) fn build_for_tests() -> Result<()> {
    progress::must("build of ctrace-store", &mut cargo("build"))?;
    copy(&target().join("debug").join(NAME), &tested())
}

/// Replaces a file as a whole: a test may run it.
fn copy(from: &Path, to: &Path) -> Result<()> {
    let folder = to.parent().context("a program has a folder")?;
    std::fs::create_dir_all(folder)?;
    let new = tempfile::NamedTempFile::new_in(folder)?;
    std::fs::copy(from, new.path()).with_context(|| from.display().to_string())?;
    // The daemon starts none that others can write.
    std::fs::set_permissions(new.path(), std::fs::Permissions::from_mode(0o755))?;
    new.persist(to)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_has_the_version_of_the_program() {
        let manifest = std::fs::read_to_string(paths::root().join(MANIFEST)).expect("it is there");
        let version = format!("\nversion = \"{}\"\n", crate::dist::VERSION);
        assert!(manifest.contains(&version), "{MANIFEST} has not{version}");
    }
}
