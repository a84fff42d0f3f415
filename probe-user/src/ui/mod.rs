//! Renders reports for terminals. Only [`output`] and [`say`] have effects.
//!
//! [`render_table`] draws the chosen [`views`], made of [`table`]s, [`text`] and [`notes`].
//! [`output::terminal`] finds the [`Style`] of an output. An incomplete report starts with warnings,
//! and the last line of every report is the loss line.

mod diff;
mod line_head;
mod lines;
#[cfg(test)]
pub(crate) mod lines_tests;
pub(crate) mod listing;
mod messages;
#[cfg(test)]
mod messages_tests;
pub(crate) mod notes;
pub(crate) mod output;
mod point_lines;
pub(crate) mod table;
pub(crate) mod text;
pub(crate) mod verdicts;
pub(crate) mod views;

pub(crate) use diff::{DiffOptions, DiffView, render as render_diff};
pub(crate) use lines::TextLines;
pub(crate) use messages::TextMessages;
pub(crate) use notes::exported::{remarks, summary_of_lines};
pub use notes::loss::loss_line;
pub(crate) use notes::loss::{is_damaged, warnings};
pub use output::style::Style;
pub(crate) use output::style::tone_of;
pub use views::{SaidBelow, ViewError, ViewName, ViewOptions};

use crate::writing;
use ctrace_core::report::Report;
use ctrace_core::report::render::{clean::clean, csv};
use notes::head;
use output::{live, style::Tone, terminal};
use std::collections::HashSet;
use std::io::Write as _;
use text::clock;
use views::Context;

/// Writes a line for the user to stderr, with names cleaned. A terminal gets it wrapped at words.
/// Failures are ignored: it does not matter if nobody reads it.
pub(crate) fn say(line: &str) {
    let style = terminal::of_messages(std::io::stderr());
    let text = text::paragraph(&format!("ctrace: {}", clean(line)), Tone::Plain, &style);
    let text = style.resolve(&text);
    let write = || std::io::stderr().write_all(text.as_bytes());
    let _ = writing::during(|| live::without(write));
}

/// Renders the views in `options`, one below the other.
pub fn render_table(
    report: &Report,
    options: &ViewOptions,
    style: &Style,
) -> Result<String, ViewError> {
    options.check(false)?;
    let views = options.views_of(report);
    let mut out = String::new();
    let is_new = |line: &String| report.part.is_none() || !options.said.contains(line);
    for warning in warnings(report).iter().filter(|line| is_new(line)) {
        out += &text::paragraph(warning, Tone::Warning, style);
    }
    if !out.is_empty() {
        out.push('\n');
    }
    match &report.part {
        None => out += &head::target(report, style),
        // Apart from the report before.
        Some(part) => out += &format!("\n{}", head::part(part, style)),
    }
    let context = Context { report, options, selection: &options.selection(), style };
    let called = report.functions.iter().any(|f| f.calls > 0 || f.headless > 0);
    if !called && !options.show_zero {
        out += &head::stretch(&context);
        for line in notes::nothing_called(report) {
            out += &text::paragraph(&line, Tone::Plain, style);
        }
    } else {
        for view in &views {
            out += &(view.view().draw)(&context);
            out.push('\n');
        }
    }
    let tells_unread =
        called && report.values.is_empty() && views.iter().any(|it| it.view().name == "values");
    let is_told = |note: &String| tells_unread && views::values::is_of_unread(note);
    let notes = notes_below(report, options, called).into_iter();
    let notes = notes.filter(|note| is_new(note) && !is_told(note)).collect();
    let is_detail = views.iter().any(|view| view.view().name == "detail");
    // Where nothing was called, the notes say why.
    let may_cut = style.terminal && called && !is_detail;
    let notes = match options.said_below {
        SaidBelow::FirstLines if called => notes::few::first_lines(notes, style),
        SaidBelow::ShortNotes if may_cut => notes::few::few(notes, style),
        // After `top` nothing else can be asked for.
        SaidBelow::Whole if may_cut && !options.fixed => notes::few::few(notes, style),
        SaidBelow::Whole | SaidBelow::ShortNotes | SaidBelow::FirstLines => notes,
    };
    for note in &notes {
        out += &text::paragraph(note, Tone::Plain, style);
    }
    if out.ends_with("\n\n") && !is_new(&loss_line(&report.loss)) {
        out.pop();
    }
    let loss = Some(loss_line(&report.loss)).filter(is_new);
    let tone = if is_damaged(&report.loss) { Tone::Warning } else { Tone::Dim };
    out.extend(loss.map(|line| text::paragraph(&line, tone, style)));
    Ok(style.resolve(&out))
}

/// Returns the notes below the views.
fn notes_below(report: &Report, options: &ViewOptions, called: bool) -> Vec<String> {
    let seen = views::as_seen(report, options).filter(|_| called);
    let waited = notes::queues::waited(report).filter(|_| called);
    let notes = notes::notes(report, options.show_zero, &options.named);
    seen.into_iter().chain(waited).chain(notes).collect()
}

/// Returns the sentences of a report that reports on its parts need not repeat.
pub(crate) fn sentences(report: &Report, options: &ViewOptions) -> HashSet<String> {
    let mut sentences: HashSet<String> = warnings(report).into_iter().collect();
    sentences.extend(notes_below(report, options, true));
    sentences.extend(views::sentences_of(report, options));
    sentences.insert(loss_line(&report.loss));
    sentences
}

/// Renders the one view in `options` as CSV. Print [`warnings`] and [`loss_line`] elsewhere.
pub fn render_csv(report: &Report, options: &ViewOptions) -> Result<String, ViewError> {
    csv_with(report, options, &[])
}

/// Renders the same for one of several intervals: its rows end with the interval's time.
pub fn render_interval_csv(report: &Report, options: &ViewOptions) -> Result<String, ViewError> {
    let [start, end] = [report.start_ns, report.end_ns];
    let of_day = |time| {
        let offset = options.epoch_offset_ns?;
        Some(clock::date_time(time, offset, clock::Precision::Millis))
    };
    let cells = [
        ("interval_start_ns", start.0.to_string()),
        ("interval_end_ns", end.0.to_string()),
        ("interval_start", of_day(start).unwrap_or_default()),
        ("interval_end", of_day(end).unwrap_or_default()),
    ];
    csv_with(report, options, &cells)
}

fn csv_with(
    report: &Report,
    options: &ViewOptions,
    more: &csv::MoreCells,
) -> Result<String, ViewError> {
    let table = match options.views.as_slice() {
        [] => views::DEFAULT[0].table,
        [one] => one.view().table,
        many => return Err(ViewError::OneViewForCsv { given: many.len() }),
    };
    Ok(csv::render_with(report, table, &options.selection(), more)?)
}
