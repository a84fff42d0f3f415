//! Payloads: values that a program reads when its probe is hit, in addition to the event of that
//! hit.
//!
//! A payload is a separate record of [`Kind::Payload`](crate::Kind::Payload), so events without
//! values cost nothing more. It has the time, the thread and the probe of its event, and follows
//! it. Its `lost_before` is the number of slots that it fills, including the first. A word for each
//! value lies in the slots after that one. Its `sp` has bits for each value: see [`UNREAD`],
//! [`TEXTS`] and [`SINGLES`]. [`RESULT`] says which end of a call they belong to.
//!
//! The word of a text is its length. Its bytes lie in a field of [`MAX_TEXT`] bytes; the fields
//! follow the words in the order of their values. Fields of one size keep the program simple: the
//! number of slots depends on the site alone.

use crate::operand::Operand;
use crate::python::PythonValues;
use crate::ring::SLOT_LEN;

/// The largest number of values of a payload: a USDT note has no more arguments.
pub const MAX_VALUES: usize = 12;
/// Values in a slot.
pub const SLOT_VALUES: usize = SLOT_LEN / 8;
/// Bytes of a text, at most. A program cuts a longer one, so a text of this length may go on.
pub const MAX_TEXT: usize = 64;
/// The largest number of texts of a function's entry. A point may have more.
pub const MAX_TEXTS: usize = 4;
/// Operands of the values at one site, and of the lengths of texts.
const MAX_SOURCES: usize = 16;
/// In the place of the length of a text that has no source: none is read there.
const NO_LENGTH: u8 = u8::MAX;
/// Slots of the field of a text.
pub const TEXT_SLOTS: usize = MAX_TEXT / SLOT_LEN;
/// Slots of the largest payload.
pub const PAYLOAD_SLOTS: usize = payload_slots(MAX_VALUES, MAX_VALUES);

/// The lowest bit in `sp` of a payload for values that could not be read. The first value has the
/// lowest bit; the same holds for the next two.
pub const UNREAD: u32 = 0;
/// The lowest bit in `sp` for texts.
pub const TEXTS: u32 = 16;
/// The lowest bit in `sp` for floating-point numbers of 4 bytes, which a program cannot widen.
pub const SINGLES: u32 = 32;
/// The bit in `sp` for a value that comes with the exit of a call: its result.
pub const RESULT: u32 = 48;

/// Returns the number of slots of a payload with this many values, of which some are texts.
pub const fn payload_slots(values: usize, texts: usize) -> usize {
    1 + values.div_ceil(SLOT_VALUES) + texts * TEXT_SLOTS
}

/// The sources of the values at one site: an element of the map `VALUES`. The values of a
/// function's entry have one, and those of its exit the next one.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ValueSources {
    /// The number of values. If it is 0, nothing is delivered.
    pub count: u32,
    /// The number of slots of the payload.
    pub slots: u32,
    /// The value of the payload's `sp` before anything is read: the bits of [`TEXTS`], [`SINGLES`]
    /// and [`RESULT`].
    pub forms: u64,
    /// For a text, the slot of the payload where its field begins, and 0 for any other value. The
    /// source of a text is its address.
    pub fields: [u8; MAX_VALUES],
    /// At the entry of a function with a condition: one more than its index in `CONDITIONS`. Else 0.
    pub condition: u32,
    /// For a text whose length is known, one more than the place of the length in `sources`. 0 for a
    /// text that ends with a 0, and for any other value; 255 for a text of a Python function.
    pub lengths: [u8; MAX_VALUES],
    /// The values that tell of a Python function. They have no source.
    pub python: PythonValues,
    /// Those of the values, and behind them those of lengths.
    pub sources: [Operand; MAX_SOURCES],
}

/// The form in which a program delivers a number that it has read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ValueForm {
    Word,
    /// A floating-point number of 4 bytes.
    Single,
    /// The address of a text that ends with a 0.
    Text,
    /// The address of a text, and the number of its bytes.
    Counted(Operand),
    /// The text of the Python function around the call that has its qualified name.
    PythonName,
    /// The one that has the path of its file.
    PythonFile,
    /// The number of the line where its definition begins.
    PythonLine,
}

impl ValueForm {
    /// True for texts.
    pub fn is_text(self) -> bool {
        matches!(self, Self::Text | Self::Counted(_) | Self::PythonName | Self::PythonFile)
    }
}

impl ValueSources {
    /// True if there are texts among the values.
    pub fn has_texts(&self) -> bool {
        self.fields.iter().any(|field| *field != 0)
    }

    /// Makes the sources of these values: [`MAX_VALUES`] at most, and [`MAX_TEXTS`] with a length.
    pub fn new(values: &[(Operand, ValueForm)]) -> Self {
        let texts = values.iter().filter(|(_, form)| form.is_text()).count();
        let mut all = Self {
            count: values.len() as u32,
            slots: payload_slots(values.len(), texts) as u32,
            ..Self::default()
        };
        let mut field = payload_slots(values.len(), 0) as u8;
        let mut length = values.len();
        for (place, (operand, form)) in values.iter().enumerate() {
            all.sources[place] = *operand;
            match form {
                ValueForm::Single => all.forms |= 1 << (SINGLES as usize + place),
                ValueForm::PythonName => all.python.name = place as u8 + 1,
                ValueForm::PythonFile => all.python.file = place as u8 + 1,
                ValueForm::PythonLine => all.python.line = place as u8 + 1,
                ValueForm::Word | ValueForm::Text | ValueForm::Counted(_) => {}
            }
            if form.is_text() {
                all.forms |= 1 << (TEXTS as usize + place);
                all.fields[place] = field;
                field += TEXT_SLOTS as u8;
            }
            all.lengths[place] = match form {
                ValueForm::Counted(operand) => {
                    all.sources[length] = *operand;
                    length += 1;
                    length as u8
                }
                ValueForm::PythonName | ValueForm::PythonFile => NO_LENGTH,
                _ => 0,
            };
        }
        all
    }

    /// Makes the source of a function's result, if it is wanted.
    pub fn of_result(value: Option<(Operand, ValueForm)>) -> Self {
        match value {
            Some(value) => {
                let sources = Self::new(&[value]);
                Self { forms: sources.forms | 1 << RESULT, ..sources }
            }
            None => Self::default(),
        }
    }
}

const _: () = assert!(size_of::<ValueSources>() == 48 + MAX_SOURCES * size_of::<Operand>());
const _: () = assert!(MAX_SOURCES == MAX_VALUES + MAX_TEXTS);
const _: () = assert!(MAX_VALUES <= (TEXTS - UNREAD) as usize && TEXT_SLOTS * SLOT_LEN == MAX_TEXT);
