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

/// Returns the name without parameters, hash and return type. Names that are not mangled stay.
pub fn short(raw: &str) -> String {
    either(raw, Hashes::Hidden, DemangleOptions::new().no_params().no_return_type())
}

/// Returns the name that tells a function from those with the same short name: with the parameters
/// of C++ and the hash of Rust.
pub fn full(raw: &str) -> String {
    either(raw, Hashes::Shown, DemangleOptions::new().no_return_type())
}

/// Returns the full name behind the return type, which C++ mangles for templates only.
pub(crate) fn with_return_type(raw: &str) -> String {
    either(raw, Hashes::Shown, DemangleOptions::new())
}

/// The choice whether names of Rust are shown with their hashes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Hashes {
    Shown,
    Hidden,
}

fn either(raw: &str, hashes: Hashes, cpp_options: DemangleOptions) -> String {
    if raw.len() > LONGEST_RAW {
        return raw.to_owned();
    }
    rust(raw, hashes).or_else(|| cpp(raw, cpp_options)).unwrap_or_else(|| raw.to_owned())
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

/// Writes `f(int) [clone .part.0] [clone .cold]`, as c++filt does, as `f(int).part.0.cold`.
pub(crate) fn with_plain_clones(name: &str) -> String {
    let mut parts = name.split(" [clone .");
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        plain.push('.');
        plain.push_str(part.strip_suffix(']').unwrap_or(part));
    }
    plain
}

const COPIES: [&str; 4] = [".constprop.", ".isra.", ".lto_priv.", ".llvm."];
const PARTS: [&str; 2] = [".cold", ".part."];

/// Removes the suffix of a compiler's copy of a whole function (`f.constprop.0`, `f.isra.0`). Parts
/// of a function (`f.cold`, `f.part.0`) are no copies.
pub fn without_clone_suffix(name: &str) -> Option<&str> {
    if is_part(name) {
        return None;
    }
    cut_at(name, COPIES)
}

/// Returns whether it is a part that the compiler split from a function.
pub(crate) fn is_part(name: &str) -> bool {
    PARTS.iter().any(|mark| name.contains(mark))
}

/// Returns the function's name in the source: `f.part.0.constprop.0` becomes `f`.
pub(crate) fn without_suffix(name: &str) -> &str {
    cut_at(name, COPIES.into_iter().chain(PARTS)).unwrap_or(name)
}

fn cut_at(name: &str, marks: impl IntoIterator<Item = &'static str>) -> Option<&str> {
    let at = marks.into_iter().filter_map(|mark| name.find(mark)).min()?;
    (at > 0).then(|| &name[..at])
}

fn rust(raw: &str, hashes: Hashes) -> Option<String> {
    let symbol = rustc_demangle::try_demangle(raw).ok()?;
    let mut out = Bounded::default();
    match hashes {
        Hashes::Shown => write!(out, "{symbol}"),
        Hashes::Hidden => write!(out, "{symbol:#}"),
    }
    .ok()?;
    Some(out.text)
}

fn cpp(raw: &str, options: DemangleOptions) -> Option<String> {
    // `___Z` marks clang's blocks.
    let is_mangled = ["_Z", "__Z", "___Z", "____Z"].iter().any(|mark| raw.starts_with(mark));
    if raw.len() > LONGEST_RAW || !is_mangled {
        return None;
    }
    // The compiler's suffix after a dot is shown, so that `f.cold` stays apart.
    let (mangled, suffix) = match (coroutine(raw), raw.find('.')) {
        (Some(parts), _) => parts,
        (None, Some(at)) => raw.split_at(at),
        (None, None) => (raw, ""),
    };
    let parse = ParseOptions::default().recursion_limit(DEEPEST);
    let symbol = BorrowedSymbol::new_with_options(mangled.as_bytes(), &parse).ok()?;
    let mut out = Bounded::default();
    symbol.structured_demangle(&mut out, &options.recursion_limit(DEEPEST)).ok()?;
    out.text.push_str(suffix);
    Some(out.text)
}

/// Returns a coroutine's own symbol and a suffix, of the function that gcc makes of it: that one takes a frame
/// whose type is named by the coroutine's symbol (`_Z1fPZ1fiE9_Z1fi.Frame.actor`).
fn coroutine(raw: &str) -> Option<(&str, &str)> {
    const FRAME: &str = ".Frame";
    let end = raw.find(FRAME)?;
    let (before, suffix) = (&raw[..end], &raw[end + FRAME.len()..]);
    if ![".actor", ".destroy"].iter().any(|clone| suffix.starts_with(clone)) {
        return None;
    }
    let is_named = |at: &usize| {
        let length = (end - at + FRAME.len()).to_string();
        before[..*at].ends_with(&length)
    };
    let (at, _) = before.match_indices("_Z").find(|(at, _)| is_named(at))?;
    Some((&before[at..], suffix))
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
        let hashed = "main::work::h0123456789abcdef";
        check("_ZN4main4work17h0123456789abcdefE", "main::work", hashed);
        check("_ZN4main4work17h0123456789abcdefE.llvm.123", "main::work", hashed);
        check(
            "_ZN60_$LT$alloc..string..String$u20$as$u20$core..fmt..Display$GT$3fmt17h0123456789abcdefE",
            "<alloc::string::String as core::fmt::Display>::fmt",
            "<alloc::string::String as core::fmt::Display>::fmt::h0123456789abcdef",
        );
        check("_RNvCs4fqI2P2rA04_4main4work", "main::work", "main[317d481089b8c8fe]::work");
        check(
            "_RINvCs4fqI2P2rA04_4main4workmE",
            "main::work::<u32>",
            "main[317d481089b8c8fe]::work::<u32>",
        );
        check("_ZN2ns5twiceIlEET_S1_", "ns::twice<long>", "ns::twice<long>(long)");
        assert_eq!(with_return_type("_ZN2ns5twiceIlEET_S1_"), "long ns::twice<long>(long)");
        check("_ZN4shop5labelB5cxx11Ei", "shop::label[abi:cxx11]", "shop::label[abi:cxx11](int)");
        check(
            "_ZZN4shop3runEiENKUliE_clEi",
            "shop::run(int)::{lambda(int)#1}::operator() const",
            "shop::run(int)::{lambda(int)#1}::operator()(int) const",
        );
        check("_ZN", "_ZN", "_ZN");
        check("_R", "_R", "_R");
        check("", "", "");
    }

    #[test]
    fn parts_of_coroutines_have_the_names_of_these() {
        let frame = "_Z5fetchPZ5fetchiE15_Z5fetchi.Frame";
        check(&format!("{frame}.actor"), "fetch.actor", "fetch(int).actor");
        check(&format!("{frame}.destroy"), "fetch.destroy", "fetch(int).destroy");
        check(&format!("{frame}.actor.cold"), "fetch.actor.cold", "fetch(int).actor.cold");
        check("_Z5fetchi.resume", "fetch.resume", "fetch(int).resume");
        for other in
            ["_Z5fetch14_Z5fetchi.Frame.actor", "_Z5fetchPZ5fetchiE15_Z5fetchi.Frame.other"]
        {
            assert!(!short(other).contains("fetch.actor"), "{other}");
        }
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
