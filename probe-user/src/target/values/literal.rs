//! The value that a condition compares with, as it is written.

use super::condition::ConditionError;
use super::named::is_name;
use ctrace_common::COMPARED_TEXT;

/// Bytes of a text to compare with, at most.
pub(super) const LONGEST_TEXT: usize = COMPARED_TEXT - 2;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Literal {
    Number(i128),
    /// The bits of a finite floating-point number.
    Float(u64),
    Char(u8),
    Truth(bool),
    Text(Vec<u8>),
    /// A number of an enumeration.
    Name(String),
}

impl Literal {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Number(_) => "a number",
            Self::Float(_) => "a floating-point number",
            Self::Char(_) => "a character",
            Self::Truth(_) => "true or false",
            Self::Text(_) => "a text",
            Self::Name(_) => "a name",
        }
    }
}

/// Parses a value.
pub(super) fn literal(text: &str) -> Result<Literal, ConditionError> {
    let wrong = || ConditionError::NoLiteral(text.to_owned());
    let inside = |quote: char| text.strip_prefix(quote)?.strip_suffix(quote);
    if text.starts_with('"') {
        let bytes = inside('"').and_then(|text| unescape(text, b'"')).ok_or_else(wrong)?;
        return match bytes.len() {
            0..=LONGEST_TEXT => Ok(Literal::Text(bytes)),
            _ => Err(ConditionError::LongText(text.to_owned())),
        };
    }
    if text.starts_with('\'') {
        let bytes = inside('\'').and_then(|text| unescape(text, b'\'')).ok_or_else(wrong)?;
        let [byte] = bytes[..] else { return Err(wrong()) };
        return Ok(Literal::Char(byte));
    }
    match text {
        "true" | "false" => return Ok(Literal::Truth(text == "true")),
        _ if is_name(text) => return Ok(Literal::Name(text.to_owned())),
        _ => {}
    }
    let (sign, digits) = match text.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, text),
    };
    let number = match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => digits.parse::<u64>(),
    };
    // Both parsers take a sign. In C, a leading 0 means another base.
    let is_octal = digits.len() > 1 && digits.starts_with('0') && !digits.starts_with("0x");
    let is_plain = !is_octal && !digits.contains(['+', '-']);
    match number.ok().filter(|_| is_plain) {
        Some(number) => Ok(Literal::Number(sign * i128::from(number))),
        None => float(text).map(|float| Literal::Float(float.to_bits())).ok_or_else(wrong),
    }
}

/// Returns a number with a point or an exponent, as C writes it.
fn float(text: &str) -> Option<f64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_float = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.contains(['.', 'e', 'E'])
        && digits.chars().all(|c| c.is_ascii_digit() || matches!(c, '.' | 'e' | 'E' | '+' | '-'));
    text.parse().ok().filter(|it: &f64| is_float && it.is_finite())
}

/// Returns the bytes of a text of the source between these quotes. None of them is 0, which would end
/// it.
fn unescape(text: &str, quote: u8) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let byte = match byte {
            // It ends here, and more follows.
            end if end == quote => return None,
            b'\\' => match rest.next()? {
                b'n' => b'\n',
                b't' => b'\t',
                b'r' => b'\r',
                b'x' => {
                    let mut digit = || char::from(rest.next()?).to_digit(16);
                    (16 * digit()? + digit()?) as u8
                }
                same @ (b'\\' | b'"' | b'\'') => same,
                _ => return None,
            },
            byte => byte,
        };
        bytes.push(byte);
    }
    (!bytes.contains(&0)).then_some(bytes)
}
