//! Parses and matches one `GLOB[@OBJECT]` of the command line.

use super::compiler_made::is_compiler_made;
use super::demangle::{without_abi_tags, without_clone_suffix, without_generics, without_version};
use super::markers::MarkerScope;
use super::object::Object;
use super::prefilter::Prefilter;
use super::regex_error::{self, one_line};
use super::symbols::Function;
use super::usdt::UsdtProbe;
use ctrace_core::function::{FunctionInfo, FunctionKind};
use ctrace_core::glob::{self, Glob};
use globset::GlobMatcher;
use regex::Regex;

/// The reason why a pattern is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    #[error("the pattern `{0}` is empty; `*` matches everything")]
    Empty(String),
    #[error("the regular expression `{0}` has no closing `/`; write /REGEX/ or /REGEX/@OBJECT")]
    Unclosed(String),
    #[error("`{pattern}` is no regular expression: {reason}")]
    Regex { pattern: String, reason: String },
    #[error("`{pattern}` is no glob: {reason}")]
    Glob { pattern: String, reason: String },
    #[error("`{0}` names no object after the `@`; write GLOB@OBJECT, for example malloc@libc.so.6")]
    NoObject(String),
}

/// A parsed `GLOB[@OBJECT]`, `/REGEX/[@OBJECT]`, `[PROVIDER:]GLOB[@OBJECT]` or
/// `[GROUP/]GLOB[@OBJECT]`.
#[derive(Clone, Debug)]
pub(crate) struct Pattern {
    /// As the user typed it.
    pub text: String,
    /// The part that names functions, without object and version.
    pub stem: String,
    name: NameMatcher,
    object: Option<ObjectMatcher>,
    /// False once its whole name was found: it stands for no other then.
    may_stand_for_last_part: bool,
}

/// Matches a name.
#[derive(Clone, Debug)]
enum NameMatcher {
    Regex(Regex),
    Glob {
        glob: Glob,
        /// The user typed arguments, so the full name must match.
        has_arguments: bool,
        has_generics: bool,
        prefilter: Option<Box<Prefilter>>,
    },
}

#[derive(Clone, Debug)]
struct ObjectMatcher {
    text: String,
    glob: GlobMatcher,
}

impl Pattern {
    pub(crate) fn parse(text: &str) -> Result<Self, PatternError> {
        let (name, object) = match text.strip_prefix('/') {
            Some(rest) => {
                let (body, object) =
                    split_regex(rest).ok_or_else(|| PatternError::Unclosed(text.to_owned()))?;
                let matcher = Regex::new(body).map_err(|error| PatternError::Regex {
                    pattern: text.to_owned(),
                    reason: regex_error::reason(body, &error.to_string()),
                })?;
                if body.is_empty() {
                    return Err(PatternError::Empty(text.to_owned()));
                }
                ((body.to_owned(), NameMatcher::Regex(matcher)), object)
            }
            None => {
                let (body, object) = split_object(text);
                if body.is_empty() {
                    return Err(PatternError::Empty(text.to_owned()));
                }
                ((body.to_owned(), NameMatcher::glob(body)), object)
            }
        };
        let object = match object {
            None => None,
            Some("") => return Err(PatternError::NoObject(text.to_owned())),
            Some(object) => Some(ObjectMatcher {
                text: object.to_owned(),
                glob: glob::compile(object).map_err(|error| PatternError::Glob {
                    pattern: text.to_owned(),
                    reason: one_line(&error.kind().to_string()),
                })?,
            }),
        };
        let (stem, name) = name;
        Ok(Self { text: text.to_owned(), stem, name, object, may_stand_for_last_part: true })
    }

    /// Returns the pattern that a bare name stands for where no whole name matches it: `parse`
    /// stands for `*::parse`. Globs, regular expressions and names with `::` stand for themselves.
    pub(crate) fn by_last_part(&self) -> Option<Self> {
        let head = self.stem.split(['(', '<']).next().unwrap_or_default();
        let is_bare = self.is_literal() && !head.is_empty() && !head.contains("::");
        (is_bare && self.may_stand_for_last_part).then(|| Self {
            name: NameMatcher::glob(&format!("*::{}", self.stem)),
            may_stand_for_last_part: false,
            ..self.clone()
        })
    }

    /// Makes a pattern whose whole name was found: from now on it stands for itself alone.
    pub(crate) fn found_whole(&self) -> Self {
        Self { may_stand_for_last_part: false, ..self.clone() }
    }

    /// Returns whether the pattern names an object.
    pub(crate) fn names_object(&self) -> bool {
        self.object.is_some()
    }

    /// Returns whether it can match one name only.
    pub(crate) fn is_literal(&self) -> bool {
        matches!(&self.name, NameMatcher::Glob { glob, .. } if glob.is_literal())
    }

