//! Replaces the characters of tables and plots where the terminal has ASCII only. Each takes as many
//! columns as before.

use unicode_width::UnicodeWidthChar as _;

/// Our own characters, and their likeness.
const LIKE: [(&str, char); 18] = [
    ("─▁▂", '-'),
    ("│├╎", '|'),
    ("└", '`'),
    ("┼▒", '+'),
    ("▓", '%'),
    ("█▇▆▅", '#'),
    ("▉▊▋▌▄", '='),
    ("▍▎▏░▃⋮", ':'),
    ("·", '.'),
    ("…", '~'),
    ("–", '-'),
    ("µ", 'u'),
    ("×", 'x'),
    ("→›", '>'),
    ("▼↓", 'v'),
    ("▲↑", '^'),
    ("←◂", '<'),
    ("±", '~'),
];

/// Returns the text without characters beyond ASCII. Those of names become `?`.
pub(crate) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() {
            out.push(c);
            continue;
        }
        let like = LIKE.iter().find(|(all, _)| all.contains(c)).map_or('?', |(_, like)| *like);
        out.extend(std::iter::repeat_n(like, c.width().unwrap_or(0)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use unicode_width::UnicodeWidthStr as _;

    #[test]
    fn every_character_keeps_its_width() {
        let text = "├─ └─ naïve 漢字  1.5 µs │ ███▌ – …";
        assert_eq!(plain(text), "|- `- na?ve ????  1.5 us | ###= - ~");
        assert_eq!(plain(text).width(), text.width());
    }
}
