//! Tracy's search for what to draw, on the same recordings and places. Tracy itself cannot be built here, so an
//! example of ctrace-core has its search and its zones of 22 bytes.

use super::recording::{Made, example};
use super::sweep::{Times, views};
use crate::bench::{Row, line, number, output};
use anyhow::Result;
use std::fmt::Write;

const VIEWS: usize = 1_000;
/// Bytes of a zone and of its list, about. More than the machine has are not tried.
const OF_CALL: u64 = 48;

pub(super) fn rows(recording: &Made) -> Result<(Vec<Row>, bool)> {
    let what = recording.row("Tracy's search over the sweep");
    let free = free_memory();
    if recording.calls.saturating_mul(OF_CALL) > free {
        let why =
            format!("not loaded: all zones are in memory, of which {} GiB are free", free >> 30);
        return Ok((vec![Row::new(what, why)], false));
    }
    let mut text = String::new();
    for (from, to) in views(recording.length, VIEWS) {
        let _ = writeln!(text, "{from} {to}");
    }
    let file = recording.beside("views");
    std::fs::write(&file, text)?;
    let printed = output("Tracy's search", example(&["fold"]).arg(recording.file()).arg(file))?;
    let times = line(&printed, "times")?.split(' ').filter_map(|word| word.parse().ok()).collect();
    let times = Times::new(times);
    let (seconds, memory) = (number(&printed, "zones", " s ")?, number(&printed, "zones", " MiB")?);
    let row = |what: &str, measured: String| Row::new(recording.row(what), measured);
    Ok((
        vec![
            Row::new(what, times.told()),
            row("Tracy's zones", format!("{seconds:.1} s to make, {memory} MiB")),
        ],
        true,
    ))
}

/// Returns the memory that is available, in bytes.
fn free_memory() -> u64 {
    let text = std::fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"));
    let kib: Option<u64> = line.and_then(|line| line.trim().strip_suffix(" kB")?.parse().ok());
    kib.unwrap_or(0) << 10
}
