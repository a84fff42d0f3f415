//! `cargo xtask picture`: draws the README's picture from a small recording. The gate draws it again,
//! so it always shows what ctrace prints.

use crate::paths;
use anstyle_svg::Term;
use anyhow::{Context, Result, ensure};
use clap::Args;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

const COLUMNS: usize = 108;

#[derive(Args, Debug)]
pub(crate) struct Options {
    /// Record the demo program anew, too (needs root)
    #[arg(long)]
    record: bool,
}

pub(crate) fn main(options: &Options) -> Result<()> {
    if options.record {
        record()?;
    }
    std::fs::write(picture(), draw(&paths::tested())?)?;
    println!("{}", picture().display());
    Ok(())
}

/// Fails if the picture is not what this ctrace prints.
pub(crate) fn check(ctrace: &Path) -> Result<()> {
    let kept = std::fs::read_to_string(picture()).context("docs/screen.svg")?;
    ensure!(kept == draw(ctrace)?, "docs/screen.svg is stale: run `cargo xtask picture`");
    Ok(())
}

fn picture() -> PathBuf {
    paths::root().join("docs/screen.svg")
}

fn recording() -> PathBuf {
    paths::root().join("docs/demo.ctrace")
}

fn record() -> Result<()> {
    // The recording has the folder of the program, and its own command line.
    let folder = tempfile::tempdir()?;
    std::fs::copy(crate::demo::program()?, folder.path().join("demo"))?;
    let mut command = Command::new(paths::tested());
    command.arg0("ctrace").args(["record", "-f", "*", "-o", "demo.ctrace"]);
    command.args(["--user", "root", "--", "./demo", "0.5"]).current_dir(&folder);
    ensure!(command.status()?.success(), "the demo program could not be recorded");
    std::fs::copy(folder.path().join("demo.ctrace"), recording())?;
    Ok(())
}

fn draw(ctrace: &Path) -> Result<String> {
    let prompt = "$ sudo ctrace run -f '*' -- ./demo\n";
    let mut command = Command::new(ctrace);
    command.args(["report", "--color", "always"]).arg(recording());
    command.env("COLUMNS", COLUMNS.to_string()).env("LC_ALL", "C.UTF-8").env("TZ", "UTC");
    let output = command.output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let screen = String::from_utf8(output.stdout)?;
    Ok(Term::new().render_svg(&format!("{prompt}{screen}")))
}
