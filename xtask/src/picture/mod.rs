//! `cargo xtask picture`: draws the README's pictures from a small recording: a report, and the timeline. The
//! gate draws them again, so they always show what ctrace prints and draws.

mod timeline;

use crate::{machine, paths};
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
    for (name, drawn) in pictures(&paths::tested())? {
        let file = paths::root().join(name);
        std::fs::write(&file, drawn)?;
        println!("{}", file.display());
    }
    Ok(())
}

/// Fails if a picture is not what this ctrace prints or draws.
pub(crate) fn check(ctrace: &Path) -> Result<()> {
    for (name, drawn) in pictures(ctrace)? {
        let kept = std::fs::read_to_string(paths::root().join(name)).context(name)?;
        ensure!(kept == drawn, "{name} is stale: run `cargo xtask picture`");
    }
    Ok(())
}

/// Draws the pictures. Without Chromium there is no timeline among them.
fn pictures(ctrace: &Path) -> Result<Vec<(&'static str, String)>> {
    let mut pictures = vec![("docs/screen.svg", screen(ctrace)?)];
    match machine::which("chromium") {
        Some(_) => pictures.push(("docs/timeline.svg", timeline::draw(ctrace, &recording())?)),
        None => {
            eprintln!("skipped: docs/timeline.svg is drawn by chromium, which is not installed")
        }
    }
    Ok(pictures)
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

fn screen(ctrace: &Path) -> Result<String> {
    let prompt = "$ sudo ctrace run -f '*' -- ./demo\n";
    let mut command = Command::new(ctrace);
    command.args(["report", "--color", "always"]).arg(recording());
    command.env("COLUMNS", COLUMNS.to_string()).env("LC_ALL", "C.UTF-8").env("TZ", "UTC");
    let output = command.output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let screen = String::from_utf8(output.stdout)?;
    Ok(Term::new().render_svg(&format!("{prompt}{screen}")))
}
