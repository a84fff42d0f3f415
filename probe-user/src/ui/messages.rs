//! Messages as lines of text, in the shape that logs have: time, process and thread, level, the traced
//! functions around the message, its category and its text.
//!
//! A line stays whole on a terminal, too: a reader wants all of a text.

use super::{
    line_head::LineHead,
    point_lines::{MOST_NAME, OwnName},
};
use crate::ui::output::style::{Style, Tone};
use crate::ui::text::names;
use ctrace_core::{
    colour::Colour,
    formats::stream::{Lost, Message, Scene},
    function::FunctionInfo,
    points::Level,
    report::{
        LOST_TEXT, UNREADABLE,
        render::clean::{clean, is_harmful},
    },
    units::FuncId,
};
use std::fmt::Write as _;

/// Functions around a message that a line names, at most: the innermost ones.
const MOST_AROUND: usize = 16;

/// Makes lines of text.
pub(crate) struct TextMessages {
    head: LineHead,
    functions: Vec<Function>,
    line: String,
}

/// A function in lines.
struct Function {
    label: String,
    /// The name and the group of a marker's message.
    own: Option<OwnName>,
    /// The colour that the program gave a message.
    colour: Option<Colour>,
}

impl Function {
    fn new(info: &FunctionInfo) -> Self {
        let label = names::label_of(info.kind, info.group.as_deref(), &info.name);
        let own = info.point.map(|_| OwnName::of(info));
        Self { label: names::cut_middle(&label, MOST_NAME), own, colour: info.colour }
    }

    /// Returns what stands before this text: of a marker, no name that the text repeats.
    fn category(&self, text: &str) -> &str {
        self.own.as_ref().and_then(|own| own.instead(text)).unwrap_or(&self.label)
    }
}

impl TextMessages {
    pub(crate) fn new(style: Style) -> Self {
        Self { head: LineHead::of_messages(style), functions: Vec::new(), line: String::new() }
    }

    /// Takes names that were added.
    pub(crate) fn define(&mut self, scene: &Scene<'_>) {
        let all = scene.recording.functions();
        self.functions.extend(all.iter().skip(self.functions.len()).map(Function::new));
        self.head.define(scene);
    }

    /// Appends the line of a message. `has_levels`: there is a column for the level.
    pub(crate) fn line(
        &mut self,
        scene: &Scene<'_>,
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
        let own = message.text().map(ToString::to_string);
        let text = match &own {
            Some(text) => escaped(text.trim_end_matches('\n')),
            None if message.is_lost() => LOST_TEXT.to_owned(),
            None => UNREADABLE.to_owned(),
        };
        // Names are escaped in another way than texts.
        let cleaned = own.as_deref().map_or(text.as_str().into(), clean);
        let function = self.functions.get(call.function.index());
        let category = function.map_or("?", |function| function.category(&cleaned));
        let colour = function.and_then(|function| function.colour);
        let mut around = self.around(scene, message);
        if !around.is_empty() && !category.is_empty() {
            around += " > ";
        }
        if !around.is_empty() || !category.is_empty() {
            self.line += &self.head.toned(Tone::Dim, &around);
            self.line += &self.head.toned(Tone::of(category, colour), category);
            self.line += ": ";
        }
        match colour {
            Some(own) => self.line += &self.head.toned(Tone::Own(own), &text),
            None => self.line += &text,
        }
        let others = message.others();
        if !others.is_empty() {
            // Writing to a String cannot fail.
            let _ = write!(self.line, "  {others}");
        }
        self.head.finish(&self.line, to);
    }

    /// Returns the functions around a message.
    fn around(&self, scene: &Scene<'_>, message: &Message<'_>) -> String {
        let (functions, is_whole) = scene.around(message.call);
        let first = functions.len().saturating_sub(MOST_AROUND);
        let label = |function: &FuncId| {
            self.functions.get(function.index()).map_or("?", |function| &*function.label)
        };
        let is_cut = first > 0 || !is_whole;
        let shown = is_cut.then_some("…").into_iter().chain(functions[first..].iter().map(label));
        shown.collect::<Vec<_>>().join(" > ")
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

/// Returns a text of the target without what would drive a terminal, or begin another line.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out += "\\n",
            '\r' => out += "\\r",
            '\t' => out += "\\t",
            c if is_harmful(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}
