//! The script that measures any page, and rows of what it reports.

use super::recording::Made;
use super::sweep::Times;
use crate::bench::Row;
use crate::browser::{Reports, Seen};
use anyhow::Result;
use serde_json::Value;
use std::time::Duration;

/// Returns the script that measures a page at these places: what all pages share, then that of this one.
pub(super) fn script(reports: &Reports, views: &[(u64, u64)], own: &str) -> Result<String> {
    let views: Vec<[u64; 2]> = views.iter().map(|(from, to)| [*from, *to]).collect();
    let views = serde_json::to_string(&views)?;
    let (report, shared) = (reports.script()?, include_str!("frames.js"));
    Ok(format!("const VIEWS = {views};\n{report}\n{shared}\n{own}"))
}

/// Returns how long a page may take to load a recording and to be measured.
pub(super) fn limit(recording: &Made) -> Duration {
    Duration::from_secs((180 + recording.calls / 100_000).min(900))
}

/// Returns the times of a name.
pub(super) fn times(report: &Value, name: &str) -> Times {
    let times = report[name].as_array().into_iter().flatten();
    Times::new(times.filter_map(Value::as_f64).collect())
}

/// Returns rows about another tool's page, and whether it could load the recording.
pub(super) fn of_peer(recording: &Made, name: &str, seen: Seen) -> (Vec<Row>, bool) {
    let row = |what: &str, measured: String| {
        Row::new(recording.row(&format!("{name}, {what}")), measured)
    };
    let (report, memory) = match seen {
        Seen::Report(report, memory) => (report, memory),
        Seen::Failed(why) => {
            let why = why.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "/");
            return (vec![row("opened", format!("could not: {why}"))], false);
        }
    };
    let loaded = report["loaded"].as_f64().unwrap_or(f64::NAN) / 1e3;
    let mut rows = vec![
        row("opened", format!("after {loaded:.1} s, {memory} MiB of the browser")),
        row("script time a frame while zooming", times(&report, "scripts").told()),
        row("time from frame to frame", times(&report, "frames").told()),
    ];
    if report["lasts"].is_array() {
        rows.push(row("picture of a random place", times(&report, "lasts").told()));
    }
    (rows, true)
}
