//! Values of events, as a ring delivers them and as recordings, reports and exports have them.
//!
//! The [`FunctionInfo`](crate::function::FunctionInfo) of their probe tells their meaning. They
//! travel apart from events, so that an event stays four words.

use crate::function::{ValueInfo, ValueKind};
use crate::ingest::error::DecodeError;
use crate::ingest::event::Event;
use crate::units::{FuncId, Nanos, Pid, Tid};
use ctrace_common::{
    CountedValue, MAX_TEXT, MAX_VALUES, Mark, RESULT, Record, SINGLES, SLOT_LEN, SLOT_VALUES,
    TEXT_SLOTS, TEXTS, UNREAD, payload_slots,
};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// A value of a call.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Value {
    /// A signed integer.
    Signed(i64),
    /// An unsigned integer.
    Unsigned(u64),
    /// An address.
    Pointer(u64),
    /// True or false.
    Bool(bool),
    /// A byte that is a character.
    Char(u8),
    /// A floating-point number.
    Float(Float),
    /// A text.
    Text(Text),
    /// A number that has a name in the source.
    Enumerator(Arc<Enumerator>),
}

impl Value {
    /// Returns what a plot has of it.
    pub(crate) fn number(&self) -> Option<f64> {
        match self {
            Self::Signed(number) => Some(*number as f64),
            Self::Unsigned(number) => Some(*number as f64),
            Self::Float(number) => Some(number.get()),
            Self::Bool(is_true) => Some(f64::from(u8::from(*is_true))),
            Self::Pointer(_) | Self::Char(_) | Self::Text(_) | Self::Enumerator(_) => None,
        }
    }
}

/// The numbers of an enumeration that have names, at most.
pub const MOST_ENUMERATORS: usize = 256;

/// A number of an enumeration, and its name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Enumerator {
    pub number: i64,
    pub name: Arc<str>,
}

/// A floating-point number. Two are equal if all their bits are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Float(u64);

impl Float {
    pub fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub fn to_bits(self) -> u64 {
        self.0
    }

    pub fn get(self) -> f64 {
        f64::from_bits(self.0)
    }
}

impl Value {
    /// Makes the value of a kind whose words are whole numbers. A recording has these words.
    pub(crate) fn from_word(kind: ValueKind, word: u64) -> Option<Self> {
        Some(match kind {
            ValueKind::Signed => Self::Signed(word as i64),
            ValueKind::Unsigned => Self::Unsigned(word),
            ValueKind::Pointer => Self::Pointer(word),
            ValueKind::Bool => Self::Bool(word != 0),
            ValueKind::Char => Self::Char(word as u8),
            ValueKind::Float | ValueKind::Text | ValueKind::LongText => return None,
        })
    }
}

impl From<f64> for Float {
    fn from(number: f64) -> Self {
        Self(number.to_bits())
    }
}

/// Displays the shortest digits that mean the number. Those that JSON lacks have the names that
/// protocol buffers give them in JSON.
impl fmt::Display for Float {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.get() {
            number if number.is_finite() => write!(f, "{number:?}"),
            f64::INFINITY => f.write_str("Infinity"),
            f64::NEG_INFINITY => f.write_str("-Infinity"),
            _ => f.write_str("NaN"),
        }
    }
}

/// A text. The target wrote it: it need not be UTF-8, and can drive a terminal.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text {
    bytes: Arc<[u8]>,
    /// True if a program read only its beginning, as far as anyone knows.
    may_go_on: bool,
}

