//! Chooses the messages of a stream, counts them, and makes a line of each, as text or JSON.

use crate::ui::{Style, TextMessages, text::units::counted};
use ctrace_core::{
    formats::{
        JsonMessages,
        stream::{Messages, Scene, StreamLine},
    },
    points::Level,
    units::FuncId,
};
use regex::Regex;

/// The messages that are printed.
#[derive(Clone, Debug, Default)]
pub(crate) struct MessageChoice {
    /// Lighter ones are left out, and those whose level is not known.
    pub level: Option<Level>,
    /// The pattern that a text must have.
    pub text: Option<Regex>,
}

pub(super) struct MessageLines {
    choice: MessageChoice,
    messages: Messages,
    form: Form,
    seen: u64,
    printed: u64,
    without_level: u64,
}

enum Form {
    Text(Box<TextMessages>),
    Json(Box<JsonMessages>),
}

impl MessageLines {
    pub(super) fn new(choice: MessageChoice, json: bool, style: Style) -> Self {
        let form = match json {
            true => Form::Json(Box::default()),
            false => Form::Text(Box::new(TextMessages::new(style))),
        };
        let messages = Messages::default();
        Self { choice, messages, form, seen: 0, printed: 0, without_level: 0 }
    }

    pub(super) fn define(&mut self, scene: &Scene<'_>) {
        self.messages.define(scene.recording.functions());
        match &mut self.form {
            Form::Text(lines) => lines.define(scene),
            Form::Json(lines) => lines.define(scene),
        }
    }

    pub(super) fn wants(&self, function: FuncId) -> bool {
        self.messages.has(function)
    }

    pub(super) fn line(&mut self, scene: &Scene<'_>, line: &StreamLine<'_>, to: &mut Vec<u8>) {
        if let StreamLine::Lost(lost) = line
            && let Form::Text(lines) = &mut self.form
        {
            lines.lost(lost, to);
        }
        let Some(message) = self.messages.of(line) else { return };
        self.seen += 1;
        if let Some(least) = self.choice.level
            && message.level.is_none_or(|level| level < least)
        {
            self.without_level += u64::from(message.level.is_none());
            return;
        }
        if let Some(pattern) = &self.choice.text
            && !message.text().is_some_and(|text| pattern.is_match(&text.to_string()))
        {
            return;
        }
        self.printed += 1;
        match &mut self.form {
            Form::Text(lines) => lines.line(scene, &message, self.messages.have_levels(), to),
            Form::Json(lines) => lines.line(scene, &message, to),
        }
    }

    /// Returns how many were printed, of how many.
    pub(super) fn count(&self) -> String {
        let all = counted(self.seen, "message", "messages");
        match self.printed == self.seen {
            true => all,
            false => format!("{} of {all}", crate::ui::text::units::count(self.printed)),
        }
    }

    /// Returns what else a reader should know of the choice.
    pub(super) fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.messages.is_empty() {
            remarks.push(
                "nothing that was traced has messages. A USDT probe has, if its text is read: --arg \
                 'PROVIDER:PROBE: 0:str', or --provider FILE. A program has that writes them by markers: beside \
                 --arg or -u, choose these with -m '*'"
                    .to_owned(),
            );
        }
        if self.without_level > 0 {
            remarks.push(format!(
                "--level leaves out {} whose level is not known",
                counted(self.without_level, "message", "messages")
            ));
        }
        remarks
    }
}
