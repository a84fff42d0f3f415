//! speedscope's page on the same recording, which `ctrace export` writes for it.

use super::files::{Files, Pages};
use super::frames::{limit, of_peer, script};
use super::peers;
use super::recording::Made;
use crate::bench::Row;
use crate::browser::Reports;
use anyhow::Result;

pub(super) fn rows(recording: &Made) -> Result<(Vec<Row>, bool)> {
    let Some(folder) = peers::speedscope()? else {
        return Ok((vec![Row::new("speedscope", "there is no npm to fetch it")], false));
    };
    let reports = Reports::listen()?;
    let script = script(&reports, &[], include_str!("speedscope.js"))?;
    let trace = ("trace.json", recording.export("speedscope")?);
    let files = Files::serve(Pages { folder, script, trace, answers: &[] })?;
    let url = format!("{}#profileURL=/trace.json", files.url());
    Ok(of_peer(recording, "speedscope 1.25", reports.of(&url, limit(recording))?))
}
