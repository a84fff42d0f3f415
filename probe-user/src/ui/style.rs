//! The style of a rendering: width and colour. It is a value, so that rendering is pure;
//! [`super::terminal`] chooses it for an output.
//!
//! Text is marked with its tone. The marks become colour, or nothing, after layout: escape
//! sequences would be counted as width before.

use super::ascii;

/// The abilities of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// The width in columns. Without one, nothing is shortened.
    pub width: Option<usize>,
    pub colour: bool,
    /// True if the reader can see ASCII only.
    pub ascii: bool,
}

/// The meaning of a piece of text, which decides its colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Tone {
    #[default]
    Plain,
    Title,
    Heading,
    Group,
    Name,
    Dim,
    /// A share that stands out.
    Warm,
    /// The share to look at first.
    Hot,
    Warning,
}

impl Tone {
    /// Returns the tone of a share of time.
    pub(crate) fn of_percent(percent: f64) -> Self {
        if percent >= 20.0 {
            Self::Hot
        } else if percent >= 5.0 {
            Self::Warm
        } else if percent >= 0.1 {
            Self::Plain
        } else {
            Self::Dim
        }
    }

    /// Marks `text` with this tone. Marks have no width. The target's text cannot contain them,
    /// since [`ctrace_core::report::render::clean`] replaces such characters.
    pub(crate) fn mark(self, text: &str) -> String {
        match TONES.iter().position(|&tone| tone == self) {
            Some(index) if !text.is_empty() => {
                let start = char::from_u32(FIRST_MARK + index as u32).unwrap_or(END_MARK);
                format!("{start}{text}{END_MARK}")
            }
            _ => text.to_owned(),
        }
    }

    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Title | Self::Heading => "1",
            Self::Group => "36",
            Self::Name => "32",
            Self::Dim => "2",
            Self::Warm => "33",
            Self::Hot => "1;31",
            Self::Warning => "1;33",
        }
    }
}

/// The coloured tones. Their marks are the invisible characters from [`FIRST_MARK`] on.
const TONES: [Tone; 8] = [
    Tone::Title,
    Tone::Heading,
    Tone::Group,
    Tone::Name,
    Tone::Dim,
    Tone::Warm,
    Tone::Hot,
    Tone::Warning,
];
const FIRST_MARK: u32 = 0x2060;
const END_MARK: char = '\u{206f}';

/// Splits a line into pieces by tone, for outputs without escape sequences.
pub(crate) fn pieces(line: &str) -> Vec<(Tone, String)> {
    let (mut pieces, mut tone, mut text) = (Vec::new(), Tone::Plain, String::new());
    for c in line.chars() {
        let marked = u32::from(c).checked_sub(FIRST_MARK).and_then(|i| TONES.get(i as usize));
        let next = if c == END_MARK { Some(Tone::Plain) } else { marked.copied() };
        match next {
            Some(next) => {
                pieces.push((tone, std::mem::take(&mut text)));
                tone = next;
            }
            None => text.push(c),
        }
    }
    pieces.push((tone, text));
    pieces.retain(|(_, text)| !text.is_empty());
    pieces
}

impl Style {
    /// Turns the marks in `text` into colour, or removes them, and leaves characters that the
    /// reader can see.
    pub(crate) fn resolve(&self, text: &str) -> String {
        let text = self.coloured(text);
        if self.ascii { ascii::plain(&text) } else { text }
    }

    fn coloured(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        for c in text.chars() {
            let tone = u32::from(c).checked_sub(FIRST_MARK).and_then(|i| TONES.get(i as usize));
            match (tone, c) {
                (Some(tone), _) if self.colour => {
                    out += "\x1b[";
                    out += tone.code();
                    out.push('m');
                }
                (None, END_MARK) if self.colour => out += "\x1b[0m",
                (Some(_), _) | (None, END_MARK) => {}
                (None, c) => out.push(c),
            }
        }
        out
    }
}
