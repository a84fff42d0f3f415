//! How a rendering may look: its width and whether it has colour. A value, so that rendering is
//! pure; [`super::terminal`] finds out what is right for an output.
//!
//! Text is marked with what it is, and the marks become colour, or nothing, when all is laid out:
//! escape sequences would be counted as width on the way.

/// What the output can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// Columns of the terminal; nothing is shortened without one.
    pub width: Option<usize>,
    pub colour: bool,
}

/// What a piece of text is, which decides its colour.
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
    /// The tone of a share of time.
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

    /// `text` marked as being of this tone. Marks take no room, and no text of the target has
    /// them, since [`ctrace_core::report::render::clean`] replaces such characters.
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

/// The tones that have a colour; their marks are the invisible characters from [`FIRST_MARK`] on.
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

/// A line's pieces, each with its tone, where marks cannot become escape sequences.
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
    /// `text` with its marks turned into colour, or taken away.
    pub(crate) fn resolve(&self, text: &str) -> String {
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
