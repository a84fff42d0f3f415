//! The colour that a program gives one of its scopes.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;

/// Red, green and blue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Colour(pub [u8; 3]);

impl Colour {
    /// Returns the colour of a number such as `0x33aaff`. `None` if it has other bits.
    pub fn from_rgb(number: u32) -> Option<Self> {
        let [none, red, green, blue] = number.to_be_bytes();
        (none == 0).then_some(Self([red, green, blue]))
    }

    fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6)?;
        let are_digits = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        Self::from_rgb(are_digits.then(|| u32::from_str_radix(digits, 16).ok())??)
    }

    /// Reads a colour of a recording or a report. One that this ctrace does not know is none: it is not
    /// worth the names beside it.
    pub(crate) fn read<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Self>, D::Error> {
        let text = Option::<String>::deserialize(from)?;
        Ok(text.as_deref().and_then(Self::parse))
    }
}

/// Displays `#33aaff`.
impl fmt::Display for Colour {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [red, green, blue] = self.0;
        write!(f, "#{red:02x}{green:02x}{blue:02x}")
    }
}

impl Serialize for Colour {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize, Deserialize)]
    struct Row {
        #[serde(default, deserialize_with = "Colour::read")]
        colour: Option<Colour>,
    }

    #[test]
    fn a_colour_is_read_as_it_is_written() {
        let colour = Colour::from_rgb(0x03_aa_ff);
        let text = serde_json::to_string(&Row { colour }).expect("JSON");
        assert_eq!(text, r##"{"colour":"#03aaff"}"##);
        assert_eq!(serde_json::from_str::<Row>(&text).expect("a row").colour, colour);
        assert_eq!(Colour::from_rgb(0x0100_0000), None);
    }

    #[test]
    fn other_texts_are_no_colours_and_do_no_harm() {
        for text in ["", "#", "#12345", "#1234567", "33aaff", "#+1aaff", "#ä1aaf", "red"] {
            let row = format!("{{\"colour\":{text:?}}}");
            assert_eq!(serde_json::from_str::<Row>(&row).expect("a row").colour, None, "{text}");
        }
        assert_eq!(serde_json::from_str::<Row>("{}").expect("a row").colour, None);
    }
}
