//! Replaces `$ORIGIN`, `$LIB` and `$PLATFORM` in names and search paths, as glibc does.

/// The values of the tokens for one object.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tokens<'a> {
    /// The directory of the object.
    pub(super) origin: Option<&'a [u8]>,
    pub(super) lib: &'a [u8],
    pub(super) platform: &'a [u8],
    /// True if the program has rights that its caller lacks: `$ORIGIN` may only begin a path.
    pub(super) secure: bool,
}

/// No longer path can be opened.
const LONGEST: usize = super::dynamic::LONGEST_PATH;

impl Tokens<'_> {
    /// Replaces the tokens. Returns `None` if one has no value or the result exceeds a path.
    pub(super) fn replace(&self, text: &[u8]) -> Option<Vec<u8>> {
        let mut out = Vec::with_capacity(text.len().min(LONGEST));
        let mut rest = text;
        while let Some((&byte, tail)) = rest.split_first() {
            rest = tail;
            if byte != b'$' {
                out.push(byte);
            } else if let Some(after) = after(tail, b"ORIGIN") {
                let begins = out.is_empty() && matches!(after.first(), None | Some(b'/'));
                if self.secure && !begins {
                    return None;
                }
                out.extend_from_slice(self.origin?);
                rest = after;
            } else if let Some(after) = after(tail, b"PLATFORM") {
                out.extend_from_slice(self.platform);
                rest = after;
            } else if let Some(after) = after(tail, b"LIB") {
                out.extend_from_slice(self.lib);
                rest = after;
            } else {
                out.push(b'$');
            }
            if out.len() >= LONGEST {
                return None;
            }
        }
        Some(out)
    }
}

/// Returns the text after a token, given the text after the dollar.
fn after<'a>(text: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    if let Some(braced) = text.strip_prefix(b"{") {
        return braced.strip_prefix(name)?.strip_prefix(b"}");
    }
    let rest = text.strip_prefix(name)?;
    let longer = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'_';
    (!rest.first().is_some_and(longer)).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOKENS: Tokens<'_> =
        Tokens { origin: Some(b"/opt/bin"), lib: b"lib64", platform: b"haswell", secure: false };

    fn replaced(tokens: Tokens<'_>, text: &str) -> Option<String> {
        tokens.replace(text.as_bytes()).map(|bytes| String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn as_glibc() {
        let cases = [
            ("$ORIGIN/../lib", "/opt/bin/../lib"),
            ("${ORIGIN}/x", "/opt/bin/x"),
            ("/a/$LIB/${PLATFORM}", "/a/lib64/haswell"),
            ("$ORIGINAL/$LIB_/$LIBx", "$ORIGINAL/$LIB_/$LIBx"),
            ("${ORIGIN", "${ORIGIN"),
            ("${LIB }/$", "${LIB }/$"),
            ("$$LIB-$LIB", "$lib64-lib64"),
            ("${ORIGIN}x", "/opt/binx"),
        ];
        for (text, expected) in cases {
            assert_eq!(replaced(TOKENS, text).as_deref(), Some(expected), "{text}");
        }
        assert_eq!(replaced(Tokens { origin: None, ..TOKENS }, "/x/$ORIGIN"), None);
        assert_eq!(replaced(TOKENS, &"$ORIGIN".repeat(10_000)), None);
    }

    #[test]
    fn origin_only_begins_a_path_of_a_program_with_rights() {
        let secure = Tokens { secure: true, ..TOKENS };
        assert_eq!(replaced(secure, "$ORIGIN/lib").as_deref(), Some("/opt/bin/lib"));
        assert_eq!(replaced(secure, "${ORIGIN}").as_deref(), Some("/opt/bin"));
        for text in ["/x/$ORIGIN", "$ORIGINx$ORIGIN", "${ORIGIN}x", "$LIB$ORIGIN"] {
            assert_eq!(replaced(secure, text), None, "{text}");
        }
    }
}
