//! Messages: the points of a stream that have a text.

use super::{CallLine, StreamLine};
use crate::function::{FunctionInfo, ValueKind};
use crate::level::Level;
use crate::report::{CallValues, NamedValues};
use crate::units::FuncId;
use crate::values::{Text, Value};

/// The functions of a stream whose points are messages.
#[derive(Debug, Default)]
pub struct Messages(Vec<Option<Kind>>);

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
        let new = functions.iter().skip(self.0.len()).map(Kind::of);
        self.0.extend(new);
    }

    /// Returns whether the points of a function are messages.
    pub fn has(&self, function: FuncId) -> bool {
        matches!(self.0.get(function.index()), Some(Some(_)))
    }

    /// Returns whether no function has messages.
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(Option::is_none)
    }

    /// Returns whether messages with a level may come.
    pub fn have_levels(&self) -> bool {
        self.0.iter().flatten().any(|kind| kind.level.is_some())
    }

    /// Returns the message of a line, if it is one.
    pub fn of<'a>(&self, line: &StreamLine<'a>) -> Option<Message<'a>> {
        let StreamLine::Call(call, values) = *line else { return None };
        let Kind { level, text } = (*self.0.get(call.function.index())?)?;
        Some(Message { call, level, values, text })
    }
}

impl Kind {
    fn of(info: &FunctionInfo) -> Option<Self> {
        let text = info.values.iter().position(|value| value.kind == ValueKind::Text)?;
        info.is_point().then(|| Self { level: Level::of(info), text })
    }
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
