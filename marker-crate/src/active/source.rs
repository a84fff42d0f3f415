//! The contents that come with an entry: values, a text, or nothing.

use super::{
    record::record,
    sample,
    text::{CUT, LONGEST, Room, Text},
    texts::head,
};
use crate::value::{Number, Values};

/// Something that writes an entry and what comes before it, once its site is on.
pub trait Source {
    /// The types of its values.
    const TYPES: &'static [&'static str];

    /// Writes the entry of a site, for a function with this stack pointer.
    fn record(self, site: u64, sp: u64);

    /// Returns the stack pointer that the entry has. `sp` is that of the function around the site.
    #[inline(always)]
    fn stack(&self, sp: u64) -> u64 {
        sp
    }
}

/// An entry without values.
pub struct Nothing;

impl Source for Nothing {
    const TYPES: &'static [&'static str] = &[];

    #[inline(always)]
    fn record(self, site: u64, sp: u64) {
        record(site, sp, &[], None);
    }
}

/// Values that are computed when they are needed.
pub struct Lazy<F>(pub F);

impl<F: FnOnce() -> V, V: Values> Source for Lazy<F> {
    const TYPES: &'static [&'static str] = V::TYPES;

    #[inline(always)]
    fn record(self, site: u64, sp: u64) {
        record(site, sp, (self.0)().bits().as_ref(), None);
    }
}

/// The value of a plot, computed when it is needed.
pub struct Sample<F>(pub F);

impl<F: FnOnce() -> N, N: Number> Source for Sample<F> {
    const TYPES: &'static [&'static str] = &[N::TYPE];

    #[inline(always)]
    fn record(self, site: u64, sp: u64) {
        match const { N::TYPE.as_bytes() } {
            b"f64" => sample::float(site, sp, (self.0)().bits()),
            _ => sample::integer(site, sp, (self.0)().bits()),
        }
    }
}

/// The bytes of the name of a lock, at most. A longer one is cut between two characters, and ends in "…".
const LONGEST_NAME: usize = 63;

/// The address of a lock, and its name.
pub struct Named<'a>(pub u64, pub &'a str);

impl Source for Named<'_> {
    const TYPES: &'static [&'static str] = &["u64", "str"];

    #[inline(always)]
    fn record(self, site: u64, sp: u64) {
        let Named(lock, name) = self;
        match name.len() <= LONGEST_NAME {
            true => record(site, sp, &[lock], Some(name.as_bytes())),
            false => record_cut(site, sp, lock, name),
        }
    }
}

#[cold]
#[inline(never)]
fn record_cut(site: u64, sp: u64, lock: u64, name: &str) {
    let (name, mut room) = (head(name, LONGEST_NAME - CUT.len()).as_bytes(), [0; LONGEST_NAME]);
    let length = name.len() + CUT.len();
    room[..name.len()].copy_from_slice(name);
    room[name.len()..length].copy_from_slice(CUT);
    record(site, sp, &[lock], Some(&room[..length]));
}

/// A text that is formatted when it is needed.
struct Formatted<F> {
    /// The text, if there is nothing to format.
    plain: Option<&'static str>,
    format: F,
}

/// Makes the source of a message. `plain` is the text if there is nothing to format.
#[inline(always)]
pub fn formatted(plain: Option<&'static str>, format: impl FnOnce(&mut Text<'_>)) -> impl Source {
    Formatted { plain, format }
}

impl<F: FnOnce(&mut Text<'_>)> Source for Formatted<F> {
    const TYPES: &'static [&'static str] = &["str"];

    #[inline(always)]
    fn record(self, site: u64, sp: u64) {
        match self.plain {
            Some(plain) if plain.len() <= LONGEST => record(site, sp, &[], Some(plain.as_bytes())),
            Some(plain) => record_text(site, sp, |text| text.format(format_args!("{plain}"))),
            None => record_text(site, sp, self.format),
        }
    }
}

/// Formats the text in a frame of its own, which the function around the message then lacks.
#[cold]
#[inline(never)]
fn record_text(site: u64, sp: u64, format: impl FnOnce(&mut Text<'_>)) {
    let mut room = Room::uninit();
    let mut text = Text::new(&mut room);
    format(&mut text);
    record(site, sp, &[], Some(text.as_bytes()));
}
