//! Messages as lines of text, in the shape that logs have: time, process and thread, level, the traced
//! functions around the message, its category and its text.
//!
//! A line stays whole on a terminal, too: a reader wants all of a text.

use super::line_head::LineHead;
use crate::ui::output::style::{Style, Tone};
use crate::ui::text::names;
use ctrace_core::{
    formats::stream::{Lost, Message, Scene},
    level::Level,
    recording::ReadAt,
    report::{UNREADABLE, render::clean::is_harmful},
};
use std::fmt::Write as _;

/// The longest name in columns. A hostile recording may have names of any length.
const MOST_NAME: usize = 256;
/// Functions around a message that a line names, at most: the innermost ones.
const MOST_AROUND: usize = 16;

/// Makes lines of text.
pub(crate) struct TextMessages {
    head: LineHead,
    /// The names of all functions.
    names: Vec<String>,
    line: String,
}

impl TextMessages {
    pub(crate) fn new(style: Style) -> Self {
        Self { head: LineHead::of_messages(style), names: Vec::new(), line: String::new() }
    }

    /// Takes names that were added.
    pub(crate) fn define<R: ReadAt>(&mut self, scene: &Scene<'_, R>) {
        let new = scene.recording.functions().iter().skip(self.names.len()).map(|info| {
            let label = names::label_of(info.kind, info.group.as_deref(), &info.name);
            names::cut_middle(&label, MOST_NAME)
        });
        self.names.extend(new);
        self.head.define(scene);
    }

    /// Appends the line of a message. `has_levels`: there is a column for the level.
    pub(crate) fn line<R: ReadAt>(
        &mut self,
        scene: &Scene<'_, R>,
        message: &Message<'_>,
        has_levels: bool,
        to: &mut Vec<u8>,
    ) {
        let call = message.call;
        self.line.clear();
        self.head.begin(scene, (call.start, call.thread), &mut self.line);
        if has_levels {
            let shown = message.level.map(|level| {
                let name = level.name().to_uppercase();
                let gap = " ".repeat(7_usize.saturating_sub(name.len()));
                self.head.toned(tone(level), &name) + &gap
            });
            self.line += shown.as_deref().unwrap_or("       ");
        }
        let around = self.around(scene, message);
        self.line += &self.head.toned(Tone::Dim, &around);
        let category = self.names.get(call.function.index()).map_or("?", String::as_str);
        self.line += &self.head.toned(Tone::of_function(category), category);
        self.line += ": ";
        match message.text() {
            Some(text) => escape(text.to_string().trim_end_matches('\n'), &mut self.line),
            None if message.is_lost() => self.line += "<lost>",
            None => self.line += UNREADABLE,
        }
        let others = message.others();
        if !others.is_empty() {
            // Writing to a String cannot fail.
            let _ = write!(self.line, "  {others}");
        }
        self.head.finish(&self.line, to);
    }

    /// Returns the functions around a message, each with the sign behind it.
    fn around<R: ReadAt>(&self, scene: &Scene<'_, R>, message: &Message<'_>) -> String {
        let (functions, is_whole) = scene.around(message.call);
        let first = functions.len().saturating_sub(MOST_AROUND);
        let mut shown = String::new();
        if first > 0 || !is_whole {
            shown += "… > ";
        }
        for function in &functions[first..] {
            shown += self.names.get(function.index()).map_or("?", String::as_str);
            shown += " > ";
        }
        shown
    }

    /// Appends a line that tells of a loss.
    pub(crate) fn lost(&mut self, lost: &Lost, to: &mut Vec<u8>) {
        self.line.clear();
        self.head.lost(lost, &mut self.line);
        self.head.finish(&self.line, to);
    }
}

fn tone(level: Level) -> Tone {
    match level {
        Level::Trace | Level::Debug => Tone::Dim,
        Level::Info => Tone::Name,
        Level::Warn => Tone::Warning,
        Level::Error => Tone::Hot,
    }
}

/// Appends a text of the target without what would drive a terminal, or begin another line.
fn escape(text: &str, to: &mut String) {
    for c in text.chars() {
        match c {
            '\n' => *to += "\\n",
            '\r' => *to += "\\r",
            '\t' => *to += "\\t",
            c if is_harmful(c) => to.extend(c.escape_unicode()),
            c => to.push(c),
        }
    }
}
