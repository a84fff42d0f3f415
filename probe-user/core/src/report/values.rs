//! Values of calls in a report, and how they look in text and JSON.

use super::render::clean::{clean, is_harmful};
use crate::units::{Nanos, Pid, Tid};
use crate::values::{Text, Value};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use std::fmt::{self, Display, Formatter, Write};
use std::sync::Arc;

/// The values of one call, in the order of the probe. In JSON they are an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NamedValues(pub Vec<(Arc<str>, Option<Value>)>);

impl NamedValues {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Serialize for NamedValues {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut map = to.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// A value that JSON lacks is a string: an address, a character, and some floating-point numbers.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Signed(number) => number.serialize(to),
            Self::Unsigned(number) => number.serialize(to),
            Self::Bool(is_true) => is_true.serialize(to),
            Self::Pointer(_) => to.collect_str(self),
            Self::Char(byte) => to.collect_str(&byte.escape_ascii()),
            Self::Float(number) if number.get().is_finite() => number.get().serialize(to),
            Self::Float(number) => to.collect_str(number),
            Self::Text(text) => to.collect_str(text),
            Self::Enumerator(one) => one.name.serialize(to),
        }
    }
}

/// Displays a text in quotes, and a character as C has it, so that neither can look like another value. The
/// number of an enumeration has its name.
impl Display for Value {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Signed(number) => number.fmt(f),
            Self::Unsigned(number) => number.fmt(f),
            Self::Pointer(address) => write!(f, "{address:#x}"),
            Self::Bool(is_true) => is_true.fmt(f),
            Self::Char(byte) => write!(f, "'{}'", byte.escape_ascii()),
            Self::Float(number) => number.fmt(f),
            Self::Text(text) => quoted(text, f),
            Self::Enumerator(one) => f.write_str(&clean(&one.name)),
        }
    }
}

/// Writes a text in quotes. What would drive a terminal is escaped as in names.
fn quoted(text: &Text, f: &mut Formatter<'_>) -> fmt::Result {
    f.write_char('"')?;
    text.pieces(f, |f, piece| {
        piece.chars().try_for_each(|c| match c {
            '"' | '\\' => write!(f, "\\{c}"),
            '\n' => f.write_str("\\n"),
            '\r' => f.write_str("\\r"),
            '\t' => f.write_str("\\t"),
            c if is_harmful(c) => write!(f, "{}", c.escape_unicode()),
            c => f.write_char(c),
        })
    })?;
    f.write_char('"')
}

/// The values of one call, of both its ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallValues {
    pub named: NamedValues,
    /// True if the last value is the call's result.
    pub has_result: bool,
}

impl CallValues {
    /// Returns the arguments, with their names.
    pub fn arguments(&self) -> &[(Arc<str>, Option<Value>)] {
        let all = &self.named.0;
        &all[..all.len().saturating_sub(usize::from(self.has_result))]
    }

    /// Returns the result, if the call has one. It is `None` if it could not be read.
    pub fn result(&self) -> Option<Option<&Value>> {
        let result = self.named.0.last().filter(|_| self.has_result);
        result.map(|(_, value)| value.as_ref())
    }
}

/// The words for values that were asked for and that no call has, in notes.
pub const NOT_READ: &str = "not read";

/// The text in place of a value that could not be read.
pub const UNREADABLE: &str = "<unreadable>";

/// Stands for the text of a message that was lost on its way.
pub const LOST_TEXT: &str = "<lost>";

/// Displays `arg0=17 arg1=<unreadable>`. The target may have chosen the names.
impl Display for NamedValues {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (place, (name, value)) in self.0.iter().enumerate() {
            let name = clean(name);
            let gap = if place == 0 { "" } else { " " };
            match value {
                Some(value) => write!(f, "{gap}{name}={value}")?,
                None => write!(f, "{gap}{name}={UNREADABLE}")?,
            }
        }
        Ok(())
    }
}

/// A call that has values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PointReport {
    /// Index in `functions` of the report.
    pub function: usize,
    pub name: Arc<str>,
    pub pid: Option<Pid>,
    pub tid: Option<Tid>,
    /// Name of the thread.
    pub thread: Option<Arc<str>>,
    pub start_ns: Nanos,
    pub values: NamedValues,
}

/// The first calls with values in order of time, and the number of further ones.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct PointsReport {
    pub first: Vec<PointReport>,
    pub more: u64,
    /// The number of values of all these calls that could not be read.
    pub unread: u64,
}

impl PointsReport {
    pub fn is_empty(&self) -> bool {
        self.first.is_empty()
    }
}
