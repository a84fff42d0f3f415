//! The first screen of a report that `top` leaves behind on the normal screen. The report is on all
//! that it has counted, also while the screen stood still or compared. Where there is no room, what is said below the
//! rows ends after its first line, so that the rows do not scroll away.

use crate::top::{data::sums::Sums, model::Model};
use crate::ui::{
    self, SaidBelow, Style, ViewOptions,
    output::style::Tone,
    text::{paragraph, units::counted},
};

/// The lines that the shell needs: its prompt, and the command before it.
const PROMPT: usize = 2;
/// The least and the largest number of functions.
const LEAST: usize = 5;
const MOST: usize = 40;

/// The reason why intervals are missing.
const MISSING: &str = "the terminal stood still, or the daemon did not keep them";

/// Returns the report of all intervals, if there is one. It fits a terminal of so many rows, unless
/// there are very many notes. For the offset see [`ViewOptions::epoch_offset_ns`].
pub(super) fn summary(
    model: &Model,
    style: &Style,
    height: usize,
    epoch_offset_ns: Option<i64>,
) -> Option<String> {
    let data = model.known();
    let Sums { figures, .. } = data.all()?;
    let mut report = figures.report;
    // The report would claim more accuracy than percentiles of histograms have.
    report.approximate = false;
    let accuracy = figures.from_histograms.note();
    report.notes.retain(|note| Some(note) != accuracy.as_ref());
    if data.missed > 0 {
        let missing = counted(data.missed, "interval is missing", "intervals are missing");
        report.notes.push(format!("{missing}: {MISSING}."));
    }
    let accuracy = accuracy.map_or_else(String::new, |note| {
        paragraph(&format!("approximate: {note}."), Tone::Warning, style) + "\n"
    });
    let accuracy = style.resolve(&accuracy);
    let draw = |top, said_below| {
        let options = ViewOptions {
            top: Some(top),
            epoch_offset_ns,
            fixed: true,
            said_below,
            ..ViewOptions::default()
        };
        // Without a chosen column, every table can be drawn.
        ui::render_table(&report, &options, style).ok().map(|table| accuracy.clone() + &table)
    };
    let room = height.saturating_sub(PROMPT);
    let over = |text: &str| text.lines().count().saturating_sub(room);
    let called = report.functions.iter().filter(|row| row.calls > 0).count();
    let mut top = room.clamp(LEAST, MOST);
    let mut text = draw(top, SaidBelow::Whole)?;
    for said_below in [SaidBelow::Whole, SaidBelow::ShortNotes, SaidBelow::FirstLines] {
        // What is said below the rows depends on them.
        for _ in 0..2 {
            if over(&text) == 0 {
                break;
            }
            top = top.min(called).saturating_sub(over(&text)).max(LEAST);
            text = draw(top, said_below)?;
        }
    }
    Some(text)
}
