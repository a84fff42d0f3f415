//! The engine's knowledge of a traced function: its name for reports, and facts about its probes
//! for the stack rule.

use crate::colour::Colour;
use crate::points::PointShape;
use crate::units::Nanos;
use crate::values::{Enumerator, MOST_ENUMERATORS, Value};
use crate::waits::WaitClass;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::sync::Arc;

/// The kind of a traced thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FunctionKind {
    Function,
    Usdt,
    Marker,
}

/// The way in which the end of a call becomes known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ExitSeen {
    /// By a return probe. A function that leaves by a jump ends when its successor returns.
    ByReturnProbe,
    /// By probes on its ways out. A function that leaves by a jump ends at the jump.
    ByExitSites,
    /// Not at all: calls are counted, and end at the next event that shows that they are over.
    Never,
}

/// The type of a value of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ValueKind {
    /// A signed integer, extended to 64 bits.
    Signed,
    /// An unsigned integer, extended to 64 bits.
    Unsigned,
    /// An address.
    Pointer,
    /// True or false: anything but 0 is true.
    Bool,
    /// A byte that is a character.
    Char,
    /// A floating-point number, extended to 64 bits.
    Float,
    /// A short text.
    Text,
    /// A text that its writer has cut, if it had to.
    LongText,
}

impl ValueKind {
    /// Returns true if its words are whole numbers.
    pub fn is_integer(self) -> bool {
        !matches!(self, Self::Float) && !self.is_text()
    }

    /// Returns true for texts.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::LongText)
    }
}

/// A value that is read at the entry or at the exit of a function, or when a USDT probe is hit, or
/// that comes with an entry of a marker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "ValueRecord", into = "ValueRecord")]
pub struct ValueInfo {
    /// The argument's name, or `arg0` and so on if nobody names it.
    pub name: Arc<str>,
    pub kind: ValueKind,
    /// True if it is read at the exit. Such a value comes last.
    pub is_result: bool,
    /// The names of some of its numbers, by number. None for what is no enumeration.
    pub names: Arc<[Arc<Enumerator>]>,
    /// The unit that the program gives it.
    pub unit: Option<Arc<str>>,
    /// For a text without a zero byte behind it: which word of an event has its length. That is known
    /// while values are read only.
    pub length_at: Option<u8>,
}

impl ValueInfo {
    /// Makes a value that is read at the entry, or at a USDT probe.
    pub fn new(name: impl Into<Arc<str>>, kind: ValueKind) -> Self {
        let (names, unit, length_at) = Default::default();
        Self { name: name.into(), kind, is_result: false, names, unit, length_at }
    }

    /// Gives numbers names: the first one of each, and [`MOST_ENUMERATORS`] at most.
    pub fn with_names(self, mut names: Vec<Arc<Enumerator>>) -> Self {
        names.sort_by_key(|one| one.number);
        names.dedup_by_key(|one| one.number);
        names.truncate(MOST_ENUMERATORS);
        Self { names: names.into(), ..self }
    }

    /// Returns a value under its name, if it has one.
    pub(crate) fn named(&self, value: Value) -> Value {
        let number = match value {
            _ if self.names.is_empty() => return value,
            Value::Signed(number) => number,
            Value::Unsigned(number) => number as i64,
            _ => return value,
        };
        let found = self.names.binary_search_by_key(&number, |one| one.number);
        found.map_or(value, |at| Value::Enumerator(Arc::clone(&self.names[at])))
    }
}