impl Text {
    /// Makes a text that a program read at an address. Returns `None` if there are more than
    /// [`MAX_TEXT`] bytes.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let may_go_on = bytes.len() == MAX_TEXT;
        (bytes.len() <= MAX_TEXT).then(|| Self { bytes: bytes.into(), may_go_on })
    }

    /// Makes a text that its writer has cut, if it had to. Returns `None` if there are more than
    /// [`Mark::LONGEST_TEXT`] bytes.
    pub fn long(bytes: &[u8]) -> Option<Self> {
        (bytes.len() <= Mark::LONGEST_TEXT).then(|| Self { bytes: bytes.into(), may_go_on: false })
    }

    /// Returns a text of so many bytes, of which a program read only the first ones.
    pub(crate) fn of_length(self, length: u64) -> Self {
        let read = usize::try_from(length).map_or(self.bytes.len(), |it| it.min(self.bytes.len()));
        let may_go_on = self.may_go_on && length > self.bytes.len() as u64;
        Self { bytes: self.bytes[..read].into(), may_go_on }
    }

    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Text {
    /// Writes bytes that are not UTF-8 as `\xff`, so that texts that differ look different, and `…` at the
    /// end of a text that may go on. What is UTF-8 is written by `write`.
    pub(crate) fn pieces<W: fmt::Write>(
        &self,
        to: &mut W,
        write: impl Fn(&mut W, &str) -> fmt::Result,
    ) -> fmt::Result {
        let mut chunks = self.bytes.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            write(to, chunk.valid())?;
            let invalid = chunk.invalid();
            let is_begun = std::str::from_utf8(invalid).is_err_and(|it| it.error_len().is_none());
            // A character that was cut is in the part that was not read.
            if self.may_go_on && is_begun && chunks.peek().is_none() {
                break;
            }
            invalid.iter().try_for_each(|byte| write!(to, "\\x{byte:02x}"))?;
        }
        to.write_str(if self.may_go_on { "…" } else { "" })
    }
}

/// Displays the text as it is, but for bytes that are not UTF-8.
impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.pieces(f, |f, piece| f.write_str(piece))
    }
}

/// The values that a program read at one event of a thread. The event has the same time and probe:
/// it is a point, the entry of a call, or its exit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RingPayload {
    pub time: Nanos,
    pub pid: Pid,
    pub tid: Tid,
    pub function: FuncId,
    /// One bit for each value, the first one's lowest: it could not be read, it is a text, or it is
    /// a floating-point number of 4 bytes.
    unread: u16,
    texts: u16,
    singles: u16,
    /// True if it is the result of a call, read at its exit.
    is_result: bool,
    /// The number of words that the record had room for.
    places: u8,
    /// A word for each value. Those beyond the function's values are 0.
    words: [u64; MAX_VALUES],
    /// The bytes of all texts, one after the other. Their words are their lengths.
    bytes: Box<[u8]>,
}

