//! Messages and plots of markers as lines of text: a message reads as the program wrote it, a plot as
//! an equation.

use crate::ui::output::style::Tone;
use crate::ui::text::names;
use ctrace_core::{
    function::FunctionInfo,
    points::{Level, PointShape},
    report::{CallValues, UNREADABLE, render::clean::clean},
    values::Value,
};
use std::{borrow::Cow, fmt::Write as _};

/// The longest name of a message in columns. A hostile recording may have names of any length.
pub(super) const MOST_NAME: usize = 256;

/// The part of a line of a message or a plot that is the same each time.
pub(super) struct PointLine {
    /// The level in brackets.
    level: String,
    own: OwnName,
    is_message: bool,
    /// The tone of the text of a message that has a colour.
    tone: Option<Tone>,
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
            own: OwnName::of(info),
            is_message,
            tone: info.colour.map(Tone::Own),
            unit: unit.map(|unit| format!(" {}", clean(unit))).unwrap_or_default(),
        })
    }

    /// Appends the point. `label` is its name with its tone. A question mark stands for a value that
    /// is missing.
    pub(super) fn append(
        &self,
        label: &str,
        values: Option<&CallValues>,
        toned: impl Fn(Tone, &str) -> String,
        to: &mut String,
    ) {
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
                Some(text) => {
                    let category = self.own.instead(&text).unwrap_or(label);
                    let gap = if category.is_empty() { "" } else { ": " };
                    let text = self.tone.map_or_else(|| text.clone(), |it| toned(it, &text).into());
                    _ = write!(to, "{category}{gap}{text}");
                }
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
}

/// The name and the group that a program gave a message.
pub(super) struct OwnName {
    /// The beginning of each text that says all that the name does. That of a format, as Rust or C
    /// have it, is empty: any text was made from it.
    said: String,
    group: String,
}

impl OwnName {
    pub(super) fn of(info: &FunctionInfo) -> Self {
        let cut = |text: &str, cut: fn(&str, usize) -> String| cut(&clean(text), MOST_NAME);
        let said = match info.name.contains(['{', '%']) {
            true => String::new(),
            false => cut(&info.name, names::cut_end).trim_end_matches('…').to_owned(),
        };
        Self { said, group: cut(info.group.as_deref().unwrap_or_default(), names::cut_middle) }
    }

    /// Returns the group if it suffices before this text, which says all that the name does.
    pub(super) fn instead(&self, text: &str) -> Option<&str> {
        text.starts_with(&self.said).then_some(&self.group)
    }
}

/// Returns a value as it reads in a line. A text has no quotes, and what would drive a terminal is
/// escaped.
fn text_of(value: &Value) -> Cow<'static, str> {
    match value {
        Value::Text(text) => clean(&text.to_string()).into_owned().into(),
        value => value.to_string().into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_group_suffices_before_a_text_that_says_the_name() {
        let own = |name: &str| {
            let group = Some("ca\x1bche".into());
            OwnName::of(&FunctionInfo { group, ..FunctionInfo::new(name, "program") })
        };
        for (name, text, suffices) in [
            ("state", "ready", false),
            ("state", "state", true),
            ("it beg…", "it begins", true),
            ("a\tb", "a\\u{9}bc", true),
            ("miss for {}", "miss for 41", true),
            ("%d of 3", "1 of 3", true),
        ] {
            let group = suffices.then_some("ca\\u{1b}che");
            assert_eq!(own(name).instead(text), group, "{name}");
        }
    }

    #[test]
    fn names_and_groups_of_any_length_take_little() {
        let long = "long name ".repeat(100_000);
        let info =
            FunctionInfo { group: Some(long.as_str().into()), ..FunctionInfo::new(&*long, "a") };
        let own = OwnName::of(&info);
        let group = own.instead(&long).expect("it says the name");
        assert_eq!((names::width(group), own.said.len()), (MOST_NAME, MOST_NAME - 1));
        assert_eq!(own.instead("long name"), None);
    }
}
