//! Makes strings that come from the target harmless for a terminal.
//!
//! The target chooses symbol names, file names and thread names. An escape sequence could retitle
//! the reader's terminal, and a bidirectional override could falsify a table. So every such
//! character is shown as its code point instead. Code points that are not characters are shown so,
//! too, because XML forbids them.

use std::borrow::Cow;
use std::fmt::Write;

/// Returns true if `c` affects a terminal, or its neighbours, other than by being seen.
pub fn is_harmful(c: char) -> bool {
    c.is_control()
        || (c as u32) & 0xfffe == 0xfffe
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{fdd0}'..='\u{fdef}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// Returns `text` with every harmful character escaped like `\u{1b}`, borrowed if there is none.
pub fn clean(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 8);
    for c in text.chars() {
        if is_harmful(c) {
            // Writing to a String cannot fail.
            let _ = write!(out, "{}", c.escape_unicode());
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn harmless_text_is_borrowed() {
        assert!(matches!(clean("std::vec<漢字>::push → é"), Cow::Borrowed(_)));
    }

    #[test]
    fn harmful_characters_show_as_code_points() {
        assert_eq!(clean("a\x1b[2Jb"), "a\\u{1b}[2Jb");
        assert_eq!(clean("x\n\t\u{9b}\u{202e}"), "x\\u{a}\\u{9}\\u{9b}\\u{202e}");
        assert_eq!(clean("\u{fffe}\u{1ffff}\u{fdd0}"), "\\u{fffe}\\u{1ffff}\\u{fdd0}");
        assert!(matches!(clean("\u{fffd}"), Cow::Borrowed(_)));
    }
}
