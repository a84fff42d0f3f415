//! Messages and plots of markers as lines of text: a message reads as the program wrote it, a plot as
//! an equation.

use crate::ui::output::style::Tone;
use ctrace_core::{
    function::FunctionInfo,
    points::{Level, PointShape},
    report::{CallValues, UNREADABLE, render::clean::clean},
    values::Value,
};
use std::{borrow::Cow, fmt::Write as _, sync::Arc};

/// The part of a line of a message or a plot that is the same each time.
pub(super) struct PointLine {
    /// The level in brackets.
    level: String,
    /// The name that the program gave the message: perhaps the format of its text, as Rust or C
    /// have it.
    name: Arc<str>,
    group: String,
    is_message: bool,
    /// The unit of a plot, behind a space.
    unit: String,
}

impl PointLine {
    /// Returns `None` for what is neither a message nor a plot.
    pub(super) fn of(info: &FunctionInfo, toned: impl Fn(Tone, &str) -> String) -> Option<Self> {
        let (level, is_message) = match info.point? {
            PointShape::Message { level } => (level, true),
            PointShape::Plot => (None, false),
            PointShape::Frame | PointShape::Other => return None,
        };
        let level = level.map(|level| {
            let tone = match level {
                Level::Trace | Level::Debug => Tone::Dim,
                Level::Info => Tone::Plain,
                Level::Warn | Level::Error => Tone::Warning,
            };
            format!("{} ", toned(tone, &format!("[{}]", level.name())))
        });
        let unit = info.values.first().and_then(|value| value.unit.as_deref());
        Some(Self {
            level: level.unwrap_or_default(),
            name: Arc::clone(&info.name),
            group: info.group.as_deref().map(|group| clean(group).into_owned()).unwrap_or_default(),
            is_message,
            unit: unit.map(|unit| format!(" {}", clean(unit))).unwrap_or_default(),
        })
    }

    /// Appends the point. `label` is its name with its tone. A question mark stands for a value that
    /// is missing.
    pub(super) fn append(&self, label: &str, values: Option<&CallValues>, to: &mut String) {
        let values = values.map(CallValues::arguments).unwrap_or_default();
        *to += &self.level;
        let (value, others) = match values {
            [others @ .., (_, value)] if self.is_message => (Some(value), others),
            [(_, value), others @ ..] => (Some(value), others),
            [] => (None, values),
        };
        if self.is_message {
            let text = value.map(|value| value.as_ref().map_or(UNREADABLE.into(), text_of));
            match text {
                Some(text) if !self.says(&text) => _ = write!(to, "{label}: {text}"),
                Some(text) if self.group.is_empty() => *to += &text,
                Some(text) => _ = write!(to, "{}: {text}", self.group),
                None => _ = write!(to, "{label}: ?"),
            }
        } else {
            let value = value.map(|value| value.as_ref().map_or(UNREADABLE.into(), text_of));
            _ = write!(to, "{label} = {}", value.as_deref().unwrap_or("?"));
            *to += if value.is_some() { &self.unit } else { "" };
        }
        for (place, (name, value)) in others.iter().enumerate() {
            let value = value.as_ref().map_or(UNREADABLE.into(), Value::to_string);
            _ = write!(to, "{}{}={value}", if place == 0 { " (" } else { ", " }, clean(name));
        }
        *to += if others.is_empty() { "" } else { ")" };
    }

    /// Returns whether the text says all that the name does: it is the text, or the format that made
    /// it.
    fn says(&self, text: &str) -> bool {
        says(&self.name, text)
    }
}

/// Returns whether the text of a message says all that its name does.
pub(super) fn says(name: &str, text: &str) -> bool {
    name.contains(['{', '%']) || text.starts_with(&*clean(name.trim_end_matches('…')))
}

/// Returns a value as it reads in a line. A text has no quotes, and what would drive a terminal is
/// escaped.
fn text_of(value: &Value) -> Cow<'static, str> {
    match value {
        Value::Text(text) => clean(&text.to_string()).into_owned().into(),
        value => value.to_string().into(),
    }
}
