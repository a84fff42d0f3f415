//! Reads what lies in the slots before an entry: a name that only the program knows, and values.

use super::layout::{BUFFER_LEN, TIME_MASK, mark_at};
use crate::function::ValueInfo;
use ctrace_common::Mark;

/// The values that come with each entry of a site: some numbers, and a text behind them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Carried {
    pub numbers: u8,
    pub has_text: bool,
}

impl Carried {
    /// Returns those of a marker whose entries have these values.
    pub fn of(values: &[ValueInfo]) -> Self {
        let has_text = values.last().is_some_and(|last| last.kind.is_text());
        Self { numbers: values.len() as u8 - u8::from(has_text), has_text }
    }

    /// Returns whether there are none.
    #[inline]
    pub(super) fn is_nothing(self) -> bool {
        self == Self::default()
    }
}

/// The values of one entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EntryValues<'a> {
    pub numbers: &'a [u64],
    pub text: Option<&'a [u8]>,
}

/// Memory for the values of an entry, which is used again for the next one.
#[derive(Debug, Default)]
pub(super) struct ValueRoom {
    numbers: [u64; Mark::MOST_VALUES],
    text: Vec<u8>,
}

impl ValueRoom {
    /// Reads the values in the slots before the entry at `index`. Returns `None` if they are not all
    /// there.
    pub(super) fn read(
        &mut self,
        buffer: &[u8; BUFFER_LEN],
        index: usize,
        carried: Carried,
    ) -> Option<EntryValues<'_>> {
        let mut first = index;
        if carried.has_text {
            first = text_before(buffer, index, Mark::LONGEST_TEXT, &mut self.text)?;
        }
        let numbers = self.numbers.get_mut(..carried.numbers.into())?;
        first = first.checked_sub(numbers.len())?;
        for (index, number) in (first..).zip(&mut *numbers) {
            *number = value_at(buffer, index)?;
        }
        Some(EntryValues { numbers, text: carried.has_text.then_some(&*self.text) })
    }
}

/// Reads the name in the slots before the one at `index`, or before the values there, into `name`.
/// Returns whether it is all there.
pub(super) fn name_before(buffer: &[u8; BUFFER_LEN], index: usize, name: &mut Vec<u8>) -> bool {
    let is_value = |index: &usize| value_at(buffer, *index).is_some();
    let values = (0..index).rev().take(Mark::MOST_VALUES).take_while(is_value).count();
    text_before(buffer, index - values, Mark::LONGEST_NAME, name).is_some()
}

/// Reads the text in the slots before the one at `index` into `text`. Returns the first of these
/// slots if all of it is there.
fn text_before(
    buffer: &[u8; BUFFER_LEN],
    index: usize,
    most: usize,
    text: &mut Vec<u8>,
) -> Option<usize> {
    let tag_at = |index| mark_at(buffer, index).tag;
    let kind_at = |index| tag_at(index) & (Mark::EXIT | Mark::WHOLE | Mark::KIND);
    text.clear();
    let back = (0..index).rev().take_while(|index| kind_at(*index) == Mark::NAME_GOES_ON).count();
    let first = index.checked_sub(back + 1).filter(|it| kind_at(*it) == Mark::NAME_BEGINS)?;
    for index in first..index {
        let [head, piece @ ..] = tag_at(index).to_le_bytes();
        text.extend_from_slice(&piece[..usize::from(head >> Mark::PIECE_SHIFT).min(piece.len())]);
    }
    (text.len() <= most).then_some(first)
}

