//! Reads what lies in the slots before an entry: a name that only the program knows, and values.

use super::layout::{BUFFER_LEN, Slot, TIME_MASK, mark_at};
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
        if let Some(value) = sample_at(buffer, index) {
            let is_sample = carried == Carried { numbers: 1, has_text: false };
            self.numbers[0] = value;
            let numbers = self.numbers.get(..1).filter(|_| is_sample)?;
            return Some(EntryValues { numbers, text: None });
        }
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
    let kind_at = |index| mark_at(buffer, index).tag & (Mark::EXIT | Mark::WHOLE | Mark::KIND);
    text.clear();
    let goes_on = |kind| matches!(kind, Mark::NAME_GOES_ON | Mark::LONG_NAME_GOES_ON);
    let begins = |kind| matches!(kind, Mark::NAME_BEGINS | Mark::LONG_NAME_BEGINS);
    let back = (0..index).rev().take_while(|index| goes_on(kind_at(*index))).count();
    let first = index.checked_sub(back + 1).filter(|it| begins(kind_at(*it)))?;
    for index in first..index {
        if !Slot::is_written(buffer, index) {
            return None;
        }
        let (piece, length) = mark_at(buffer, index).piece();
        text.extend_from_slice(piece.get(..length)?);
    }
    (text.len() <= most).then_some(first)
}

