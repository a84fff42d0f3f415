//! `cargo xtask demo`: goes from a fresh machine to tables, in one command.

use crate::machine::no_live_tests;
use crate::{build, paths, progress};
use anyhow::{Context, Result, bail};
use clap::Args;
use std::path::{Path, PathBuf};
use std::process::Command;

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Print what would be installed instead of installing it
    #[arg(long)]
    no_install: bool,
    /// Seconds the demo program runs
    #[arg(long, default_value_t = 3)]
    seconds: u32,
}

pub(crate) fn main(options: &Options) -> Result<()> {
    build::release_with_setup(options.no_install)?;
    let program = program()?;
    if let Some(why) = no_live_tests() {
        bail!("the demo traces with eBPF and cannot do so here: {why}");
    }
    let mut command = Command::new(paths::ctrace());
    command.args(["run", "-f", "*"]).arg("--").arg(&program).arg(options.seconds.to_string());
    eprintln!("$ target/release/ctrace run -f '*' -- {} {}", program.display(), options.seconds);
    let status = command.current_dir(paths::root()).status()?;
    if !status.success() {
        bail!("ctrace ended with {status}");
    }
    eprintln!("\nNow one of yours:  sudo target/release/ctrace attach PID -f 'some_*'");
    Ok(())
}

/// Compiles the demo program when it is older than its source.
pub(crate) fn program() -> Result<PathBuf> {
    let source = paths::root().join("tests/targets/demo.c");
    let program = paths::target().join("demo/demo");
    let modified = |path| std::fs::metadata(path).and_then(|metadata| metadata.modified());
    if modified(&program).is_ok_and(|built| modified(&source).is_ok_and(|source| source < built)) {
        return Ok(program);
    }
    compile(&program, &[])?;
    Ok(program)
}

/// Compiles the demo program with more options.
pub(crate) fn compile(program: &Path, options: &[&str]) -> Result<()> {
    std::fs::create_dir_all(program.parent().context("a program has a folder")?)?;
    let mut command = Command::new("gcc");
    command.args(["-O2", "-g", "-fcf-protection=full", "-D_GNU_SOURCE", "-pthread"]).args(options);
    command.arg(paths::root().join("tests/targets/demo.c")).arg("-o").arg(program);
    progress::must("compile the demo program", &mut command).map(drop)
}
