//! Draws the model as lines, for a window of any size. This is pure.

mod detail;
mod help;
mod processes;
pub(super) mod status;
mod table;
mod texts;
mod trees;

use crate::top::model::{Mode, Model, View};
use crate::ui::{
    Style as TextStyle,
    output::style::{Shades, Tone, pieces},
};
use ctrace_core::colour::Colour;
use ratatui::{
    style::{Color, Modifier, Style},
    text::{Line, Span},
};
use std::ops::Range;

/// The contents of a window.
pub(super) struct Drawn {
    /// The lines, at most as many as the window has rows.
    pub(super) lines: Vec<Line<'static>>,
    /// The largest scroll position of a text.
    pub(super) last_scroll: usize,
}

/// The mark of the chosen row.
const MARK: char = '›';

/// The least heights of windows with a line of views, and with one of keys.
const ROOM_FOR_VIEWS: usize = 8;
const ROOM_FOR_KEYS: usize = 4;

pub(super) fn draw(model: &Model) -> Drawn {
    let (width, height) = model.size;
    let mut top = vec![status::title_line(model, width)];
    if model.mode != Mode::Choose {
        top.push(status::status_line(model, width));
        if height >= ROOM_FOR_VIEWS {
            top.push(status::views_line(model, width));
        }
    }
    let mut bottom = Vec::new();
    if height >= ROOM_FOR_KEYS || model.mode != Mode::Look {
        bottom.push(status::keys_line(model, width));
    }
    let room = height.saturating_sub(top.len() + bottom.len());
    let (mut body, last_scroll) = body(model, width, room);
    body.truncate(room);
    body.resize(room, Line::default());
    let mut lines: Vec<Line<'static>> = top.into_iter().chain(body).collect();
    lines.truncate(height.saturating_sub(bottom.len()));
    lines.extend(bottom);
    Drawn { lines, last_scroll }
}

/// Returns the lines, and how far they can be scrolled.
fn body(model: &Model, width: usize, height: usize) -> (Vec<Line<'static>>, usize) {
    if model.mode == Mode::Help {
        return scrolled(help::lines(width), model.scroll, height);
    }
    if model.mode == Mode::Choose {
        return (processes::lines(model, width, height), 0);
    }
    let Some(figures) = model.figures() else {
        let text = format!("The first numbers come after {} …", status::seconds(model.interval));
        return (paragraph(&text, width), 0);
    };
    let is_about_functions = !matches!(model.view, View::Threads | View::Notes);
    if is_about_functions && model.rows().is_empty() {
        return (texts::nothing(model, figures, width), 0);
    }
    match model.view {
        View::Functions => (with_detail(model, width, height), 0),
        View::Histogram => scrolled(texts::histogram(model, figures, width, height), 0, height),
        View::Notes => scrolled(texts::notes(figures, width), model.scroll, height),
        View::Tree => (trees::tree(model, figures, (width, height)), 0),
        View::Paths => (trees::paths(model, figures, (width, height)), 0),
        View::Threads => scrolled(texts::threads(model, figures, width), model.scroll, height),
    }
}

/// Returns the table, with the details of the chosen function below it.
fn with_detail(model: &Model, width: usize, height: usize) -> Vec<Line<'static>> {
    /// The least number of the table's rows.
    const LEAST: usize = 5;
    if !model.detail {
        return table::lines(model, width, height);
    }
    let mut detail = detail::lines(model, width);
    detail.truncate(height.saturating_sub(LEAST));
    let mut lines = table::lines(model, width, height - detail.len());
    lines.resize(height - detail.len(), Line::default());
    lines.extend(detail);
    lines
}

fn scrolled(
    lines: Vec<Line<'static>>,
    scroll: usize,
    height: usize,
) -> (Vec<Line<'static>>, usize) {
    let last = lines.len().saturating_sub(height);
    (lines.into_iter().skip(scroll.min(last)).collect(), last)
}

/// Returns the part of a list that a window shows. Whole screenfuls are shown, so that rows stay in
/// place while the choice moves.
fn window(chosen: usize, rows: usize, room: usize) -> Range<usize> {
    let room = room.max(1);
    let first = (chosen / room * room).min(rows.saturating_sub(room));
    first..rows.min(first + room)
}

/// Turns marked text into lines.
fn marked(text: &str, shades: Shades) -> Vec<Line<'static>> {
    let span = |(tone, text)| Span::styled(text, look(tone, shades));
    text.lines().map(|line| Line::from_iter(pieces(line).into_iter().map(span))).collect()
}

/// A space at which no line is broken.
const TIED: &str = "\u{a0}";

/// Wraps plain text.
fn paragraph(text: &str, width: usize) -> Vec<Line<'static>> {
    let style = TextStyle { width: Some(width.max(1)), ..TextStyle::default() };
    let text = crate::ui::text::paragraph(text, Tone::Plain, &style).replace(TIED, " ");
    marked(&text, Shades::None)
}

/// Returns the style of a tone. Words carry the meaning; this only helps the eye.
fn look(tone: Tone, shades: Shades) -> Style {
    let plain = Style::default();
    let with = |color| if shades == Shades::None { plain } else { plain.fg(color) };
    match tone {
        Tone::Plain => plain,
        Tone::Title | Tone::Heading => plain.add_modifier(Modifier::BOLD),
        Tone::Group => with(Color::Cyan),
        Tone::Name => with(Color::Green),
        Tone::Own(Colour([red, green, blue])) if shades == Shades::All => {
            with(Color::Rgb(red, green, blue))
        }
        Tone::Function(_) | Tone::Own(_) => {
            tone.of_256().map_or(plain, |colour| with(Color::Indexed(colour)))
        }
        Tone::Dim => plain.add_modifier(Modifier::DIM),
        Tone::Warm => with(Color::Yellow),
        Tone::Hot => with(Color::Red).add_modifier(Modifier::BOLD),
        Tone::Warning => with(Color::Yellow).add_modifier(Modifier::BOLD),
    }
}