    /// Returns whether an object is the named one. Without a name, any is.
    pub(crate) fn matches_object(&self, object: &Object) -> bool {
        self.matches_object_name(object.name(), &object.path().to_string_lossy())
    }

    pub(super) fn matches_object_name(&self, name: &str, path: &str) -> bool {
        self.object.as_ref().is_none_or(|matcher| matcher.matches(name, path))
    }

    /// Returns whether a name of the function matches.
    pub(crate) fn matches_function(&self, function: &Function) -> bool {
        if let NameMatcher::Glob { glob, prefilter, .. } = &self.name {
            if glob.text() == "*" {
                return !is_compiler_made(function.raw());
            }
            // Names at one address are many; one possible match is enough to look closely.
            if let Some(prefilter) = prefilter
                && !function.raws().any(|raw| prefilter.may_match(raw))
            {
                return false;
            }
        }
        match &self.name {
            NameMatcher::Glob { has_arguments: true, .. } => {
                self.name.matches(function.full_name()) || self.matches_short(function)
            }
            _ => self.matches_short(function),
        }
    }

    fn matches_short(&self, function: &Function) -> bool {
        self.name.matches_variants(function.name())
            || function.aliases().iter().any(|alias| self.name.matches_variants(alias))
            || function.raws().any(|raw| self.name.matches_raw(raw))
    }

    /// Returns whether a USDT probe matches, by its name or by `provider:name`.
    pub(crate) fn matches_usdt(&self, probe: &UsdtProbe) -> bool {
        match (&self.name, self.stem.contains(':')) {
            (NameMatcher::Glob { .. }, false) => self.name.matches(&probe.name),
            (NameMatcher::Glob { .. }, true) => self.name.matches(&probe.full_name()),
            (NameMatcher::Regex(_), _) => self.name.matches(&probe.full_name()),
        }
    }

    /// Returns whether a marker scope matches, by its name or by `group/name`.
    pub(crate) fn matches_marker(&self, scope: &MarkerScope) -> bool {
        let is_regex = matches!(self.name, NameMatcher::Regex(_));
        // A name may contain a slash.
        (!is_regex && self.name.matches_variants(&scope.name))
            || ((is_regex || self.stem.contains('/'))
                && self.name.matches_variants(&scope.full_name()))
    }

    /// Returns whether a function of a recording matches, by any of the names above.
    pub(crate) fn matches_recorded(&self, function: &FunctionInfo) -> bool {
        let names = || std::iter::once(&function.name).chain(&function.aliases);
        let sign = if function.kind == FunctionKind::Usdt { ':' } else { '/' };
        let whole = function.group.iter().map(|group| format!("{group}{sign}{}", function.name));
        self.matches_object_name(&function.object, &function.object)
            && (names().any(|name| self.name.matches_variants(name))
                || whole.into_iter().any(|whole| self.name.matches_variants(&whole)))
    }

    /// Returns whether a bare name matches.
    pub(crate) fn matches_name(&self, name: &str) -> bool {
        self.name.matches_variants(name)
    }
}

impl NameMatcher {
    fn glob(body: &str) -> Self {
        Self::Glob {
            glob: Glob::new(body),
            prefilter: Prefilter::new(body).map(Box::new),
            has_arguments: body.contains('('),
            has_generics: without_generics(body).is_some(),
        }
    }

    fn matches(&self, name: &str) -> bool {
        match self {
            Self::Regex(regex) => regex.is_match(name),
            Self::Glob { glob, .. } => glob.matches(name),
        }
    }

    /// Matches mangled names only where the user typed one: `*add*` must not find a hash.
    fn matches_raw(&self, raw: &str) -> bool {
        let typed = match self {
            Self::Regex(regex) => regex.as_str(),
            Self::Glob { glob, .. } => glob.text(),
        };
        (typed.contains("_Z") || typed.contains("_R")) && self.matches(raw)
    }

    /// Also matches the name without template arguments, ABI tags and the compiler's suffixes, unless
    /// the user typed them.
    fn matches_variants(&self, name: &str) -> bool {
        if self.matches(name) {
            return true;
        }
        let Self::Glob { has_generics, .. } = self else { return false };
        if let Some(plain) = without_abi_tags(name) {
            return self.matches_variants(&plain);
        }
        let whole = without_clone_suffix(name);
        whole.is_some_and(|whole| self.matches(whole))
            || (!has_generics
                && without_generics(whole.unwrap_or(name)).is_some_and(|bare| self.matches(&bare)))
    }
}

