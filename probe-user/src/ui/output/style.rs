//! The style of a rendering: width and colour. It is a value, so that rendering is pure;
//! [`crate::ui::output::terminal`] chooses it for an output.
//!
//! Text is marked with its tone. The marks become colour, or nothing, after layout: escape
//! sequences would be counted as width before.

use crate::ui::text::ascii;
use ctrace_core::colour::Colour;

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
    /// True if it is a terminal: files and pipes get long notes whole.
    pub terminal: bool,
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
    /// A function's colour by its name: a place in [`PALETTE`].
    Function(u8),
    /// The colour that the program gives a scope.
    Own(Colour),
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

    /// Returns the tone of a function: its own, or that of its name.
    pub(crate) fn of(name: &str, own: Option<Colour>) -> Self {
        own.map_or_else(|| Self::of_function(name), Self::Own)
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
        let marks: Vec<u32> = match self {
            Self::Function(place) => vec![FIRST_FUNCTION_MARK + u32::from(place)],
            Self::Own(Colour(parts)) => {
                let digits = parts.iter().flat_map(|part| [part >> 4, part & 0xf]);
                digits.map(|digit| FIRST_DIGIT_MARK + u32::from(digit)).collect()
            }
            _ => {
                let place = TONES.iter().position(|&tone| tone == self);
                place.map(|at| FIRST_MARK + at as u32).into_iter().collect()
            }
        };
        if marks.is_empty() || text.is_empty() {
            return text.to_owned();
        }
        let start: String = marks.into_iter().filter_map(char::from_u32).collect();
        format!("{start}{text}{END_MARK}")
    }

    /// Ends a tone that goes on at the end of `text`, which was cut there.
    pub(crate) fn end(mut text: String) -> String {
        let mut reader = MarkReader::default();
        let marks = text.chars().filter_map(|c| reader.read(c));
        if marks.last().is_some_and(|mark| mark != Mark::Ends) {
            text.push(END_MARK);
        }
        text
    }

    /// Returns the tone that begins at this mark.
    fn at(mark: char) -> Option<Self> {
        let of_function = || {
            let place = place(mark, FIRST_FUNCTION_MARK, PALETTE.len())?;
            Some(Self::Function(place as u8))
        };
        place(mark, FIRST_MARK, TONES.len()).map(|at| TONES[at]).or_else(of_function)
    }

    /// Returns the colour of a function among 256: of a scope's own, the one in the cube that is nearest.
    pub(crate) fn of_256(self) -> Option<u8> {
        match self {
            Self::Function(place) => PALETTE.get(usize::from(place)).copied(),
            Self::Own(Colour(parts)) => {
                let step = |part: u8| match part {
                    0..48 => 0,
                    48..115 => 1,
                    part => (part - 35) / 40,
                };
                let [red, green, blue] = parts.map(step);
                Some(16 + 36 * red + 6 * green + blue)
            }
            _ => None,
        }
    }

    /// Returns the same colour as red, green and blue: the palette has colours of the cube only.
    fn of_cube(self) -> [u8; 3] {
        let place = self.of_256().unwrap_or_default().saturating_sub(16);
        [place / 36, place / 6 % 6, place % 6]
            .map(|step| if step == 0 { 0 } else { 55 + step * 40 })
    }

    fn code(self, truecolour: bool) -> String {
        let code = match self {
            Self::Own(Colour([red, green, blue])) if truecolour => {
                return format!("38;2;{red};{green};{blue}");
            }
            Self::Plain => "",
            Self::Title | Self::Heading => "1",
            Self::Group => "36",
            Self::Name => "32",
            Self::Function(_) | Self::Own(_) => {
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

/// Returns the colour of a function for a browser: red, green and blue.
pub(crate) fn tone_of(name: &str, own: Option<Colour>) -> [u8; 3] {
    own.map_or_else(|| Tone::of_function(name).of_cube(), |Colour(parts)| parts)
}

/// Returns the place of a mark among so many, the first of which is this one.
fn place(mark: char, first: u32, count: usize) -> Option<usize> {
    let place = u32::from(mark).checked_sub(first)? as usize;
    (place < count).then_some(place)
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
        place(mark, FIRST_HEAT_MARK, usize::from(HEATS)).map(|place| Self(place as u8))
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
/// Six of the tag characters from this one on are the hexadecimal digits of a scope's own colour.
const FIRST_DIGIT_MARK: u32 = 0xe0060;
const DIGITS: usize = 6;
const END_MARK: char = '\u{206f}';

/// The meaning of a character that is a mark.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    Begins(Tone),
    Heats(Heat),
    Ends,
    /// It goes on with the next character.
    Part,
}

/// Finds the marks in a text, which may be of several characters.
#[derive(Default)]
struct MarkReader {
    colour: u32,
    digits: usize,
}

impl MarkReader {
    /// Returns the mark that this character of the text is or completes; `None` if it is none.
    fn read(&mut self, c: char) -> Option<Mark> {
        let Some(digit) = place(c, FIRST_DIGIT_MARK, 16) else {
            *self = Self::default();
            let is_end = (c == END_MARK).then_some(Mark::Ends);
            let begins = || Tone::at(c).map(Mark::Begins);
            return is_end.or_else(begins).or_else(|| Heat::at(c).map(Mark::Heats));
        };
        self.colour = self.colour << 4 | digit as u32;
        self.digits += 1;
        if self.digits < DIGITS {
            return Some(Mark::Part);
        }
        let Self { colour, .. } = std::mem::take(self);
        Some(Colour::from_rgb(colour).map_or(Mark::Part, |own| Mark::Begins(Tone::Own(own))))
    }
}

/// Splits a line into pieces by tone, for outputs without escape sequences.
pub(crate) fn pieces(line: &str) -> Vec<(Tone, String)> {
    let (mut pieces, mut tone, mut text) = (Vec::new(), Tone::Plain, String::new());
    let mut reader = MarkReader::default();
    for c in line.chars() {
        let next = match reader.read(c) {
            Some(Mark::Begins(tone)) => tone,
            Some(Mark::Ends) => Tone::Plain,
            Some(Mark::Heats(_) | Mark::Part) => continue,
            None => {
                text.push(c);
                continue;
            }
        };
        pieces.push((tone, std::mem::take(&mut text)));
        tone = next;
    }
    pieces.push((tone, text));
    pieces.retain(|(_, text)| !text.is_empty());
    pieces
}

/// The colours that an output has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Shades {
    #[default]
    None,
    Of256,
    All,
}

impl Style {
    pub(crate) fn shades(&self) -> Shades {
        match (self.colour, self.truecolour) {
            (false, _) => Shades::None,
            (true, false) => Shades::Of256,
            (true, true) => Shades::All,
        }
    }

    /// Turns the marks in `text` into colour, or removes them, and leaves characters that the
    /// reader can see.
    pub(crate) fn resolve(&self, text: &str) -> String {
        let text = self.coloured(text);
        if self.ascii { ascii::plain(&text) } else { text }
    }

    fn coloured(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut reader = MarkReader::default();
        for c in text.chars() {
            let code = match reader.read(c) {
                Some(Mark::Begins(tone)) => tone.code(self.truecolour),
                Some(Mark::Heats(heat)) => heat.code(),
                Some(Mark::Ends) => "0".to_owned(),
                Some(Mark::Part) => continue,
                None => {
                    out.push(c);
                    continue;
                }
            };
            if self.colour {
                out += &format!("\x1b[{code}m");
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
    fn a_scope_has_its_own_colour_in_all_shades_that_the_terminal_has() {
        let tone = Tone::of("parse", Colour::from_rgb(0x33_aa_ff));
        let marked = format!("a {} b", tone.mark("parse"));
        let resolve =
            |colour, truecolour| Style { colour, truecolour, ..Style::default() }.resolve(&marked);
        assert_eq!(resolve(true, true), "a \x1b[38;2;51;170;255mparse\x1b[0m b");
        assert_eq!(resolve(true, false), "a \x1b[38;5;75mparse\x1b[0m b");
        assert_eq!(resolve(false, true), "a parse b");
        assert_eq!(crate::ui::text::names::width(&marked), "a parse b".len());
        let text = |text: &str| (Tone::Plain, text.to_owned());
        assert_eq!(pieces(&marked), [text("a "), (tone, "parse".to_owned()), text(" b")]);
        let cut = Tone::end(format!("a {}", tone.mark("parse")).replace(END_MARK, ""));
        assert!(cut.ends_with(END_MARK) && Tone::end(marked.clone()) == marked);
        let cube = |rgb| Tone::of("", Colour::from_rgb(rgb)).of_256();
        assert_eq!([0, 0x5f_87_af, 0xff_ff_ff].map(cube), [Some(16), Some(67), Some(231)]);
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
        let own = [0, 0xff_ff_ff].map(|rgb| Tone::of("", Colour::from_rgb(rgb)));
        for tone in [TONES[0], Tone::Function(0)].into_iter().chain(last).chain(own) {
            assert!(tone.mark("x").chars().filter(|c| *c != 'x').all(is_harmful));
        }
        for share in [0.0, 1.0] {
            let marked = Heat::of_share(share).mark("x");
            assert!(marked.chars().filter(|c| *c != 'x').all(is_harmful));
        }
    }
}