/// A [`ValueInfo`] in a recording. A `kind` that a reader does not know would cost it all names, so
/// there are two for ever. A further type has a `form`, which readers pass over that do not know
/// it: they take its values for integers. If these are packed in another way, they are in a block
/// that such readers do not know, either.
#[derive(Serialize, Deserialize)]
struct ValueRecord {
    name: Arc<str>,
    kind: Sign,
    #[serde(default, skip_serializing_if = "Form::is_integer")]
    form: Form,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    result: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    names: Vec<Arc<Enumerator>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    unit: Option<Arc<str>>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Sign {
    Signed,
    Unsigned,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Form {
    #[default]
    Integer,
    Pointer,
    Bool,
    Char,
    Float,
    Text,
    LongText,
    /// One that a later ctrace added.
    #[serde(other)]
    Unknown,
}

impl Form {
    fn is_integer(&self) -> bool {
        matches!(self, Self::Integer)
    }
}

impl From<ValueInfo> for ValueRecord {
    fn from(ValueInfo { name, kind, is_result: result, names, unit, .. }: ValueInfo) -> Self {
        let (kind, form) = match kind {
            ValueKind::Signed => (Sign::Signed, Form::Integer),
            ValueKind::Unsigned => (Sign::Unsigned, Form::Integer),
            ValueKind::Pointer => (Sign::Unsigned, Form::Pointer),
            ValueKind::Bool => (Sign::Unsigned, Form::Bool),
            ValueKind::Char => (Sign::Unsigned, Form::Char),
            ValueKind::Float => (Sign::Unsigned, Form::Float),
            ValueKind::Text => (Sign::Unsigned, Form::Text),
            ValueKind::LongText => (Sign::Unsigned, Form::LongText),
        };
        Self { name, kind, form, result, names: names.to_vec(), unit }
    }
}

impl From<ValueRecord> for ValueInfo {
    fn from(ValueRecord { name, kind, form, result: is_result, names, unit }: ValueRecord) -> Self {
        let kind = match (form, kind) {
            (Form::Pointer, _) => ValueKind::Pointer,
            (Form::Bool, _) => ValueKind::Bool,
            (Form::Char, _) => ValueKind::Char,
            (Form::Float, _) => ValueKind::Float,
            (Form::Text, _) => ValueKind::Text,
            (Form::LongText, _) => ValueKind::LongText,
            (Form::Integer | Form::Unknown, Sign::Signed) => ValueKind::Signed,
            (Form::Integer | Form::Unknown, Sign::Unsigned) => ValueKind::Unsigned,
        };
        Self { is_result, unit, ..Self::new(name, kind) }.with_names(names)
    }
}

/// The time that the probes of one call take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProbeCost {
    pub call_ns: Nanos,
    /// The part of it that lies between the two time stamps of the call.
    pub inside_ns: Nanos,
    /// The part of `call_ns` by which the true cost may differ from it.
    #[serde(default)]
    pub error_ns: Nanos,
    /// True if it was measured on this machine, and is no guess.
    pub measured: bool,
}

impl ProbeCost {
    /// Returns by how much the true cost may differ. Recordings of before do not tell: a tenth.
    pub(crate) fn error(&self) -> Nanos {
        self.error_ns.max(Nanos(self.call_ns.0 / 10))
    }

    /// Returns the cost of a function that gets other probes in the midst of a trace. The new one
    /// stands for all of its calls, and all earlier ones are within the error.
    pub(crate) fn replaced_by(self, new: Self) -> Self {
        let difference = Nanos(self.call_ns.0.abs_diff(new.call_ns.0));
        Self {
            error_ns: new.error().max(Nanos(difference.0.saturating_add(self.error().0))),
            measured: self.measured && new.measured,
            ..new
        }
    }
}

/// A pair of USDT probes has their names as aliases.
pub(crate) fn is_point(
    kind: FunctionKind,
    aliases: &[Arc<str>],
    point: Option<PointShape>,
) -> bool {
    point.is_some() || kind == FunctionKind::Usdt && aliases.is_empty()
}

/// The way in which calls follow each other, if only the order of events tells their ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ByOrder {
    /// A call begins when the one before has ended.
    InTurn,
    /// A call may begin inside another.
    Nested,
}

/// Bytes of a value's name, and of its unit, at most.
pub const LONGEST_VALUE_NAME: usize = 256;

/// Bytes of the text of a condition, at most.
pub const LONGEST_CONDITION: usize = 1024;

/// A traced function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionInfo {
    /// The name that is shown. It is the short one, without parameters and hash, unless another
    /// traced function has the same short name.
    pub name: Arc<str>,
    /// The short name, if another one is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_name: Option<Arc<str>>,
    /// The name with parameters or hash, if another one is shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full_name: Option<Arc<str>>,
    /// Other names at the same address.
    pub aliases: Vec<Arc<str>>,
    /// File name of the ELF object (`libc.so.6`), without its directory.
    pub object: Arc<str>,
    pub file: Option<Arc<str>>,
    pub line: Option<u32>,
    pub kind: FunctionKind,
    /// Marker group or USDT provider.
    pub group: Option<Arc<str>>,
    pub exit: ExitSeen,
    /// The entry is a branch target: a hit with the stack pointer of the open frame of the same
    /// function is a loop's next turn, not a new call.
    pub entry_is_loop_head: bool,
    /// The function may leave by a jump to another function.
    pub may_tail_jump: bool,
    /// All these jumps lead to traced functions, so a call that leaves by one ends with the next call.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub ends_with_successor: bool,
    /// Only calls that meet this condition on their arguments count. The others may have ends, but no
    /// beginnings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<Arc<str>>,
    /// For a pair of USDT probes: only the order of a thread's events tells the ends of calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by_order: Option<ByOrder>,
    /// For a pair of USDT probes whose values are texts that name each of its calls: what to put between
    /// them. Recordings have the names.
    #[serde(skip)]
    pub named_by: Option<&'static str>,
    /// The values that come with each hit, in order, and with each end of a call.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<ValueInfo>,
    /// Functions with inlined code in it, as far as they were looked for, those with the most code first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inlined: Vec<Arc<str>>,
    /// The kind of waits that its calls are, if it is no function of a program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wait: Option<WaitClass>,
    /// The shape of a marker that is no scope, but a point in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub point: Option<PointShape>,
    /// The program says of a scope that its calls are frames.
    #[serde(default, rename = "frame", skip_serializing_if = "std::ops::Not::not")]
    pub is_frame: bool,
    /// A call of an async function, or a part of one: it goes on on any thread.
    #[serde(default, rename = "async", skip_serializing_if = "std::ops::Not::not")]
    pub is_async: bool,
    /// The colour that the program gives a scope.
    #[serde(default, deserialize_with = "Colour::read", skip_serializing_if = "Option::is_none")]
    pub colour: Option<Colour>,
    /// The time that the probes of one call take, as far as known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<ProbeCost>,
}

