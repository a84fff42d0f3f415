//! The text of a message, formatted on the stack.

use core::{fmt, mem::MaybeUninit};

/// The most bytes of a text. This is `Mark::LONGEST_TEXT`.
pub(super) const LONGEST: usize = 1008;
pub(super) const CUT: &[u8] = "…".as_bytes();
/// A sign and three times eight digits.
const LONGEST_INTEGER: usize = 25;
const DIGITS_8: u64 = 100_000_000;

/// Memory for a text. It is no part of [`Text`]: the compiler would fill it with zeros along with the
/// length.
pub(super) type Room = MaybeUninit<[u8; LONGEST]>;

/// A text of up to 1008 bytes. It is cut between two characters, and then ends in "…".
pub struct Text<'a> {
    /// The first `length` bytes are written.
    bytes: &'a mut Room,
    length: usize,
    is_cut: bool,
}

impl<'a> Text<'a> {
    #[inline]
    pub(super) fn new(bytes: &'a mut Room) -> Text<'a> {
        Text { bytes, length: 0, is_cut: false }
    }

    #[inline]
    pub(super) fn as_bytes(&self) -> &[u8] {
        // SAFETY: so many bytes are written.
        unsafe { core::slice::from_raw_parts(self.bytes.as_ptr().cast(), self.length) }
    }

    /// Appends a formatted text. Formatting ends where the text is cut.
    #[inline]
    pub fn format(&mut self, text: fmt::Arguments<'_>) {
        let _ = fmt::Write::write_fmt(self, text);
    }

    /// Appends a text.
    #[inline]
    pub fn add(&mut self, text: &str) {
        let _ = fmt::Write::write_str(self, text);
    }

    /// Appends a number in decimal digits.
    pub fn add_integer(&mut self, magnitude: u64, is_negative: bool) {
        if self.length > LONGEST - LONGEST_INTEGER {
            return self.format(format_args!("{}{magnitude}", if is_negative { "-" } else { "" }));
        }
        if is_negative {
            self.append(b"-");
        }
        if magnitude < DIGITS_8 {
            return self.add_digits(magnitude as u32, true);
        }
        let (high, low) = (magnitude / DIGITS_8, (magnitude % DIGITS_8) as u32);
        if high < DIGITS_8 {
            self.add_digits(high as u32, true);
        } else {
            self.add_digits((high / DIGITS_8) as u32, true);
            self.add_digits((high % DIGITS_8) as u32, false);
        }
        self.add_digits(low, false);
    }

    /// Appends the digits of a number of at most eight, with leading zeros unless it `begins`. There is
    /// room for eight.
    #[inline]
    fn add_digits(&mut self, number: u32, begins: bool) {
        let digits = eight_digits(number);
        let zeros = if begins { (digits.trailing_zeros() / 8).min(7) } else { 0 };
        let text = (digits | u64::from_le_bytes([b'0'; 8])) >> (8 * zeros);
        let to = self.bytes.as_mut_ptr().cast::<u8>();
        // SAFETY: after `length` bytes, there is room for eight.
        unsafe { to.add(self.length).cast::<u64>().write_unaligned(text.to_le()) };
        self.length += 8 - zeros as usize;
    }

    /// Appends as much of a text as there is room for.
    #[inline]
    fn append(&mut self, text: &[u8]) {
        let length = text.len().min(LONGEST - self.length);
        let to = self.bytes.as_mut_ptr().cast::<u8>();
        // SAFETY: after `length` bytes, there is room for so many. The text lies elsewhere.
        unsafe { copy(text.as_ptr(), to.add(self.length), length) };
        self.length += length;
    }

    /// Appends what there is room for, with "…" in place of the last characters.
    #[cold]
    fn cut(&mut self, text: &[u8]) {
        self.append(text);
        let bytes = self.as_bytes();
        let mut end = LONGEST - CUT.len();
        while end > 0 && bytes[end] & 0xc0 == 0x80 {
            end -= 1;
        }
        self.length = end;
        self.append(CUT);
        self.is_cut = true;
    }
}

/// Returns the eight digits of a number below 100,000,000, the first one in the lowest byte. Each step
/// halves all parts of the number at once.
#[inline]
fn eight_digits(number: u32) -> u64 {
    let fours = u64::from(number / 10_000) | u64::from(number % 10_000) << 32;
    let hundreds = ((fours * 5243) >> 19) & 0x0000_007f_0000_007f;
    let twos = hundreds | (fours - hundreds * 100) << 16;
    let tens = ((twos * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (twos - tens * 10) << 8
}

/// Copies bytes. Pieces of a message are short: most are copied without a call, as two words that may
/// overlap.
///
/// # Safety
/// As for `copy_nonoverlapping`.
#[inline(always)]
unsafe fn copy(from: *const u8, to: *mut u8, length: usize) {
    // SAFETY: from both places on, there are `length` bytes.
    unsafe {
        match length {
            8..=16 => {
                to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned());
                let (from, to) = (from.add(length - 8), to.add(length - 8));
                to.cast::<u64>().write_unaligned(from.cast::<u64>().read_unaligned());
            }
            4..=7 => {
                to.cast::<u32>().write_unaligned(from.cast::<u32>().read_unaligned());
                let (from, to) = (from.add(length - 4), to.add(length - 4));
                to.cast::<u32>().write_unaligned(from.cast::<u32>().read_unaligned());
            }
            _ => core::ptr::copy_nonoverlapping(from, to, length),
        }
    }
}

impl fmt::Write for Text<'_> {
    #[inline]
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.is_cut {
            return Err(fmt::Error);
        }
        if text.len() <= LONGEST - self.length {
            self.append(text.as_bytes());
            return Ok(());
        }
        self.cut(text.as_bytes());
        Err(fmt::Error)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use core::fmt::Write;
    use std::string::String;

    fn text(pieces: &[&str]) -> String {
        let mut room = Room::uninit();
        let mut text = Text::new(&mut room);
        let fits = pieces.iter().map(|piece| text.write_str(piece).is_ok()).last();
        assert_eq!(fits, Some(pieces.concat().len() <= LONGEST));
        String::from_utf8(text.as_bytes().to_vec()).unwrap()
    }

    #[test]
    fn what_fits_is_kept() {
        assert_eq!(text(&[""]), "");
        assert_eq!(text(&["a", "", "bü"]), "abü");
        let pieces = (0..40).map(|n| &"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMN"[..n]);
        let pieces = pieces.collect::<std::vec::Vec<_>>();
        assert_eq!(text(&pieces), pieces.concat());
        let longest = "x".repeat(LONGEST);
        assert_eq!(text(&[&longest, ""]), longest);
        assert_eq!(text(&[&longest[..7], &longest[7..]]), longest);
    }

    #[test]
    fn a_long_text_is_cut_between_characters() {
        for (character, lengths) in [("x", 1005), ("ä", 1004), ("日", 1005), ("🦀", 1004)] {
            let long = character.repeat(1009);
            let expected = std::format!("{}…", &long[..lengths]);
            assert_eq!(text(&[&long]), expected);
            assert_eq!(text(&[&long[..1004 / character.len() * character.len()], &long]), expected);
            // Nothing comes after it.
            assert_eq!(text(&[&long, "end"]), expected);
        }
    }
}
