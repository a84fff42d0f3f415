//! The page of the timeline in a browser: its script while zooming, what moves before an answer is there, and
//! how soon pictures of random places are drawn.

use super::frames::{limit, script, times};
use super::recording::Made;
use super::server::memory;
use super::sweep::views;
use crate::bench::Row;
use crate::browser::{Reports, Seen};
use crate::paths;
use crate::timeline::{Server, page_with};
use anyhow::{Result, bail};

/// Pictures of random places.
pub(super) const VIEWS: usize = 200;

pub(super) fn rows(recording: &Made) -> Result<Vec<Row>> {
    let reports = Reports::listen()?;
    let script = script(&reports, &views(recording.length, VIEWS), include_str!("page.js"))?;
    let folder = page_with(&script, recording.beside("page"))?;
    let server = Server::with_page(&paths::ctrace(), &recording.file(), &folder)?;
    let (report, browser) = match reports.of(&server.url, limit(recording))? {
        Seen::Report(report, browser) => (report, browser),
        Seen::Failed(why) => bail!("the page: {why}"),
    };
    let (now, _) = memory(&server)?;
    let row = |what: &str, measured: String| Row::new(recording.row(what), measured);
    let scripts = times(&report, "scripts");
    let (p50, p99) = (scripts.at(0.5), scripts.at(0.99));
    let [first, loaded] =
        ["first", "loaded"].map(|key| report[key].as_f64().unwrap_or(f64::NAN) / 1e3);
    let (size, shown) = (&report["size"], &report["rows"]);
    let (moved, held) = (report["moved"].as_u64(), report["held"].as_u64());
    Ok(vec![
        row(
            "the page, opened",
            format!(
                "first picture after {first:.1} s, exact after {loaded:.1} s, {browser} MiB of the browser, {now} MiB of the server"
            ),
        ),
        row(
            &format!("the page, script time a frame while zooming, {shown} rows in {size} pixels"),
            scripts.told(),
        )
        .goal("p50 at most 4 ms, p99 at most 8 ms", p50 <= 4.0 && p99 <= 8.0),
        row("the page, time from frame to frame", times(&report, "frames").told()),
        row(
            "the page, frames that move without a new answer",
            format!("{} of {}", moved.unwrap_or(0), held.unwrap_or(0)),
        )
        .goal("all", moved.is_some() && moved == held),
        row("the page, first picture of a random place", times(&report, "firsts").told()),
        row("the page, exact picture of a random place", times(&report, "lasts").told()),
    ])
}
