//! The truth about the target `wakers.c`, in which known functions end each other's waits.

use crate::report::Report;
use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// The functions that wait: how often at most, for what, and who ends that.
const WAKERS: [(&str, u64, &str, &str); 4] = [
    ("takes_lock", 5, "[blocked: futex]", "gives_lock (helper)"),
    ("reads_pipe", 7, "[blocked: read]", "writes_pipe (writer)"),
    ("awaits", 9, "[blocked: futex]", "tells (teller)"),
    ("naps", 11, "[blocked: sleep]", "[interrupt]"),
];

/// The functions to trace.
pub const FUNCTIONS: [&str; 7] =
    ["takes_lock", "reads_pipe", "awaits", "naps", "gives_lock", "writes_pipe", "tells"];

/// Checks that each function waited, and that only who should has ended its waits.
pub fn check(report: &Report) -> Result<()> {
    let rows = report.0["wakers"]["rows"].as_array().context("no wakers")?;
    let name = |index: &Value| {
        let index = index.as_u64().and_then(|index| usize::try_from(index).ok());
        index.and_then(|index| report.0["functions"][index]["name"].as_str())
    };
    for (function, most, wait, waker) in WAKERS {
        let rows = rows.iter().filter(|row| name(&row["function"]) == Some(function));
        let (own, others): (Vec<_>, Vec<_>) = rows.partition(|row| row["waker"] == waker);
        let waits = own.iter().filter(|row| name(&row["wait"]) == Some(wait));
        let waits: u64 = waits.filter_map(|row| row["waits"].as_u64()).sum();
        ensure!((1..=most).contains(&waits), "{function}: {waits} by {waker}, {others:?}");
        // On hosted machines, the kernel may hide interrupts on top of the machine's own threads.
        let may_be_hidden = |row: &&&Value| row["waker"] == "[unknown]";
        let wrong = others.iter().filter(|row| waker != "[interrupt]" || !may_be_hidden(row));
        ensure!(wrong.count() == 0, "{function}: {others:?}");
    }
    Ok(())
}
