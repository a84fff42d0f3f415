//! Names for people: Rust (both manglings) and C++, in the short form that globs match.
//!
//! A few dozen bytes of C++ mangling can stand for gigabytes of text, and anyone may have written
//! the file. So lengths and depths are bounded. Past the bounds the raw name is shown.

use cpp_demangle::{BorrowedSymbol, DemangleOptions, ParseOptions};
use std::fmt::{self, Write as _};

/// Longer symbols are shown as they are.
const LONGEST_RAW: usize = 16 << 10;
/// Longer demangled names are replaced by the raw name.
const LONGEST_NAME: usize = 32 << 10;
const DEEPEST: u32 = 96;

/// Returns the name with its arguments. Only C++ functions have any; others get the short form.
pub fn full(raw: &str) -> String {
    if raw.len() > LONGEST_RAW || rustc_demangle::try_demangle(raw).is_ok() {
        return short(raw);
    }
    cpp(raw, &DemangleOptions::new()).unwrap_or_else(|| raw.to_owned())
}

/// Returns the name without hash, arguments and return type. Names that are not mangled stay.
pub fn short(raw: &str) -> String {
    if raw.len() > LONGEST_RAW {
        return raw.to_owned();
    }
    let options = DemangleOptions::new().no_params().no_return_type();
    rust(raw).or_else(|| cpp(raw, &options)).unwrap_or_else(|| raw.to_owned())
}

/// Removes the symbol version: `memcpy@@GLIBC_2.14` becomes `memcpy`.
pub(crate) fn without_version(name: &[u8]) -> &[u8] {
    match memchr::memchr(b'@', name) {
        Some(at) if at > 0 => &name[..at],
        _ => name,
    }
}

/// Removes template or generic arguments: `max<int>` becomes `max`. Returns `None` when there are
/// none, or when the whole name is in brackets (`<T as Trait>::f`).
pub fn without_generics(name: &str) -> Option<String> {
    if !name.contains('<') || name.starts_with('<') {
        return None;
    }
    let mut bare = String::with_capacity(name.len());
    let mut depth = 0u32;
    let mut rest = name;
    while let Some(character) = rest.chars().next() {
        // The brackets of `operator<`, `operator->` and the like are part of the name.
        if depth == 0
            && let Some(tail) = rest.strip_prefix("operator")
        {
            let sign = tail.len() - tail.trim_start_matches(['<', '>', '=', '-']).len();
            // `operator< <int>` and `operator<<<int>` end in a bracket that opens arguments.
            let sign = match &tail[..sign] {
                "<<<" => 2,
                _ => sign,
            };
            let taken = "operator".len() + sign;
            bare.push_str(&rest[..taken]);
            rest = &rest[taken..];
            continue;
        }
        match character {
            '<' => depth += 1,
            // `->` within arguments closes nothing.
            '>' if rest.len() < name.len() && name[..name.len() - rest.len()].ends_with('-') => {}
            '>' => depth = depth.saturating_sub(1),
            _ if depth == 0 => bare.push(character),
            _ => {}
        }
        rest = &rest[character.len_utf8()..];
    }
    // Rust writes `f::<T>`.
    while bare.ends_with("::") {
        bare.truncate(bare.len() - 2);
    }
    let bare = bare.replace("::::", "::");
    let bare = bare.trim_end();
    (depth == 0 && !bare.is_empty() && bare != name).then(|| bare.to_owned())
}

/// Removes ABI tags: `name[abi:cxx11]` becomes `name`. Returns `None` when there are none. Sources do
/// not have them.
pub(super) fn without_abi_tags(name: &str) -> Option<String> {
    let mut parts = name.split("[abi:");
    let mut plain = parts.next().filter(|first| first.len() < name.len())?.to_owned();
    for part in parts {
        plain.push_str(part.split_once(']').map_or("", |(_, rest)| rest));
    }
    Some(plain)
}

const COPIES: [&str; 4] = [".constprop.", ".isra.", ".lto_priv.", ".llvm."];
const PARTS: [&str; 2] = [".cold", ".part."];

/// Removes the suffix of a compiler's copy of a whole function (`f.constprop.0`, `f.isra.0`). Parts
/// of a function (`f.cold`, `f.part.0`) are no copies.
pub fn without_clone_suffix(name: &str) -> Option<&str> {
    if PARTS.iter().any(|mark| name.contains(mark)) {
        return None;
    }
    cut_at(name, COPIES)
}

/// Returns the function's name in the source: `f.part.0.constprop.0` becomes `f`.
pub(crate) fn without_suffix(name: &str) -> &str {
    cut_at(name, COPIES.into_iter().chain(PARTS)).unwrap_or(name)
}

fn cut_at(name: &str, marks: impl IntoIterator<Item = &'static str>) -> Option<&str> {
    let at = marks.into_iter().filter_map(|mark| name.find(mark)).min()?;
    (at > 0).then(|| &name[..at])
}

fn rust(raw: &str) -> Option<String> {
    let symbol = rustc_demangle::try_demangle(raw).ok()?;
    let mut out = Bounded::default();
    write!(out, "{symbol:#}").ok()?;
    Some(out.text)
}

