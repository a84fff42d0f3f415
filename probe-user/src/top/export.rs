//! Writes the shown data into a file as text, JSON or CSV. It has every row and column, with the
//! filter and order of the screen.

use crate::files::{FileError, Owner, Place};
use crate::top::{
    data::figures::{Figures, FromHistograms, WITHIN_PERCENT},
    format::Format,
    lines::{cell, losses, stretch, title},
    model::{
        Model, View,
        columns::{TopColumn, shown},
        narrow::narrow,
    },
};
use crate::ui::{
    self, Style, ViewOptions,
    table::grid::{self, ColumnGroup},
    text::names,
    views,
};
use anyhow::Context;
use ctrace_core::report::render::{csv, json, rows::RowChoice};
use rustix::fs::OFlags;
use std::{
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};

/// Writes a new file into the folder, and returns its path.
pub(super) fn write(model: &Model, format: Format, folder: &Path) -> anyhow::Result<PathBuf> {
    const MOST: u32 = 10_000;
    let figures = model.figures().context("there is nothing to write yet")?;
    let text = content(model, figures, format)?;
    let pid = figures.report.target.pid.map_or(0, |pid| pid.0);
    for number in 1..=MOST {
        let path = folder.join(format!("ctrace-top-{pid}-{number}.{}", format.extension()));
        // Existing files and links are left alone.
        match Place::find(&path, Owner::Caller)?.create_new(OFlags::WRONLY) {
            Err(FileError::Io { error, .. }) if error.kind() == ErrorKind::AlreadyExists => {}
            opened => {
                let written = opened?.write_all(text.as_bytes());
                return written
                    .map(|()| path.clone())
                    .with_context(|| format!("cannot write {}", path.display()));
            }
        }
    }
    anyhow::bail!("there are {MOST} exports in {} already", folder.display())
}

fn content(model: &Model, figures: &Figures, format: Format) -> anyhow::Result<String> {
    let mut report = narrow(&figures.report, &model.filter, model.view == View::Threads);
    let view = match model.view {
        View::Functions | View::Notes => &views::SUMMARY,
        View::Histogram => &views::HIST,
        View::Tree => &views::TREE,
        View::Paths => &views::PATHS,
        View::Threads => &views::THREADS,
    };
    let sort = match model.view {
        View::Functions | View::Histogram => Some(model.sort.column.report_name().to_owned()),
        _ => None,
    };
    Ok(match format {
        Format::Json => json::to_pretty(&report),
        Format::Csv => {
            csv::render(&report, view.table, &RowChoice { sort, ..RowChoice::default() })?
        }
        Format::Text if model.view == View::Functions => table(model, figures),
        Format::Text => {
            // The report would claim more accuracy than these durations have. A note states it.
            report.approximate &= figures.from_histograms == FromHistograms::Nothing;
            let options = ViewOptions { views: vec![view.into()], sort, ..ViewOptions::default() };
            ui::render_table(&report, &options, &Style::default())?
        }
    })
}

/// Returns the table of functions with all its columns.
fn table(model: &Model, figures: &Figures) -> String {
    let rows = model.rows();
    let report = &figures.report;
    let mut columns: Vec<grid::GridColumn> = shown(usize::MAX, model.sort.column, false)
        .into_iter()
        .map(|column| {
            let cells = rows.iter().map(|&place| cell(model, figures, column, place));
            grid::GridColumn::right(column.heading(), cells)
        })
        .collect();
    let names = rows.iter().map(|&place| names::label(&report.functions[place]));
    columns.push(grid::GridColumn::left(TopColumn::Name.heading(), names));
    let mut out = format!("{}\n{}\n", title(model), stretch(model));
    if model.before().is_some() {
        out += "The columns show changes since the numbers were frozen.\n";
    }
    if figures.from_histograms != FromHistograms::Nothing {
        out += &format!("~: durations within {WITHIN_PERCENT} %, costs of probes estimated\n");
    }
    let table = grid::draw(&[&ColumnGroup::untitled(columns)]);
    out += &Style::default().resolve(&format!("\n{table}\n"));
    out + &losses(model) + "\n"
}