impl RingPayload {
    /// Reads the payload of a record and the slots after it.
    pub(crate) fn from_wire(record: &Record, rest: &[u8]) -> Result<Self, DecodeError> {
        const RESERVED: u64 = {
            let each = (1 << MAX_VALUES) - 1;
            !(each << UNREAD | each << TEXTS | each << SINGLES | 1 << RESULT)
        };
        let wrong_length = DecodeError::Length(size_of::<Record>() + rest.len());
        let [unread, texts, singles] =
            [UNREAD, TEXTS, SINGLES].map(|lowest| (record.sp >> lowest) as u16);
        if record.sp & RESERVED != 0 {
            return Err(DecodeError::Reserved(record.kind));
        }
        let text_slots = texts.count_ones() as usize * TEXT_SLOTS;
        let slots = 1 + rest.len() / SLOT_LEN;
        let word_slots = (slots - 1).checked_sub(text_slots).ok_or(wrong_length)?;
        let is_whole = rest.len().is_multiple_of(SLOT_LEN)
            && (2..=payload_slots(MAX_VALUES, 0)).contains(&(1 + word_slots))
            && usize::from(record.lost_before) == slots;
        if !is_whole {
            return Err(wrong_length);
        }
        let places = word_slots * SLOT_VALUES;
        let (wire, fields) = rest.split_at(word_slots * SLOT_LEN);
        let mut words = [0; MAX_VALUES];
        for (word, bytes) in words.iter_mut().zip(wire.as_chunks().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        let of = |bits: u16| words.iter().enumerate().filter(move |(at, _)| bits >> at & 1 == 1);
        let is_sound = u64::from(unread | texts | singles) >> places == 0
            && texts & singles == 0
            && of(texts).all(|(_, length)| *length <= MAX_TEXT as u64)
            && of(singles).all(|(_, bits)| u32::try_from(*bits).is_ok());
        if !is_sound {
            return Err(DecodeError::Values);
        }
        let of_texts = fields.chunks_exact(MAX_TEXT).zip(of(texts));
        let bytes = of_texts.flat_map(|(field, (_, length))| &field[..*length as usize]);
        let bytes = bytes.copied().collect();
        let (time, pid, tid) = (Nanos(record.ts_ns), Pid(record.pid), Tid(record.tid));
        let (function, places) = (FuncId(record.probe), places as u8);
        let is_result = record.sp >> RESULT & 1 == 1;
        Ok(Self {
            time,
            pid,
            tid,
            function,
            unread,
            texts,
            singles,
            is_result,
            places,
            words,
            bytes,
        })
    }

    /// Makes the payload of an entry of a marker: numbers, and a text behind them. Returns `None` if
    /// there are too many.
    pub(crate) fn of_marks(event: &Event, numbers: &[u64], text: Option<&[u8]>) -> Option<Self> {
        let mut words = [0; MAX_VALUES];
        words.get_mut(..numbers.len())?.copy_from_slice(numbers);
        let mut texts = 0;
        if let Some(text) = text {
            *words.get_mut(numbers.len())? = text.len() as u64;
            texts = 1 << numbers.len();
        }
        Some(Self {
            time: Nanos(event.ts()),
            pid: event.pid(),
            tid: event.tid(),
            function: event.func(),
            unread: 0,
            texts,
            singles: 0,
            is_result: false,
            places: numbers.len() as u8 + u8::from(text.is_some()),
            words,
            bytes: text.unwrap_or_default().into(),
        })
    }

    /// Returns the values, which have these kinds; `None` for one that could not be read or is of
    /// another kind. There are fewer if the record had no room for them.
    pub fn values(
        &self,
        kinds: impl IntoIterator<Item = ValueKind>,
    ) -> impl Iterator<Item = Option<Value>> {
        let words = self.words.iter().take(self.places.into()).enumerate();
        let mut bytes = &*self.bytes;
        words.zip(kinds).map(move |((place, &word), kind)| {
            let [is_unread, is_text, is_single] =
                [self.unread, self.texts, self.singles].map(|bits| bits >> place & 1 == 1);
            let text;
            (text, bytes) = bytes.split_at_checked(if is_text { word as usize } else { 0 })?;
            let value = value_of(kind, word, is_text.then_some(text), is_single)?;
            (!is_unread).then_some(value)
        })
    }

    /// Returns the word of a value that was read and is no text.
    pub(crate) fn word(&self, place: usize) -> Option<u64> {
        let is_known = place < self.places.into() && (self.unread | self.texts) >> place & 1 == 0;
        is_known.then(|| self.words[place])
    }

    pub(crate) fn is_result(&self) -> bool {
        self.is_result
    }

    /// Returns the number of texts, and of their bytes.
    pub fn texts(&self) -> (usize, usize) {
        (self.texts.count_ones() as usize, self.bytes.len())
    }
}

/// Returns the value of a kind that a program has read as this word, or as this text; `None` if it is of
/// another kind. `is_single`: the word is a floating-point number of 4 bytes.
fn value_of(kind: ValueKind, word: u64, text: Option<&[u8]>, is_single: bool) -> Option<Value> {
    Some(match (kind, text, is_single) {
        (ValueKind::Float, None, false) => Value::Float(Float::from_bits(word)),
        (ValueKind::Float, None, true) => {
            Value::Float(f64::from(f32::from_bits(word as u32)).into())
        }
        (ValueKind::Text, Some(text), _) => Value::Text(Text::new(text)?),
        (ValueKind::LongText, Some(text), _) => Value::Text(Text::long(text)?),
        (kind, None, false) => Value::from_word(kind, word)?,
        _ => return None,
    })
}

/// Returns the value by which programs have counted calls, as this describes it. `None` if it is of another
/// kind.
pub(crate) fn counted_value(info: &ValueInfo, counted: &CountedValue) -> Option<Value> {
    let CountedValue { forms, word, text } = counted;
    let [is_text, is_single] = [TEXTS, SINGLES].map(|lowest| forms >> lowest & 1 == 1);
    let bytes: Vec<u8> = text.iter().flat_map(|word| word.to_le_bytes()).collect();
    let text = if is_text { Some(bytes.get(..usize::try_from(*word).ok()?)?) } else { None };
    value_of(info.kind, *word, text, is_single).map(|value| info.named(value))
}
