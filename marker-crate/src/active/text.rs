//! The text of a message, formatted on the stack.

use core::{fmt, mem::MaybeUninit};

/// The most bytes of a text. This is `Mark::LONGEST_TEXT`.
pub(super) const LONGEST: usize = 1008;
pub(super) const CUT: &[u8] = "…".as_bytes();

/// A text of up to 1008 bytes. It is cut between two characters, and then ends in "…".
pub struct Text {
    /// The first `length` bytes are written. (Of an array of uninitialized bytes, the compiler would
    /// write all.)
    bytes: MaybeUninit<[u8; LONGEST]>,
    length: usize,
    is_cut: bool,
}

impl Text {
    #[inline]
    pub(super) fn new() -> Text {
        Text { bytes: MaybeUninit::uninit(), length: 0, is_cut: false }
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

impl fmt::Write for Text {
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
        let mut text = Text::new();
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
