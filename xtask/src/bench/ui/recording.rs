//! Recordings that the benchmark makes. They take disk, so each is removed when it was measured.

use super::told;
use crate::bench::{Row, number, output};
use crate::{machine, paths};
use anyhow::{Context, Result, ensure};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Bytes of a call in a recording, and those that must be left on the disk.
const OF_CALL: u64 = 8;
const LEFT: u64 = 10 << 30;

/// A recording; the file ends with it.
pub(super) struct Made {
    pub(super) calls: u64,
    /// Nanoseconds from its start to its end.
    pub(super) length: u64,
    folder: tempfile::TempDir,
}

impl Made {
    /// Makes a recording of this many calls.
    pub(super) fn new(calls: u64) -> Result<Self> {
        let place = paths::target().join("bench");
        std::fs::create_dir_all(&place)?;
        let free = free_bytes(&place)?;
        ensure!(
            calls.saturating_mul(OF_CALL).saturating_add(LEFT) <= free,
            "{} calls may take {} GB, and {} GB are free in {}, of which 10 GB are left alone",
            told(calls),
            calls * OF_CALL / 1_000_000_000,
            free / 1_000_000_000,
            place.display()
        );
        let mut made = Self { calls, length: 0, folder: tempfile::tempdir_in(place)? };
        let stage = format!("recording of {} calls", told(calls));
        let printed = output(&stage, example(&["make"]).arg(made.file()).arg(calls.to_string()))?;
        made.length = number(&printed, "made", " ns long")? as u64;
        Ok(made)
    }

    pub(super) fn file(&self) -> PathBuf {
        self.folder.path().join("made.ctrace")
    }

    /// Returns the place of another file, which ends with the recording, too.
    pub(super) fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Returns a text that begins a row.
    pub(super) fn row(&self, what: &str) -> String {
        format!("{} calls: {what}", told(self.calls))
    }

    /// Exports it for another tool.
    pub(super) fn export(&self, format: &str) -> Result<PathBuf> {
        let file = self.beside(format);
        let mut command = Command::new(paths::ctrace());
        command.args(["export", "--format", format]).arg(self.file()).arg("-o").arg(&file);
        output(&format!("export to {format}"), &mut command)?;
        Ok(file)
    }

    /// Forgets what the kernel has of the files, so that they are read from the disk.
    pub(super) fn cool(&self) -> Result<()> {
        let kept = self.beside("cache/ctrace/timelines");
        let kept = std::fs::read_dir(kept).into_iter().flatten().flatten().map(|file| file.path());
        [self.file()].into_iter().chain(kept).try_for_each(|file| forget(&file))
    }

    /// Forgets the timeline that a server has kept.
    pub(super) fn forget_timeline(&self) -> Result<()> {
        let cache = self.beside("cache");
        if cache.exists() { Ok(std::fs::remove_dir_all(cache)?) } else { Ok(()) }
    }

    /// Waits until a server has kept the timeline, and returns its size in bytes.
    pub(super) fn kept_timeline(&self) -> Result<u64> {
        const TRIES: u32 = 600;
        for _ in 0..TRIES {
            let kept = self.beside("cache/ctrace/timelines");
            let files = std::fs::read_dir(kept).into_iter().flatten().flatten();
            let whole =
                |file: &std::fs::DirEntry| file.path().extension() == Some("timeline".as_ref());
            if let Some(file) = files.into_iter().find(whole) {
                return Ok(file.metadata()?.len());
            }
            std::thread::sleep(std::time::Duration::from_millis(100));
        }
        anyhow::bail!("the server kept no timeline")
    }

    /// Measures the pyramid.
    pub(super) fn tiles(&self) -> Result<Vec<Row>> {
        let printed = output("tiles", example(&["tiles"]).arg(self.file()))?;
        let bytes = number(&printed, "built", " bytes of tiles")?;
        Ok(vec![
            Row::new(self.row("pyramid"), format!("{bytes:.3} bytes a call"))
                .goal("at most 0.5 bytes a call", bytes <= 0.5),
        ])
    }
}

/// Returns the command of the example of ctrace-core.
pub(super) fn example(arguments: &[&str]) -> Command {
    let mut command = paths::cargo();
    command.args(["run", "--release", "--package", "ctrace-core", "--example", "timeline"]);
    command.arg("--").args(arguments);
    command
}

fn forget(file: &Path) -> Result<()> {
    let mut of = std::ffi::OsString::from("of=");
    of.push(file);
    let mut command = Command::new("dd");
    command.args(["oflag=nocache", "conv=notrunc,fdatasync", "count=0", "status=none"]);
    output("forget the file", command.arg(of).arg("if=/dev/null")).map(drop)
}

fn free_bytes(place: &Path) -> Result<u64> {
    let place = place.to_str().context("a path in UTF-8")?;
    let told = machine::output_of("df", &["--output=avail", "--block-size=1", place]);
    let told = told.context("df does not say how much is free")?;
    told.lines().last().and_then(|line| line.trim().parse().ok()).context("a number of df")
}
