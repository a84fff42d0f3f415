//! `cargo xtask build`: target/release/ctrace, with the eBPF programs inside or not at all.

use crate::{machine, paths, progress};
use anyhow::{Result, bail};

/// Builds the release binary; fails when the eBPF object is not in it.
pub(crate) fn release() -> Result<()> {
    let mut command = paths::cargo();
    command.args(["build", "--release", "--locked", "--package", "ctrace", "--bin", "ctrace"]);
    let done = progress::must("release build", &mut command)?;
    if machine::holds_bpf_object(&paths::ctrace()) {
        return Ok(());
    }
    let why = done.output.lines().find(|line| line.contains("eBPF")).map(str::trim);
    bail!(
        "{} has no eBPF programs inside{}: run `cargo xtask setup`",
        paths::ctrace().display(),
        why.map(|line| format!(" ({line})")).unwrap_or_default()
    )
}

pub(crate) fn main() -> Result<()> {
    release()?;
    println!("{}", paths::ctrace().display());
    Ok(())
}
