//! Moves line tables to their own file: they are three quarters of the binary, and only debuggers
//! and backtraces read them.

use crate::{machine, progress};
use anyhow::Result;
use std::path::Path;
use std::process::Command;

/// Moves symbols and line tables from a binary to `NAME.debug` beside it, where debuggers look.
///
/// Without binutils the binary stays as it is.
pub(crate) fn split_off(binary: &Path) -> Result<()> {
    if machine::which("objcopy").is_none() {
        eprintln!("objcopy (binutils) is missing: {} keeps its symbols", binary.display());
        return Ok(());
    }
    let debug = binary.with_extension("debug");
    let stripped = binary.with_extension("stripped");
    let mut keep = Command::new("objcopy");
    keep.args(["--only-keep-debug", "--compress-debug-sections=zlib"]).args([binary, &debug]);
    progress::must("line tables", &mut keep)?;
    let mut link = std::ffi::OsString::from("--add-gnu-debuglink=");
    link.push(&debug);
    let mut strip = Command::new("objcopy");
    strip.arg("--strip-all").arg(link).args([binary, &stripped]);
    progress::must("strip", &mut strip)?;
    // Cargo's own copy is a hard link to the binary. If that changed, cargo would build it again.
    std::fs::rename(&stripped, binary)?;
    Ok(())
}
