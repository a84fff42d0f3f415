//! Messages: the points of a stream that have a text.

use super::{CallLine, StreamLine};
use crate::function::{FunctionInfo, FunctionKind};
use crate::locks;
use crate::points::{Level, PointShape};
use crate::report::{CallValues, NamedValues};
use crate::units::FuncId;
use crate::values::{Text, Value};

/// The functions of a stream whose points are messages.
#[derive(Debug, Default)]
pub struct Messages {
    /// Indexed by function.
    kinds: Vec<Option<Kind>>,
    any: bool,
    have_levels: bool,
}

#[derive(Clone, Copy, Debug)]
struct Kind {
    level: Option<Level>,
    /// The place of the text among the values.
    text: usize,
}

/// A message.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    /// The point.
    pub call: &'a CallLine,
    pub level: Option<Level>,
    /// `None` if they were lost.
    values: Option<&'a CallValues>,
    text: usize,
}

impl Messages {
    /// Takes functions that were added.
    pub fn define(&mut self, functions: &[FunctionInfo]) {
        for info in functions.iter().skip(self.kinds.len()) {
            let kind = Kind::of(info);
            self.any |= kind.is_some();
            self.have_levels |= kind.is_some_and(|kind| kind.level.is_some());
            self.kinds.push(kind);
        }
    }

    /// Returns whether the points of a function are messages.
    pub fn has(&self, function: FuncId) -> bool {
        matches!(self.kinds.get(function.index()), Some(Some(_)))
    }

    /// Returns whether no function has messages.
    pub fn is_empty(&self) -> bool {
        !self.any
    }

    /// Returns whether messages with a level may come.
    pub fn have_levels(&self) -> bool {
        self.have_levels
    }

    /// Returns the message of a line, if it is one.
    pub fn of<'a>(&self, line: &StreamLine<'a>) -> Option<Message<'a>> {
        let StreamLine::Call(call, values) = *line else { return None };
        let Kind { level, text } = (*self.kinds.get(call.function.index())?)?;
        Some(Message { call, level, values, text })
    }
}

impl Kind {
    fn of(info: &FunctionInfo) -> Option<Self> {
        let text = info.values.iter().position(|value| value.kind.is_text())?;
        // The name of a lock is for the view of locks.
        let is_message = info.is_point() && locks::naming(info).is_none();
        is_message.then(|| Self { level: level_of(info), text })
    }
}

/// Returns the level of a function's messages, as far as it is known. A USDT probe has none of its own:
/// the last word of its name may be one, as in `log__warn`.
fn level_of(info: &FunctionInfo) -> Option<Level> {
    const WORDS: [(&str, Level); 9] = [
        ("trace", Level::Trace),
        ("debug", Level::Debug),
        ("info", Level::Info),
        ("warn", Level::Warn),
        ("warning", Level::Warn),
        ("err", Level::Error),
        ("error", Level::Error),
        ("critical", Level::Error),
        ("fatal", Level::Error),
    ];
    if info.kind != FunctionKind::Usdt {
        return info.point.and_then(PointShape::level);
    }
    let last = info.name.rsplit(['_', '-']).next()?;
    WORDS.iter().find(|(word, _)| last.eq_ignore_ascii_case(word)).map(|(_, level)| *level)
}

impl<'a> Message<'a> {
    /// Returns the text. There is none if it was lost, or could not be read.
    pub fn text(&self) -> Option<&'a Text> {
        match self.values?.named.0.get(self.text)? {
            (_, Some(Value::Text(text))) => Some(text),
            _ => None,
        }
    }

    /// Returns whether the text was lost on its way.
    pub fn is_lost(&self) -> bool {
        self.values.is_none()
    }

    /// Returns the values beside the text.
    pub fn others(&self) -> NamedValues {
        let all = self.values.map_or(&[][..], |values| &values.named.0).iter().enumerate();
        let others = all.filter(|(place, _)| *place != self.text);
        NamedValues(others.map(|(_, value)| value.clone()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::function::{ValueInfo, ValueKind};

    #[test]
    fn levels_are_known_once_a_function_with_one_is_added() {
        let values = vec![ValueInfo::new("arg1", ValueKind::Text)];
        let probe = |name: &str, values| FunctionInfo {
            kind: FunctionKind::Usdt,
            values,
            ..FunctionInfo::new(name, "program")
        };
        let all = [
            probe("log__warn", Vec::new()),
            probe("say", values.clone()),
            probe("log__info", values),
            probe("say", Vec::new()),
        ];
        let mut messages = Messages::default();
        let told: Vec<_> = (0..=4)
            .map(|known| {
                messages.define(&all[..known]);
                (messages.is_empty(), messages.have_levels())
            })
            .collect();
        let expected = [(true, false), (true, false), (false, false), (false, true), (false, true)];
        assert_eq!(told, expected);
        assert_eq!([0, 1, 2, 3].map(|of| messages.has(FuncId(of))), [false, true, true, false]);
    }

    #[test]
    fn the_last_word_of_a_probe_may_be_its_level() {
        let info = |kind, name: &str| FunctionInfo { kind, ..FunctionInfo::new(name, "program") };
        for (name, expected) in [
            ("log__warn", Some(Level::Warn)),
            ("log-ERROR", Some(Level::Error)),
            ("info", Some(Level::Info)),
            ("error__count", None),
            ("backtrace", None),
            ("", None),
        ] {
            assert_eq!(level_of(&info(FunctionKind::Usdt, name)), expected, "{name}");
        }
        let marker = info(FunctionKind::Marker, "log_warn");
        assert_eq!(level_of(&marker), None);
        let point = Some(PointShape::Message { level: Some(Level::Info) });
        assert_eq!(level_of(&FunctionInfo { point, ..marker }), Some(Level::Info));
    }
}
