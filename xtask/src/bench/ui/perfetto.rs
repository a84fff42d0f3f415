//! Perfetto's page on the same recording, which `ctrace export` writes for it.

use super::files::{Files, Pages};
use super::frames::{limit, of_peer, script};
use super::page::VIEWS;
use super::peers;
use super::recording::Made;
use super::sweep::views;
use crate::bench::Row;
use crate::browser::Reports;
use anyhow::Result;

pub(super) fn rows(recording: &Made) -> Result<(Vec<Row>, bool)> {
    let Some(folder) = peers::perfetto()? else {
        return Ok((vec![Row::new("Perfetto's page", "there is no pip3 to fetch it")], false));
    };
    let reports = Reports::listen()?;
    let script = script(&reports, &views(recording.length, VIEWS), include_str!("perfetto.js"))?;
    // It asks for these and then opens the trace by itself.
    let answers = &[("vizviewer_info", "{}"), ("file_info", "{}")];
    let trace = ("localtrace", recording.export("perfetto")?);
    let files = Files::serve(Pages { folder, script, trace, answers })?;
    let seen = reports.of(&files.url(), limit(recording))?;
    Ok(of_peer(recording, "Perfetto 52", seen))
}