/// Returns the value in the slot at `index`, if there is one.
fn value_at(buffer: &[u8; BUFFER_LEN], index: usize) -> Option<u64> {
    /// The bits below those of a value.
    const HEAD: u64 = u64::MAX >> Mark::TIME_BITS;
    let mark = mark_at(buffer, index);
    let is_value = mark.tag & HEAD == Mark::VALUE && mark.time & TIME_MASK != 0;
    is_value.then_some(mark.value())
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::layout::tests::{buffer, put};
    use super::super::layout::{Moment, Slot};
    use super::*;
    use ctrace_common::{HEADER_LEN, MARK_LEN};

    const STACK: u64 = 0x7ffd_cafe_b000;
    const SITE: u64 = 0x5555_5555_4020;

    /// Writes a name as a runtime would, from this slot on. Returns the slot behind it.
    pub(in super::super) fn put_name(
        buffer: &mut [u8; BUFFER_LEN],
        index: usize,
        name: &[u8],
    ) -> usize {
        let pieces = if name.is_empty() { vec![&[][..]] } else { name.chunks(7).collect() };
        for (nth, piece) in pieces.iter().enumerate() {
            let kind = if nth == 0 { 4 } else { 8 };
            let at = HEADER_LEN + (index + nth) * MARK_LEN;
            buffer[at..at + 8].copy_from_slice(&77_u64.to_le_bytes());
            buffer[at + 8] = kind | (piece.len() as u8) << 5;
            buffer[at + 9..at + 9 + piece.len()].copy_from_slice(piece);
        }
        index + pieces.len()
    }

    #[test]
    fn a_name_is_before_its_entry() {
        let mut bytes = buffer(64, 0, 0);
        let mut name = Vec::new();
        let entry = (5, STACK, SITE, false);
        for text in ["", "parse", "a name of 21 letters.", "and some more than that"] {
            let index = put_name(&mut bytes, 2, text.as_bytes());
            put(&mut bytes, index, entry);
            assert!((2..index).all(|index| Slot::read(&bytes, index).moment == Moment::Piece));
            assert!(name_before(&bytes, index, &mut name));
            assert_eq!(name, text.as_bytes());
        }
    }

    #[test]
    fn a_name_that_lacks_a_piece_is_none() {
        let mut bytes = buffer(64, 0, 0);
        let mut name = Vec::new();
        let index = put_name(&mut bytes, 2, b"three pieces of it");
        assert!(!name_before(&bytes, 0, &mut name) && !name_before(&bytes, 2, &mut name));
        for piece in 2..index {
            let mut torn = bytes.clone();
            let at = HEADER_LEN + piece * MARK_LEN;
            torn[at..at + MARK_LEN].fill(0);
            assert!(!name_before(&torn, index, &mut name), "{piece}");
        }
        let index = put_name(&mut bytes, 2, &[b'x'; 253]);
        assert!(!name_before(&bytes, index, &mut name), "no runtime writes so much");
    }

    /// Writes a value as a runtime would. Returns the slot behind it.
    pub(in super::super) fn put_value(
        buffer: &mut [u8; BUFFER_LEN],
        index: usize,
        value: u64,
    ) -> usize {
        let at = HEADER_LEN + index * MARK_LEN;
        let words = [77 | value << 48, value >> 16 << 16 | 4 << 2];
        buffer[at..at + 8].copy_from_slice(&words[0].to_le_bytes());
        buffer[at + 8..at + 16].copy_from_slice(&words[1].to_le_bytes());
        index + 1
    }

    const ALL: Carried = Carried { numbers: 3, has_text: true };
    const NUMBERS: [u64; 3] = [u64::MAX, 0, 0x0123_4567_89ab_cdef];

    /// Writes these numbers, a text and an entry from slot 2 on. Returns the slot of the entry.
    fn put_all(bytes: &mut [u8; BUFFER_LEN], text: &[u8]) -> usize {
        let index = NUMBERS.iter().fold(2, |index, value| put_value(bytes, index, *value));
        let index = put_name(bytes, index, text);
        put(bytes, index, (5, STACK, SITE, false));
        index
    }

    #[test]
    fn values_are_before_their_entry() {
        let longest = [b'x'; 1008];
        for text in [&b""[..], b"miss for 41", &longest] {
            let mut bytes = buffer(64, 0, 0);
            let index = put_all(&mut bytes, text);
            assert!((2..index).all(|index| Slot::read(&bytes, index).moment == Moment::Piece));
            let mut room = ValueRoom::default();
            let values = EntryValues { numbers: &NUMBERS, text: Some(text) };
            assert_eq!(room.read(&bytes, index, ALL), Some(values));
        }
    }

    #[test]
    fn values_that_lack_a_piece_are_none() {
        let mut bytes = buffer(64, 0, 0);
        let index = put_all(&mut bytes, b"three pieces of it");
        let mut room = ValueRoom::default();
        for piece in 2..index {
            let mut torn = bytes.clone();
            let at = HEADER_LEN + piece * MARK_LEN;
            torn[at..at + MARK_LEN].fill(0);
            assert_eq!(room.read(&torn, index, ALL), None, "{piece}");
        }
        let more = Carried { numbers: 4, ..ALL };
        assert_eq!(room.read(&bytes, index, more), None);
        assert_eq!(room.read(&bytes, index, Carried { numbers: 5, ..ALL }), None);
        assert_eq!(room.read(&bytes, 0, ALL), None);
        let index = put_all(&mut bytes, &[b'x'; 1009]);
        assert_eq!(room.read(&bytes, index, ALL), None, "no runtime writes so much");
    }

    #[test]
    fn a_name_is_before_the_values() {
        let mut bytes = buffer(64, 0, 0);
        let index = put_name(&mut bytes, 2, b"of a query");
        let index = NUMBERS.iter().fold(index, |index, value| put_value(&mut bytes, index, *value));
        put(&mut bytes, index, (5, STACK, SITE, false));
        let mut name = Vec::new();
        assert!(name_before(&bytes, index, &mut name));
        assert_eq!(name, b"of a query");
        let numbers = Carried { numbers: 3, has_text: false };
        let values = EntryValues { numbers: &NUMBERS, text: None };
        assert_eq!(ValueRoom::default().read(&bytes, index, numbers), Some(values));
    }
}
