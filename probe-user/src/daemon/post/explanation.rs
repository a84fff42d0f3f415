//! Reads why a receiver refused a request.

/// Characters of an explanation, at most.
const LONGEST: usize = 200;

/// Returns the explanation, or nothing. A receiver may say anything.
pub(crate) fn explanation(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let harmless = text.chars().filter(|c| c.is_ascii_graphic() || *c == ' ');
    harmless.take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn explanations_are_harmless_and_bounded() {
        assert_eq!(explanation(&[b'x'; 900]).len(), LONGEST);
        assert_eq!(explanation(b"no\x1b[2J \xff\n"), "no[2J ");
    }
}
