//! The style of a rendering: width and colour. It is a value, so that rendering is pure;
//! [`crate::ui::output::terminal`] chooses it for an output.
//!
//! Text is marked with its tone. The marks become colour, or nothing, after layout: escape
//! sequences would be counted as width before.

use crate::ui::text::ascii;

/// The abilities of the output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Style {
    /// The width in columns. Without one, nothing is shortened.
    pub width: Option<usize>,
    pub colour: bool,
    /// True if the terminal shows any colour, not only 256: heat maps get shades in between.
    pub truecolour: bool,
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
    /// A function's own colour: a place in [`PALETTE`].
    Function(u8),
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

    /// Returns the tone of a function's name, the same in every view and run.
    pub(crate) fn of_function(name: &str) -> Self {
        // FNV-1a: few bits of a short name decide.
        let step = |hash: u32, byte: u8| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193);
        let hash = name.bytes().fold(0x811c_9dc5, step);
        Self::Function(((hash ^ hash >> 16) % PALETTE.len() as u32) as u8)
    }

    /// Marks `text` with this tone. Marks have no width. The target's text cannot contain them,
    /// since [`ctrace_core::report::render::clean`] replaces such characters.
    pub(crate) fn mark(self, text: &str) -> String {
        let mark = match self {
            Self::Function(place) => Some(FIRST_FUNCTION_MARK + u32::from(place)),
            _ => TONES.iter().position(|&tone| tone == self).map(|at| FIRST_MARK + at as u32),
        };
        match mark.and_then(char::from_u32) {
            Some(start) if !text.is_empty() => format!("{start}{text}{END_MARK}"),
            _ => text.to_owned(),
        }
    }

    /// Ends a tone that goes on at the end of `text`, which was cut there.
    pub(crate) fn end(mut text: String) -> String {
        let last = text.chars().rev().find(|c| *c == END_MARK || Self::at(*c).is_some());
        if last.is_some_and(|mark| mark != END_MARK) {
            text.push(END_MARK);
        }
        text
    }

    /// Returns the tone that begins at this mark.
    fn at(mark: char) -> Option<Self> {
        let place = |first: u32| Some(u32::from(mark).checked_sub(first)? as usize);
        let of_function = || {
            let place = place(FIRST_FUNCTION_MARK).filter(|place| *place < PALETTE.len())?;
            Some(Self::Function(place as u8))
        };
        place(FIRST_MARK).and_then(|at| TONES.get(at).copied()).or_else(of_function)
    }

    /// Returns the colour of a function among 256.
    pub(crate) fn of_256(self) -> Option<u8> {
        let Self::Function(place) = self else { return None };
        PALETTE.get(usize::from(place)).copied()
    }

    /// Returns the same colour as red, green and blue: the palette has colours of the cube only.
    fn of_cube(self) -> [u8; 3] {
        let place = self.of_256().unwrap_or_default().saturating_sub(16);
        [place / 36, place / 6 % 6, place % 6]
            .map(|step| if step == 0 { 0 } else { 55 + step * 40 })
    }

    fn code(self) -> String {
        let code = match self {
            Self::Plain => "",
            Self::Title | Self::Heading => "1",
            Self::Group => "36",
            Self::Name => "32",
            Self::Function(_) => {
                return self.of_256().map_or_else(String::new, |colour| format!("38;5;{colour}"));
            }
            Self::Dim => "2",
            Self::Warm => "33",
            Self::Hot => "1;31",
            Self::Warning => "1;33",
        };
        code.to_owned()
    }
}

/// Returns the colour of a function's name for a browser: red, green and blue.
pub(crate) fn tone_of(name: &str) -> [u8; 3] {
    Tone::of_function(name).of_cube()
}

/// A place on the scale of a heat map, from rare to frequent, for terminals with all colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Heat(u8);

impl Heat {
    /// Returns the place of a share from 0 to 1.
    pub(crate) fn of_share(share: f64) -> Self {
        Self((share.clamp(0.0, 1.0) * f64::from(HEATS - 1)).round() as u8)
    }

    /// Marks `text` with this heat. Only styles with `truecolour` show it.
    pub(crate) fn mark(self, text: &str) -> String {
        let mark = char::from_u32(FIRST_HEAT_MARK + u32::from(self.0)).unwrap_or(END_MARK);
        format!("{mark}{text}{END_MARK}")
    }

