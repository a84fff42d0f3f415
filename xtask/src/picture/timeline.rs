//! Draws docs/timeline.svg: the page of `ctrace ui` in Chromium, with canvases that note down what it draws.

use crate::browser::{Reports, Seen};
use crate::timeline::{Server, page_with};
use anyhow::{Context, Result, bail};
use std::path::Path;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(120);

pub(super) fn draw(ctrace: &Path, recording: &Path) -> Result<String> {
    let reports = Reports::listen()?;
    let folder = tempfile::tempdir()?;
    let script = reports.script()? + include_str!("timeline.js");
    let page = page_with(&script, folder.path().join("page"))?;
    let server = Server::with_page(ctrace, recording, &page)?;
    match reports.of(&server.url, LIMIT)? {
        Seen::Report(report, _) => Ok(report["svg"].as_str().context("a picture")?.to_owned()),
        Seen::Failed(why) => bail!("the page of the timeline: {why}"),
    }
}