impl ObjectMatcher {
    fn matches(&self, name: &str, path: &str) -> bool {
        if self.text.contains('/') {
            return self.text == path || self.glob.is_match(path);
        }
        // `libc` means `libc.so.6` and `libc-2.31.so`.
        let stem = name.strip_prefix(self.text.as_str());
        self.glob.is_match(name)
            || stem.is_some_and(|tail| tail.starts_with(".so") || tail.starts_with("-2."))
    }
}

/// Splits into a regular expression and its object. `text` begins after the opening slash.
fn split_regex(text: &str) -> Option<(&str, Option<&str>)> {
    if let Some(body) = text.strip_suffix('/') {
        return Some((body, None));
    }
    text.rsplit_once("/@").map(|(body, object)| (body, Some(object)))
}

/// Splits into name and object. A version between or instead of them is ignored.
fn split_object(text: &str) -> (&str, Option<&str>) {
    let Some((name, object)) = text.rsplit_once('@') else { return (text, None) };
    let bare = without_version(name.as_bytes());
    let bare = name.get(..bare.len()).unwrap_or(name);
    if name.ends_with('@') || is_version(object) { (bare, None) } else { (bare, Some(object)) }
}

/// Recognizes `GLIBC_2.14`, `GLIBCXX_3.4.21`, `OPENSSL_3.0.0`: upper case, then a number.
fn is_version(text: &str) -> bool {
    text.rsplit_once('_').is_some_and(|(name, number)| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_uppercase() || byte == b'_')
            && number.starts_with(|first: char| first.is_ascii_digit())
            && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
    }) || text == "GLIBC_PRIVATE"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, names: &[&str], others: &[&str]) {
        let pattern = Pattern::parse(pattern).unwrap();
        for name in names {
            assert!(pattern.matches_name(name), "{} should match {name}", pattern.text);
        }
        for name in others {
            assert!(!pattern.matches_name(name), "{} should not match {name}", pattern.text);
        }
    }

    #[test]
    fn matches_names() {
        check("main", &["main"], &["domain", "main2", "Main"]);
        check("*", &["a", "a::b", "<T as a::B>::c", "a/b"], &[]);
        check("ns::*", &["ns::a", "ns::a::b"], &["ns", "other::ns::a"]);
        check("h_?", &["h_1"], &["h_12", "h_"]);
        check("h_[12]", &["h_1", "h_2", "h_[12]"], &["h_3"]);
        check("{read,write}_all", &["read_all", "write_all"], &["all"]);
        check("A::operator[]", &["A::operator[]"], &["A::operator"]);
        check("*operator[]*", &["A::operator[]"], &["A::operator()"]);
        check("<impl Foo for [T]>::f", &["<impl Foo for [T]>::f"], &[]);
        // Brackets match both literally and as a class.
        check("<impl * for [T]>::*", &["<impl Foo for [T]>::f", "<impl Foo for T>::f"], &[]);
        check("f::{{closure}}", &["f::{{closure}}"], &["f::{{closure}}::x"]);
        check("*{{closure}}", &["f::{{closure}}"], &[]);
        check("twice", &["twice<int>", "twice", "twice::<u32>"], &["thrice<int>"]);
        check("twice<int>", &["twice<int>"], &["twice<long>"]);
        check("a::f", &["a::f[abi:cxx11]", "a::f[abi:cxx11]<int>", "a[abi:v2]::f"], &["a::f[x]"]);
        check("a::f[abi:cxx11]", &["a::f[abi:cxx11]"], &["a::f"]);
        check("A::operator<", &["A::operator<", "A::operator< <int>"], &["A::operator<<"]);
        check(
            "f",
            &["f", "f.constprop.0", "f.isra.0.constprop.1"],
            &["f.cold", "f.part.0", "f.constprop.0.cold"],
        );
        check("/^a.*z$/", &["az", "abcz"], &["baz2"]);
        check("/a|b/", &["xxbxx"], &["c"]);
        check("memcpy@@GLIBC_2.14", &["memcpy"], &[]);
        check("caf\u{e9}*", &["caf\u{e9}s"], &[]);
    }

    #[test]
    fn a_bare_name_stands_for_the_last_part_of_names() {
        let last = |text: &str| Pattern::parse(text).unwrap().by_last_part();
        let format = last("format").expect("a bare name");
        assert_eq!((&*format.text, &*format.stem), ("format", "format"));
        for name in ["shop::format", "a::b::format", "shop::format<int>", "<A as B>::format"] {
            assert!(format.matches_name(name), "{name}");
        }
        for name in ["format", "shop::reformat", "format::shop", "shop::format::{{closure}}"] {
            assert!(!format.matches_name(name), "{name}");
        }
        assert!(last("twice<int>").expect("bare").matches_name("ns::twice<int>"));
        assert!(last("run(a::b)").expect("bare").matches_name("ns::run(a::b)"));
        assert!(last("run@libx*").expect("bare").matches_object_name("libx.so.1", "/libx.so.1"));
        for text in ["shop::format", "form*", "forma?", "{a,b}", "/format/", "<A as B>::f"] {
            assert!(last(text).is_none(), "{text}");
        }
        assert!(Pattern::parse("format").unwrap().found_whole().by_last_part().is_none());
        assert!(format.by_last_part().is_none());
    }

    #[track_caller]
    fn check_object(pattern: &str, stem: &str, matching: &[&str], others: &[&str]) {
        let pattern = Pattern::parse(pattern).unwrap();
        assert_eq!(pattern.stem, stem);
        for name in matching {
            assert!(pattern.matches_object_name(name, &format!("/usr/lib/{name}")), "{name}");
        }
        for name in others {
            assert!(!pattern.matches_object_name(name, &format!("/usr/lib/{name}")), "{name}");
        }
    }

    #[test]
    fn splits_objects() {
        check_object("malloc", "malloc", &["libc.so.6", "x"], &[]);
        check_object("malloc@libc.so.6", "malloc", &["libc.so.6"], &["libc.so"]);
        check_object("malloc@libc", "malloc", &["libc.so.6", "libc-2.31.so"], &["libcap.so.2"]);
        check_object("*@lib*.so*", "*", &["libc.so.6"], &["prog"]);
        check_object("f@/usr/lib/*.so", "f", &["a.so"], &["b"]);
        check_object("memcpy@@GLIBC_2.14", "memcpy", &["x"], &[]);
        check_object("memcpy@GLIBC_2.2.5", "memcpy", &["x"], &[]);
        check_object("memcpy@@GLIBC_2.14@libc.so.6", "memcpy", &["libc.so.6"], &["x"]);
        check_object("/^a@b/@x", "^a@b", &["x"], &["y"]);
        check_object("/a/b/", "a/b", &["x"], &[]);
        check_object("/a/@/usr/lib/x", "a", &["x"], &["y"]);
    }

    #[test]
    fn refuses_what_is_no_pattern() {
        for text in ["", "@libc", "f@", "/abc", "//", "/(/", "/a/x", "f@[", "/[/@x"] {
            let error = Pattern::parse(text).unwrap_err().to_string();
            assert!(!error.contains('\n') && !error.is_empty(), "{text}: {error}");
        }
    }

    #[test]
    fn matches_probes() {
        let probe =
            UsdtProbe { provider: "libc".into(), name: "memory_sbrk_more".into(), sites: vec![] };
        let check = |text: &str, expected: bool| {
            assert_eq!(Pattern::parse(text).unwrap().matches_usdt(&probe), expected, "{text}");
        };
        check("memory_*", true);
        check("libc:memory_*", true);
        check("lib*:*", true);
        check("other:*", false);
        check("libc", false);
        check("/^libc:mem/", true);
    }

    #[test]
    fn matches_markers() {
        let check = |group: Option<&str>, name: &str, text: &str, expected: bool| {
            let scope = MarkerScope {
                name: name.into(),
                group: group.map(Into::into),
                file: None,
                line: None,
                is_whole_function: false,
                sites: vec![],
            };
            let pattern = Pattern::parse(text).unwrap();
            assert_eq!(pattern.matches_marker(&scope), expected, "{text} {group:?} {name}");
        };
        let prod = Some("prod");
        for text in ["parse", "prod/parse", "pro?/*", "prod/*", "p*", "*", "/^prod/", "/parse$/"] {
            check(prod, "parse", text, true);
        }
        for text in ["prod", "dev/*", "prod/", "/^parse/", "prod*"] {
            check(prod, "parse", text, false);
        }
        check(None, "parse", "prod/*", false);
        check(None, "load/file", "load/*", true);
        check(prod, "load/file", "load/*", true);
        check(prod, "max<int>", "max", true);
        check(prod, "max<int>", "prod/max", true);
        check(None, "/etc", "/etc/", true);
    }

    proptest::proptest! {
        #[test]
        fn never_panics(text in "[a-z@/:*?{}()<>\\[\\]\\\\ ]{0,20}", name in "\\PC{0,20}") {
            if let Ok(pattern) = Pattern::parse(&text) {
                pattern.matches_name(&name);
                pattern.matches_object_name(&name, &name);
            }
        }

        /// Any name matches itself as a pattern.
        #[test]
        fn a_name_matches_itself(name in "[a-z:<>,&*\\[\\](){}~= ]{1,20}") {
            if let Ok(pattern) = Pattern::parse(&name) {
                proptest::prop_assert!(pattern.matches_name(&name));
            }
        }
    }
}