    /// Returns the heat that begins at this mark.
    fn at(mark: char) -> Option<Self> {
        let place = u32::from(mark).checked_sub(FIRST_HEAT_MARK)?;
        (place < u32::from(HEATS)).then_some(Self(place as u8))
    }

    /// Returns the code of a colour between those of [`HEAT_STOPS`].
    fn code(self) -> String {
        let steps = HEAT_STOPS.len() - 1;
        let at = f64::from(self.0) * steps as f64 / f64::from(HEATS - 1);
        let from = (at as usize).min(steps - 1);
        let part = at - from as f64;
        let mix = |of: usize| {
            let [low, high] = [from, from + 1].map(|stop| f64::from(HEAT_STOPS[stop][of]));
            (low + (high - low) * part).round()
        };
        format!("38;2;{};{};{}", mix(0), mix(1), mix(2))
    }
}

/// The number of heats.
const HEATS: u8 = 16;
/// The colours of the scale, as red, green and blue: blue, green, amber, red. All can be read on
/// black and on white.
const HEAT_STOPS: [[u8; 3]; 4] = [[76, 96, 178], [46, 150, 130], [214, 150, 40], [216, 48, 48]];
/// The marks of heats are the tag characters from this one on, behind those of functions.
const FIRST_HEAT_MARK: u32 = 0xe0040;

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
/// Colours of functions, of the 256 that terminals have: they differ from each other and from the
/// warning tones, and can be read on black and on white.
const PALETTE: [u8; 12] = [32, 35, 133, 37, 136, 99, 71, 168, 67, 107, 173, 61];
/// The marks of [`PALETTE`] are the tag characters from this one on.
const FIRST_FUNCTION_MARK: u32 = 0xe0020;
const END_MARK: char = '\u{206f}';

/// Splits a line into pieces by tone, for outputs without escape sequences.
pub(crate) fn pieces(line: &str) -> Vec<(Tone, String)> {
    let (mut pieces, mut tone, mut text) = (Vec::new(), Tone::Plain, String::new());
    for c in line.chars() {
        let next = if c == END_MARK { Some(Tone::Plain) } else { Tone::at(c) };
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
            if let Some(heat) = Heat::at(c) {
                if self.colour {
                    out += &format!("\x1b[{}m", heat.code());
                }
                continue;
            }
            match (Tone::at(c), c) {
                (Some(tone), _) if self.colour => {
                    out += "\x1b[";
                    out += &tone.code();
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_keeps_its_colour_and_others_have_others() {
        let names = ["parse", "parse_header", "read", "main", "std::vec::Vec::push"];
        let tones = names.map(Tone::of_function);
        assert_eq!(tones, names.map(Tone::of_function));
        assert!(tones.iter().any(|tone| *tone != tones[0]));
        for (name, tone) in names.iter().zip(tones) {
            assert_eq!(pieces(&tone.mark(name)), [(tone, (*name).to_owned())]);
            let colour = tone.of_256().expect("a colour");
            let style = Style { colour: true, ..Style::default() };
            assert_eq!(
                style.resolve(&tone.mark(name)),
                format!("\x1b[38;5;{colour}m{name}\x1b[0m")
            );
        }
    }

    #[test]
    fn heat_goes_from_one_end_of_the_scale_to_the_other() {
        let style = Style { colour: true, truecolour: true, ..Style::default() };
        let shown = |share| style.resolve(&Heat::of_share(share).mark("x"));
        assert_eq!(shown(0.0), "\x1b[38;2;76;96;178mx\x1b[0m");
        assert_eq!(shown(1.0), "\x1b[38;2;216;48;48mx\x1b[0m");
        let between: std::collections::BTreeSet<String> =
            (0..100).map(|share| shown(f64::from(share) / 99.0)).collect();
        assert_eq!(between.len(), usize::from(HEATS));
        assert_eq!(Style::default().resolve(&Heat::of_share(0.5).mark("x")), "x");
    }

    #[test]
    fn targets_cannot_write_marks() {
        use ctrace_core::report::render::clean::is_harmful;
        let last = [TONES[TONES.len() - 1], Tone::Function(PALETTE.len() as u8 - 1)];
        for tone in [TONES[0], Tone::Function(0)].into_iter().chain(last) {
            assert!(tone.mark("x").chars().filter(|c| *c != 'x').all(is_harmful));
        }
        for share in [0.0, 1.0] {
            let marked = Heat::of_share(share).mark("x");
            assert!(marked.chars().filter(|c| *c != 'x').all(is_harmful));
        }
    }
}
