//! The parameters of a request: `name=value`, with `%` before bytes in hexadecimal digits.

/// The part of an address behind the question mark.
pub(super) struct Params<'a>(pub(super) &'a str);

impl Params<'_> {
    /// Returns the first value of this name, or the name as what is missing.
    pub(super) fn text(&self, name: &str) -> Result<String, String> {
        let mut pairs = self.0.split('&').filter_map(|pair| pair.split_once('='));
        let found = pairs.find(|(other, _)| *other == name);
        found.and_then(|(_, value)| decode(value)).ok_or_else(|| format!("{name} is missing"))
    }

    pub(super) fn number<T: std::str::FromStr>(&self, name: &str) -> Result<T, String> {
        self.text(name)?.parse().map_err(|_| format!("{name} is no number"))
    }

    /// Returns a number that may be left out.
    pub(super) fn maybe<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>, String> {
        self.has(name).then(|| self.number(name)).transpose()
    }

    /// Returns numbers with commas between them.
    pub(super) fn numbers<T: std::str::FromStr>(&self, name: &str) -> Result<Vec<T>, String> {
        let text = self.text(name)?;
        let parts = text.split(',').filter(|part| !part.is_empty());
        parts.map(|part| part.parse().map_err(|_| format!("{name} has no numbers"))).collect()
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.0.split('&').filter_map(|pair| pair.split_once('=')).any(|(other, _)| other == name)
    }
}

fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, others @ ..] = rest {
        (bytes, rest) = match (first, others) {
            (b'%', [high, low, after @ ..]) => {
                let digit = |byte: &u8| char::from(*byte).to_digit(16);
                let byte = digit(high)? << 4 | digit(low)?;
                (push(bytes, byte as u8), after)
            }
            (b'%', _) => return None,
            (b'+', _) => (push(bytes, b' '), others),
            _ => (push(bytes, *first), others),
        };
    }
    String::from_utf8(bytes).ok()
}

fn push(mut bytes: Vec<u8>, byte: u8) -> Vec<u8> {
    bytes.push(byte);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_decoded_once() {
        let params = Params("a=1&text=std%3A%3A%2a+%2525&b=%zz&c=%4&a=2");
        assert_eq!(params.text("text"), Ok("std::* %25".to_owned()));
        assert_eq!(params.number::<u8>("a"), Ok(1));
        assert!(params.text("b").is_err() && params.text("c").is_err());
        assert_eq!(params.number::<u8>("text"), Err("text is no number".to_owned()));
        assert_eq!((params.maybe("a"), params.maybe::<u8>("d")), (Ok(Some(1)), Ok(None)));
        assert!(params.maybe::<u8>("text").is_err());
        assert_eq!(Params("a=5,,7&b=5,x").numbers("a"), Ok(vec![5, 7]));
        assert!(Params("a=5,,7&b=5,x").numbers::<u8>("b").is_err());
        assert_eq!(params.text("d"), Err("d is missing".to_owned()));
    }
}
