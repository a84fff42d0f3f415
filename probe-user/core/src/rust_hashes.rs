//! The hashes in names of Rust, which say nothing to people.

/// Removes the hashes of Rust names: `f::h0123456789abcdef` and `krate[0123456789abcdef]::f`.
pub fn without_hashes(name: &str) -> String {
    let (mut out, mut rest) = (String::with_capacity(name.len()), name);
    while let Some(at) = rest.find(['[', ':']) {
        let (before, from) = rest.split_at(at);
        let is_behind_a_name = before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        let hash = match from.starts_with('[') {
            true if is_behind_a_name => hash_of_crate(from),
            true => None,
            false => hash_of_instance(from),
        };
        out.push_str(before);
        out.push_str(if hash.is_none() { &from[..1] } else { "" });
        rest = &from[hash.unwrap_or(1)..];
    }
    out + rest
}

/// Returns the length of the `::h0123456789abcdef` with which the name, or what is before its
/// suffix, ends.
fn hash_of_instance(text: &str) -> Option<usize> {
    const LENGTH: usize = "::h0123456789abcdef".len();
    let digits = text.strip_prefix("::h")?.get(..LENGTH - 3)?;
    let is_end = matches!(text.as_bytes().get(LENGTH), None | Some(b'.'));
    (is_end && digits.bytes().all(|byte| byte.is_ascii_hexdigit())).then_some(LENGTH)
}

/// Returns the length of the `[0123456789abcdef]` with which the text begins.
fn hash_of_crate(text: &str) -> Option<usize> {
    const MOST: usize = "[0123456789abcdef]".len();
    let end = text.bytes().take(MOST).position(|byte| byte == b']')?;
    let digits = &text.as_bytes()[1..end];
    (!digits.is_empty() && digits.iter().all(u8::is_ascii_hexdigit)).then_some(end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_recognised() {
        for (name, expected) in [
            ("a::h0123456789abcdef", "a"),
            ("a::h0123456789abcdef.cold", "a.cold"),
            ("a::h0123456789abcdefg::b", "a::h0123456789abcdefg::b"),
            ("a::hello", "a::hello"),
            ("<alloc[5f3]::vec::Vec<u8> as core[0a]::A>::f", "<alloc::vec::Vec<u8> as core::A>::f"),
            ("f[abi:cxx11](int (&) [10])", "f[abi:cxx11](int (&) [10])"),
            ("A::operator[](a)", "A::operator[](a)"),
            ("é::h0123456789abcdeé", "é::h0123456789abcdeé"),
            ("[", "["),
        ] {
            assert_eq!(without_hashes(name), expected);
        }
    }
}
