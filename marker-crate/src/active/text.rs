//! The text of a message, formatted on the stack.

use core::{fmt, mem::MaybeUninit};

/// The most bytes of a text. This is `Mark::LONGEST_TEXT`.
pub(super) const LONGEST: usize = 1008;
const CUT: &[u8] = "…".as_bytes();

/// A text of up to 1008 bytes. It is cut between two characters, and then ends in "…".
pub struct Text {
    bytes: [MaybeUninit<u8>; LONGEST],
    length: usize,
    is_cut: bool,
}

impl Text {
    #[inline]
    pub(super) fn new() -> Text {
        Text { bytes: [MaybeUninit::uninit(); LONGEST], length: 0, is_cut: false }
    }

    #[inline]
    pub(super) fn as_bytes(&self) -> &[u8] {
        let written = &self.bytes[..self.length];
        // SAFETY: the first `length` bytes are written; both types have the same layout.
        unsafe { &*(core::ptr::from_ref(written) as *const [u8]) }
    }

    /// Appends a formatted text. Formatting ends where the text is cut.
    #[inline]
    pub fn format(&mut self, text: fmt::Arguments<'_>) {
        let _ = fmt::Write::write_fmt(self, text);
    }

    #[inline]
    fn append(&mut self, text: &[u8]) {
        let room = &mut self.bytes[self.length..][..text.len()];
        // SAFETY: as many bytes as `room` has; a text that is not ours and one that is do not overlap.
        unsafe {
            core::ptr::copy_nonoverlapping(text.as_ptr(), room.as_mut_ptr().cast(), text.len());
        }
        self.length += text.len();
    }

    /// Appends what there is room for, with "…" in place of the last characters.
    #[cold]
    fn cut(&mut self, text: &[u8]) {
        let room = LONGEST - self.length;
        self.append(&text[..room]);
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