/// Returns the value in the entry at `index`, if it is a sample.
fn sample_at(buffer: &[u8; BUFFER_LEN], index: usize) -> Option<u64> {
    let mark = mark_at(buffer, index);
    let kind = mark.tag & (Mark::EXIT | Mark::WHOLE | Mark::KIND);
    (kind == Mark::SAMPLE).then(|| match mark.sample() {
        (integer, false) => i64::from(integer) as u64,
        (integer, true) => f64::from(integer).to_bits(),
    })
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
    use super::super::layout::{Moment, written_times};
    use super::*;
    use ctrace_common::{HEADER_LEN, MARK_LEN};

    const STACK: u64 = 0x7ffd_cafe_b000;
    const SITE: u64 = 0x5555_5555_4020;

    /// Writes a name as a runtime of version 2 would, from this slot on. Returns the slot behind it.
    fn put_dense_name(buffer: &mut [u8; BUFFER_LEN], index: usize, name: &[u8]) -> usize {
        let pieces = if name.is_empty() { vec![&[][..]] } else { name.chunks(15).collect() };
        for (nth, piece) in pieces.iter().enumerate() {
            let Some((in_time, in_tag)) = piece.split_first_chunk::<8>() else {
                put_piece(buffer, index + nth, nth, piece);
                continue;
            };
            let at = HEADER_LEN + (index + nth) * MARK_LEN;
            buffer[at..at + 8].copy_from_slice(&in_time.map(|byte| !byte));
            buffer[at + 8] = if nth == 0 { 20 } else { 24 } | (in_tag.len() as u8) << 5;
            buffer[at + 9..at + 9 + in_tag.len()].copy_from_slice(in_tag);
        }
        index + pieces.len()
    }

    /// Writes a name as a runtime of version 1 would, from this slot on. Returns the slot behind it.
    pub(in super::super) fn put_name(
        buffer: &mut [u8; BUFFER_LEN],
        index: usize,
        name: &[u8],
    ) -> usize {
        let pieces = if name.is_empty() { vec![&[][..]] } else { name.chunks(7).collect() };
        for (nth, piece) in pieces.iter().enumerate() {
            put_piece(buffer, index + nth, nth, piece);
        }
        index + pieces.len()
    }

    /// Writes the piece number `nth` of a name, of at most 7 bytes.
    fn put_piece(buffer: &mut [u8; BUFFER_LEN], index: usize, nth: usize, piece: &[u8]) {
        let at = HEADER_LEN + index * MARK_LEN;
        buffer[at..at + 8].copy_from_slice(&77_u64.to_le_bytes());
        buffer[at + 8] = if nth == 0 { 4 } else { 8 } | (piece.len() as u8) << 5;
        buffer[at + 9..at + 9 + piece.len()].copy_from_slice(piece);
    }

    type PutName = fn(&mut [u8; BUFFER_LEN], usize, &[u8]) -> usize;
    const PUT_NAME: [PutName; 2] = [put_name, put_dense_name];

    #[test]
    fn a_name_is_before_its_entry() {
        let mut bytes = buffer(64, 0, 0);
        let mut name = Vec::new();
        let entry = (5, STACK, SITE, false);
        let texts = ["", "parse", "a name of 21 letters.", "and some more than that"];
        let texts =
            texts.into_iter().chain((0..31).map(|end| &"a text of up to thirty letters."[..end]));
        for (text, put_name) in texts.flat_map(|text| PUT_NAME.map(|put_name| (text, put_name))) {
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
        for put_name in PUT_NAME {
            let index = put_name(&mut bytes, 2, b"three or more pieces of it, long or short");
            assert!(!name_before(&bytes, 0, &mut name) && !name_before(&bytes, 2, &mut name));
            for (piece, torn_bytes) in (2..index).flat_map(|piece| [(piece, 8), (piece, MARK_LEN)])
            {
                let mut torn = bytes.clone();
                let at = HEADER_LEN + piece * MARK_LEN;
                torn[at..at + torn_bytes].fill(0);
                assert!(!name_before(&torn, index, &mut name), "{piece}");
            }
            let index = put_name(&mut bytes, 2, &[b'x'; 253]);
            assert!(!name_before(&bytes, index, &mut name), "no runtime writes so much");
        }
    }

    #[test]
    fn a_long_piece_takes_no_bytes_that_are_not_its_own() {
        let mut bytes = buffer(64, 0, 0);
        let index = put_dense_name(&mut bytes, 2, b"eight and seven, and then twenty");
        assert_eq!(index, 5);
        put(&mut bytes, index, (5, STACK, SITE, false));
        assert_eq!(written_times(&bytes).collect::<Vec<_>>(), [77, 5], "bytes are no times");
        let mut name = Vec::new();
        assert!(name_before(&bytes, index, &mut name));
        assert_eq!(name, b"eight and seven, and then twenty");
        // What lies behind the piece's length is no part of it.
        bytes[HEADER_LEN + 3 * MARK_LEN + 8] &= 0x1f;
        bytes[HEADER_LEN + 3 * MARK_LEN + 8] |= 2 << 5;
        assert!(name_before(&bytes, index, &mut name));
        assert_eq!(name, b"eight and seven, and thenty");
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
    fn put_all(bytes: &mut [u8; BUFFER_LEN], put_name: PutName, text: &[u8]) -> usize {
        let index = NUMBERS.iter().fold(2, |index, value| put_value(bytes, index, *value));
        let index = put_name(bytes, index, text);
        put(bytes, index, (5, STACK, SITE, false));
        index
    }

    #[test]
    fn values_are_before_their_entry() {
        let longest = [b'x'; 1008];
        let texts = [&b""[..], b"miss for 41", &longest];
        for (text, put_name) in texts.into_iter().flat_map(|text| PUT_NAME.map(|it| (text, it))) {
            let mut bytes = buffer(64, 0, 0);
            let index = put_all(&mut bytes, put_name, text);
            assert!((2..index).all(|index| Slot::read(&bytes, index).moment == Moment::Piece));
            let mut room = ValueRoom::default();
            let values = EntryValues { numbers: &NUMBERS, text: Some(text) };
            assert_eq!(room.read(&bytes, index, ALL), Some(values));
        }
    }

    #[test]
    fn values_that_lack_a_piece_are_none() {
        let mut bytes = buffer(64, 0, 0);
        let index = put_all(&mut bytes, put_name, b"three pieces of it");
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
        let index = put_all(&mut bytes, put_dense_name, &[b'x'; 1009]);
        assert_eq!(room.read(&bytes, index, ALL), None, "no runtime writes so much");
    }

    #[test]
    fn a_sample_has_its_value_in_its_own_slot() {
        let one = Carried { numbers: 1, has_text: false };
        let mut room = ValueRoom::default();
        for (integer, is_float, value) in [
            (-32_768_i16, 0, -32_768_i64 as u64),
            (32_767, 0, 32_767),
            (-3, 1, (-3.0_f64).to_bits()),
            (32_767, 1, 32_767_f64.to_bits()),
            (0, 1, 0),
        ] {
            let mut bytes = buffer(64, 0, 0);
            let index = put_value(&mut bytes, 2, 5);
            put(&mut bytes, index, (5, 0, SITE, false));
            let tag = SITE | 7 << 2 | is_float << 47 | u64::from(integer as u16) << 48;
            let at = HEADER_LEN + index * MARK_LEN;
            bytes[at..at + 8].copy_from_slice(&(5 | STACK >> 4 << 48).to_le_bytes());
            bytes[at + 8..at + 16].copy_from_slice(&tag.to_le_bytes());
            let slot = Slot::read(&bytes, index);
            assert_eq!((slot.moment, slot.site, slot.time), (Moment::Sample, SITE, 5));
            assert_eq!(slot.stack_pointer(STACK + 0x7_fff0), STACK);
            let values = EntryValues { numbers: &[value], text: None };
            assert_eq!(room.read(&bytes, index, one), Some(values));
            // The site says otherwise.
            assert_eq!(room.read(&bytes, index, Carried { numbers: 2, ..one }), None);
            assert_eq!(room.read(&bytes, index, Carried { has_text: true, ..one }), None);
        }
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
