//! The views shared with reports that have no chosen row: histogram, threads, notes.

use super::{marked, paragraph};
use crate::{
    top::{
        data::figures::{Figures, FromHistograms},
        model::{Model, narrow::narrow},
    },
    ui::{
        Style, ViewOptions, loss_line, notes,
        output::style::Tone,
        text::{names, units::counted},
        views::{self, Context, hist},
        warnings,
    },
};
use ctrace_core::report::render::rows::RowChoice;
use ratatui::text::Line;

/// The limit of drawn threads. Scrolling ends there.
const MOST: usize = 1_000;

/// Explains why there are no rows.
pub(super) fn nothing(model: &Model, figures: &Figures, width: usize) -> Vec<Line<'static>> {
    if !model.filter.is_empty() {
        let text = format!("No function that was called matches '{}'.", model.filter);
        return paragraph(&text, width);
    }
    let what = notes::nothing_called(&figures.report).into_iter().next();
    let then = "They are shown once they are called. Those that the compiler inlined never are.";
    let lines = what.into_iter().chain([then.to_owned()]);
    lines.flat_map(|line| paragraph(&line, width)).collect()
}

/// Returns notes on losses and on the numbers.
pub(super) fn notes(figures: &Figures, width: usize) -> Vec<Line<'static>> {
    let mut texts = facts(figures);
    texts.push(loss_line(&figures.report.loss));
    texts.iter().flat_map(|text| paragraph(text, width)).collect()
}

pub(super) fn facts(figures: &Figures) -> Vec<String> {
    let mut facts = warnings(&figures.report);
    // Otherwise a note states their accuracy.
    let is_fine = figures.from_histograms == FromHistograms::Nothing;
    facts.retain(|text| is_fine || !text.starts_with("approximate"));
    facts.extend(notes::notes(&figures.report, true, &[]));
    facts
}

/// Draws the durations of the chosen function.
pub(super) fn histogram(
    model: &Model,
    figures: &Figures,
    width: usize,
    height: usize,
) -> Vec<Line<'static>> {
    let Some(place) = model.selected_place() else { return Vec::new() };
    let function = &figures.report.functions[place];
    let about = format!(" · {}", counted(function.timed, "timed call", "timed calls"));
    let room = width.saturating_sub(names::width(&about));
    let name = names::shorten(&names::label(function), room.max(8));
    let mut text = format!("{}{about}\n", Tone::Title.mark(&name));
    match figures.report.histogram_of(place) {
        // Leave room for two headings. A gap between calls also takes rows.
        Some(histogram) => {
            let rows = height.saturating_sub(2).max(4);
            text += &hist::bars(&style(width), &histogram.durations, function, rows);
        }
        None => text += "No call with a known duration ended in this time.\n",
    }
    marked(&text, model.shades)
}

/// Draws the threads.
pub(super) fn threads(model: &Model, figures: &Figures, width: usize) -> Vec<Line<'static>> {
    let narrowed = (!model.filter.is_empty()).then(|| narrow(&figures.report, &model.filter, true));
    let report = narrowed.as_ref().unwrap_or(&figures.report);
    if report.threads.is_empty() {
        return paragraph("Nothing to show here.", width);
    }
    let options = ViewOptions { fixed: true, ..ViewOptions::default() };
    let selection = RowChoice { top: Some(MOST), ..RowChoice::default() };
    let style = style(width);
    let context = Context { report, options: &options, selection: &selection, style: &style };
    let text = (views::THREADS.draw)(&context);
    // The first line repeats the view's name.
    let lines: Vec<&str> = text.lines().skip(1).collect();
    marked(&lines.join("\n"), model.shades)
}

/// Returns a style with the least readable width. What exceeds the window is cut off.
pub(super) fn style(width: usize) -> Style {
    Style { width: Some(width.max(40)), ..Style::default() }
}