impl FunctionInfo {
    /// Returns whether its hits are counted and have no ends: a USDT probe that is in no pair, or a
    /// marker that is no scope.
    pub fn is_point(&self) -> bool {
        is_point(self.kind, &self.aliases, self.point)
    }

    /// Returns whether the program marks frames with it: by marks between them, or by a scope around each.
    pub fn marks_frames(&self) -> bool {
        self.is_frame || self.point == Some(PointShape::Frame)
    }

    /// Returns whether frames go from one of its hits to the next: it is a frame mark, or a USDT probe that
    /// has no ends.
    pub fn is_edge_of_frames(&self) -> bool {
        match self.point {
            Some(shape) => shape == PointShape::Frame,
            None => self.is_point(),
        }
    }

    /// Returns whether it is the same function of the same run. What its probes cost may have
    /// changed.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let probe = self.probe;
        *self == Self { probe, ..other.clone() }
    }

    /// Makes a function of which only the name and the object are known.
    pub fn new(name: impl Into<Arc<str>>, object: impl Into<Arc<str>>) -> Self {
        Self {
            name: name.into(),
            short_name: None,
            full_name: None,
            aliases: Vec::new(),
            object: object.into(),
            file: None,
            line: None,
            kind: FunctionKind::Function,
            group: None,
            exit: ExitSeen::ByReturnProbe,
            entry_is_loop_head: false,
            may_tail_jump: false,
            ends_with_successor: false,
            condition: None,
            by_order: None,
            named_by: None,
            values: Vec::new(),
            inlined: Vec::new(),
            wait: None,
            point: None,
            is_frame: false,
            is_async: false,
            colour: None,
            probe: None,
        }
    }

    /// Returns whether values come with each hit.
    pub fn has_arguments(&self) -> bool {
        self.values.first().is_some_and(|value| !value.is_result)
    }

    /// Returns whether a value comes with the end of each call.
    pub fn has_result(&self) -> bool {
        self.values.last().is_some_and(|value| value.is_result)
    }

    /// Returns whether a call may end at a jump to another function, before it returns to its caller.
    pub fn ends_at_tail_call(&self) -> bool {
        self.may_tail_jump && !self.ends_with_successor && self.exit == ExitSeen::ByExitSites
    }

    /// Returns whether a call that leaves by a jump stays open until what it jumped to returns, if ends
    /// are seen like this.
    pub fn tail_calls_nest(&self, exit: ExitSeen) -> bool {
        self.may_tail_jump && exit == ExitSeen::ByReturnProbe
    }

    /// Returns the name without parameters and hash.
    pub fn short(&self) -> &Arc<str> {
        self.short_name.as_ref().unwrap_or(&self.name)
    }

    /// Returns the name with parameters or hash, as far as it is known.
    pub fn full(&self) -> &Arc<str> {
        self.full_name.as_ref().unwrap_or(&self.name)
    }
}

/// Returns whether this is a name as source code has them, which no sign of a notation is part of.
pub fn is_word(name: &str) -> bool {
    name.starts_with(|first: char| first.is_alphabetic() || first == '_')
        && name.chars().all(|c| c.is_alphanumeric() || c == '_')
}

/// Returns the name that is shown to people: a marker with its group, a USDT probe with its
/// provider.
pub fn qualified<'a>(kind: FunctionKind, group: Option<&str>, name: &'a str) -> Cow<'a, str> {
    match (kind, group) {
        (FunctionKind::Marker, Some(group)) => Cow::Owned(format!("{group}/{name}")),
        (FunctionKind::Usdt, Some(group)) => Cow::Owned(format!("{group}:{name}")),
        _ => Cow::Borrowed(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_of_probes_adds_to_the_error() {
        let cost = |call| ProbeCost { call_ns: Nanos(call), ..ProbeCost::default() };
        let twice = cost(100).replaced_by(cost(200)).replaced_by(cost(250));
        assert_eq!(
            (twice.call_ns, twice.error_ns),
            (Nanos(250), Nanos(160)),
            "90 to 110 is within"
        );
        let (first, back) = (cost(100), cost(300).replaced_by(cost(120)));
        assert_eq!((first.error(), back.error()), (Nanos(10), Nanos(210)));
    }
}