fn cpp(raw: &str, options: &DemangleOptions) -> Option<String> {
    // `___Z` marks clang's blocks.
    let is_mangled = ["_Z", "__Z", "___Z", "____Z"].iter().any(|mark| raw.starts_with(mark));
    if raw.len() > LONGEST_RAW || !is_mangled {
        return None;
    }
    // The compiler's suffix after a dot is shown, so that `f.cold` stays apart.
    let (mangled, suffix) = match raw.find('.') {
        Some(at) => raw.split_at(at),
        None => (raw, ""),
    };
    let parse = ParseOptions::default().recursion_limit(DEEPEST);
    let symbol = BorrowedSymbol::new_with_options(mangled.as_bytes(), &parse).ok()?;
    let mut out = Bounded::default();
    symbol.structured_demangle(&mut out, &options.recursion_limit(DEEPEST)).ok()?;
    out.text.push_str(suffix);
    Some(out.text)
}

/// Text with a maximum length.
#[derive(Default)]
struct Bounded {
    text: String,
}

impl fmt::Write for Bounded {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        if self.text.len() + part.len() > LONGEST_NAME {
            return Err(fmt::Error);
        }
        self.text.push_str(part);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(raw: &str, expected_short: &str, expected_full: &str) {
        assert_eq!((&*short(raw), &*full(raw)), (expected_short, expected_full), "{raw}");
    }

    #[test]
    fn demangles() {
        check("main", "main", "main");
        check("Zoo", "Zoo", "Zoo");
        check("_ZN3foo3barEv", "foo::bar", "foo::bar()");
        check("_ZN3foo3barEi.cold", "foo::bar.cold", "foo::bar(int).cold");
        check(
            "_ZNSt6vectorIiSaIiEE9push_backERKi",
            "std::vector<int, std::allocator<int> >::push_back",
            "std::vector<int, std::allocator<int> >::push_back(int const&)",
        );
        check("_ZN4main4work17h0123456789abcdefE", "main::work", "main::work");
        check("_ZN4main4work17h0123456789abcdefE.llvm.123", "main::work", "main::work");
        check(
            "_ZN60_$LT$alloc..string..String$u20$as$u20$core..fmt..Display$GT$3fmt17h0123456789abcdefE",
            "<alloc::string::String as core::fmt::Display>::fmt",
            "<alloc::string::String as core::fmt::Display>::fmt",
        );
        check("_RNvCs4fqI2P2rA04_4main4work", "main::work", "main::work");
        check("_RINvCs4fqI2P2rA04_4main4workmE", "main::work::<u32>", "main::work::<u32>");
        check("_ZN", "_ZN", "_ZN");
        check("_R", "_R", "_R");
        check("", "", "");
    }

    #[test]
    fn strips_versions() {
        for (name, bare) in
            [("memcpy@@GLIBC_2.14", "memcpy"), ("a@B", "a"), ("a", "a"), ("@a", "@a")]
        {
            assert_eq!(without_version(name.as_bytes()), bare.as_bytes());
        }
    }

    #[test]
    fn strips_what_compilers_append() {
        for name in ["f", "f.cold", "f.part.0", "f.constprop.0.cold", "f.isra.0"] {
            assert_eq!(without_suffix(name), "f");
        }
        assert_eq!(without_suffix(".cold"), ".cold");
    }

    #[test]
    fn strips_generics() {
        let cases = [
            ("max<int>", Some("max")),
            ("std::vector<int, A<B> >::push_back", Some("std::vector::push_back")),
            ("f::<u32>", Some("f")),
            ("Foo::<u32>::bar", Some("Foo::bar")),
            ("A::operator<", None),
            ("A::operator<<", None),
            ("A::operator->", None),
            ("A<int>::operator->", Some("A::operator->")),
            ("operator<< <char>", Some("operator<<")),
            ("operator<<<char>", Some("operator<<")),
            ("<T as U>::f", None),
            ("plain", None),
            ("broken<", None),
        ];
        for (name, bare) in cases {
            assert_eq!(without_generics(name).as_deref(), bare, "{name}");
        }
    }

    #[test]
    fn hostile_names_stay_small() {
        let doubled = format!("_Z1f{}", "St4pairI".repeat(4000));
        assert_eq!(short(&doubled), doubled);
        let long = format!("_ZN{}E", "1a".repeat(20_000));
        assert_eq!(short(&long), long);
        // Each substitution names the pair of the ones before it: exponential text.
        let mut bomb = String::from("_Z1fSt4pairIiiE");
        for step in 0..30 {
            bomb.push_str(&match step {
                0 => "St4pairIS_S_E".to_owned(),
                _ => format!(
                    "St4pairIS{0}_S{0}_E",
                    char::from_digit(step - 1, 36).unwrap().to_ascii_uppercase()
                ),
            });
        }
        assert!(full(&bomb).len() <= LONGEST_NAME);
        assert!(short(&bomb).len() <= LONGEST_NAME);
    }

    proptest::proptest! {
        #[test]
        fn never_panics(tail in "[A-Za-z0-9_$.]{0,60}", start in "_Z|_ZN|_R|__Z|_RNv|_ZNK|_ZTv") {
            let raw = start + &tail;
            let (short, full) = (short(&raw), full(&raw));
            without_generics(&short);
            without_generics(&full);
            without_clone_suffix(&short);
        }

        #[test]
        fn generics_of_anything(name in "\\PC{0,40}") {
            without_generics(&name);
            without_clone_suffix(&name);
        }
    }
}
