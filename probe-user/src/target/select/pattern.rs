//! Parses and matches one `GLOB[@OBJECT]` of the command line.

use super::compiler_made::is_compiler_made;
use super::prefilter::Prefilter;
use super::regex_error::{self, one_line};
use crate::target::markers::MarkerScope;
use crate::target::names::demangle::{
    full, with_plain_clones, with_return_type, without_clone_suffix, without_generics,
    without_version,
};
use crate::target::object::Object;
use crate::target::object::symbols::Function;
use crate::target::usdt::UsdtProbe;
use ctrace_core::function::{FunctionInfo, FunctionKind};
use ctrace_core::glob::{self, Glob};
use ctrace_core::names::{as_written, without_abi_tags};
use ctrace_core::rust_hashes::without_hashes;
use globset::GlobMatcher;
use regex::Regex;
use std::borrow::Cow;

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
    #[error("`{0}` is no pair; write [NAME=]START,END, such as lock=app:lock-wait,app:lock-got")]
    NoPair(String),
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
    /// The number of the values that it asks for, if any.
    pub(crate) values: Option<usize>,
}

/// Matches a name.
#[derive(Clone, Debug)]
enum NameMatcher {
    Regex(Regex),
    Glob {
        glob: Glob,
        /// The same in the source's words, if it names something of C++'s standard library.
        as_written: Option<Glob>,
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
                let body = &*uncut(body);
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
        let (text, may_stand_for_last_part) = (text.to_owned(), true);
        Ok(Self { text, stem, name, object, may_stand_for_last_part, values: None })
    }

    /// Parses the pattern of functions whose values are asked for.
    pub(super) fn parse_of_values(text: &str, number: usize) -> Result<Self, PatternError> {
        Ok(Self { values: Some(number), ..Self::parse(text)? })
    }

    /// Returns the pattern that a name stands for where no whole name matches it: `parse` stands for
    /// `*::parse`, and `Cart::total` for `*::Cart::total`. Globs, regular expressions and names that
    /// begin with `::` stand for themselves.
    pub(crate) fn by_last_part(&self) -> Option<Self> {
        let head = self.stem.split(['(', '<']).next().unwrap_or_default();
        let is_bare = self.is_literal() && !head.is_empty() && !head.starts_with("::");
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

    /// Returns whether it is a glob, of any object, that says how names begin and not where they are.
    pub(crate) fn is_glob_of_names(&self) -> bool {
        matches!(&self.name, NameMatcher::Glob { glob, .. }
            if !glob.is_literal() && !glob.text().starts_with('*') && !glob.text().contains("::"))
            && self.object.is_none()
    }

    /// Returns whether it can match one name only.
    pub(crate) fn is_literal(&self) -> bool {
        matches!(&self.name, NameMatcher::Glob { glob, .. } if glob.is_literal())
    }

    /// Returns the name that a pattern on the command line gives in full, without that of an object, if
    /// it has no wildcard.
    pub(crate) fn literal_name(text: &str) -> Option<String> {
        let pattern = Self::parse(text).ok()?;
        pattern.is_literal().then_some(pattern.stem)
    }

    /// Returns whether an object is the named one. Without a name, any is.
    pub(crate) fn matches_object(&self, object: &Object) -> bool {
        self.matches_object_name(object.name(), &object.path().to_string_lossy())
    }

    /// Returns whether an object of this name is the named one. A program that was started by a link has
    /// the link's name, and its file's.
    pub(crate) fn matches_object_name(&self, name: &str, path: &str) -> bool {
        let of_file = path.rsplit('/').next().unwrap_or(path);
        self.object.as_ref().is_none_or(|it| it.matches(name, path) || it.matches(of_file, path))
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
        self.matches_short(function) || self.matches_full(function)
    }

    /// Returns whether only a full name of the function matches: the user means its parameters.
    pub(crate) fn names_in_full(&self, function: &Function) -> bool {
        self.name.may_be_full() && !self.matches_short(function) && self.matches_full(function)
    }

    fn matches_full(&self, function: &Function) -> bool {
        if !self.name.may_be_full() {
            return false;
        }
        // What is before the parameters has a space if it has a return type.
        let head = self.stem.split('(').next().unwrap_or_default();
        let matches = |raw| {
            self.name.matches_variants(&full(raw))
                || (head.contains(' ') && self.name.matches(&with_return_type(raw)))
        };
        self.name.matches_variants(function.full_name()) || function.raws().any(matches)
    }

    fn matches_short(&self, function: &Function) -> bool {
        self.name.matches_variants(function.name())
            || self.name.matches_path_of_method(function.name())
            || function.aliases().iter().any(|alias| self.name.matches_variants(alias))
            || function.raws().any(|raw| self.name.matches_raw(raw))
    }

    /// Returns whether a USDT probe matches, by its name or by `provider:name`, or by the call that
    /// it begins or ends.
    pub(crate) fn matches_usdt(&self, probe: &UsdtProbe) -> bool {
        self.matches_usdt_itself(probe)
            || probe.part.as_ref().is_some_and(|part| self.matches_of(&probe.provider, &part.call))
    }

    /// The same without the call.
    pub(super) fn matches_usdt_itself(&self, probe: &UsdtProbe) -> bool {
        self.matches_of(&probe.provider, &probe.name)
    }

    fn matches_of(&self, provider: &str, name: &str) -> bool {
        let with_provider = self.stem.contains(':') || matches!(self.name, NameMatcher::Regex(_));
        match with_provider {
            true => self.matches_usdt_name(&format!("{provider}:{name}")),
            false => self.matches_usdt_name(name),
        }
    }

    /// Matches as it is written in the note, and as it is in documentation: `query-start` stands for
    /// `query__start`.
    fn matches_usdt_name(&self, name: &str) -> bool {
        self.name.matches(name)
            || (self.stem.contains('-') && self.name.matches(&name.replace("__", "-")))
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
        let full = Some(function.full()).filter(|_| self.name.may_be_full());
        let names = || std::iter::once(function.short()).chain(full).chain(&function.aliases);
        let is_usdt = function.kind == FunctionKind::Usdt;
        let sign = if is_usdt { ':' } else { '/' };
        // A pair of USDT probes has their names as aliases.
        let of_group = || std::iter::once(&function.name).chain(&function.aliases);
        let mut whole = function
            .group
            .iter()
            .flat_map(|group| of_group().map(move |name| format!("{group}{sign}{name}")));
        let matches = |name: &str| {
            self.name.matches_variants(name)
                || (is_usdt && self.matches_usdt_name(name))
                || (function.kind == FunctionKind::Function
                    && self.name.matches_path_of_method(name))
        };
        self.matches_object_name(&function.object, &function.object)
            && (names().any(|name| matches(name)) || whole.any(|whole| matches(&whole)))
    }

    /// Keeps those that have the pattern's text as a name, if there are any. A name with parameters, or with
    /// arguments of a template, means just that function, although the `*` of `f(char*)` matches
    /// `f(char const*)` as well.
    pub(super) fn prefer_named<T, N: AsRef<str>>(
        &self,
        found: Vec<T>,
        names: impl Fn(&T) -> Vec<N>,
    ) -> Vec<T> {
        let NameMatcher::Glob { glob, .. } = &self.name else { return found };
        let may_name_one = self.name.may_be_full() || glob.text().contains('<');
        if glob.is_literal() || !may_name_one {
            return found;
        }
        let is_named = |one: &T| names(one).iter().any(|name| name.as_ref() == glob.text());
        // Another function may have this name without a tag, or without its namespaces.
        let is_written = |one: &T| {
            names(one).iter().any(|name| as_written(name.as_ref()).as_deref() == Some(glob.text()))
        };
        if found.iter().any(is_named) {
            return found.into_iter().filter(is_named).collect();
        }
        match found.iter().any(is_written) {
            true => found.into_iter().filter(is_written).collect(),
            false => found,
        }
    }

    /// Returns whether a bare name matches.
    pub(crate) fn matches_name(&self, name: &str) -> bool {
        self.name.matches_variants(name)
    }
}

impl NameMatcher {
    fn glob(body: &str) -> Self {
        let body = &with_plain_clones(body);
        Self::Glob {
            glob: Glob::new(body),
            as_written: as_written(body).map(|body| Glob::new(&body)),
            prefilter: Prefilter::new(body).map(Box::new),
            has_generics: without_generics(body).is_some(),
        }
    }

    /// Returns whether it may be meant for names with parameters or hashes. Other patterns are not:
    /// `*int*` must not find every function that takes one.
    fn may_be_full(&self) -> bool {
        let (text, parameters) = match self {
            Self::Regex(regex) => (regex.as_str(), r"\("),
            Self::Glob { glob, .. } => (glob.text(), "("),
        };
        text.contains(parameters) || text.contains(", ") || without_hashes(text) != text
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

    /// Matches a method of Rust by the path of its type: `shop::*` has `<shop::Cart as shop::Sum>::total`.
    fn matches_path_of_method(&self, name: &str) -> bool {
        let Some(path) = name.strip_prefix('<') else { return false };
        let path = path.trim_start_matches(['<', '&']);
        let path = path.strip_prefix("mut ").unwrap_or(path);
        matches!(self, Self::Glob { glob, .. } if glob.matches(path))
    }

    /// Also matches the name without template arguments, without the compiler's suffixes, without
    /// tags of interfaces, and as the source has it, unless the user typed either.
    fn matches_variants(&self, name: &str) -> bool {
        if self.matches(name) {
            return true;
        }
        if let Some(bare) = without_abi_tags(name) {
            return self.matches_variants(&bare);
        }
        let (glob, has_generics) = match self {
            Self::Glob { as_written, has_generics, .. } => (as_written, has_generics),
            // Names of the standard library are shown as the source has them.
            Self::Regex(regex) => {
                return regex.as_str().contains("std::")
                    && as_written(name).is_some_and(|name| regex.is_match(&name));
            }
        };
        let whole = without_clone_suffix(name);
        let is_written =
            |glob: &Glob, name| as_written(name).is_some_and(|name| glob.matches(&name));
        if let Some(glob) = glob
            && (is_written(glob, name) || whole.is_some_and(|whole| is_written(glob, whole)))
        {
            return true;
        }
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

/// Returns a name as tables show it, where they have cut it, as the pattern of the names that it may be. The
/// place that they put behind functions of one name chooses all of these.
fn uncut(name: &str) -> Cow<'_, str> {
    let place = name.strip_suffix(']').and_then(|rest| rest.rsplit_once(" ["));
    let has_line = |place: &str| {
        let line = place.rsplit_once(':').map(|(_, line)| line);
        line.is_some_and(|line| !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let name = place.filter(|(_, place)| has_line(place)).map_or(name, |(name, _)| name);
    match name.contains(['…', '‹', '›']) {
        true => name.replace('…', "*").replace('‹', "<").replace('›', ">").into(),
        false => name.into(),
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
#[path = "pattern_tests.rs"]
mod tests;
