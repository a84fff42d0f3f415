//! Explains a pattern that matched nothing: objects searched, closest names, likely causes.

use super::hints::{self, inlined_hint, names, names_of, object_hint};
use super::{awaits::Awaits, languages, pattern::Pattern, stripped};
use crate::target::markers::MarkerScope;
use crate::target::names::by_address::is_asked_for;
use crate::target::names::home::Home;
use crate::target::names::nearest::{is_typo, nearest, nearest_of};
use crate::target::object::{Object, symbols::Function};
use crate::target::usdt::UsdtProbe;
use crate::ui::text;
use ctrace_core::names::as_written;
use std::collections::BTreeMap;
use std::fmt;

/// A pattern that matched nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotFound {
    /// As the user typed it.
    pub pattern: String,
    pub kind: SearchedKind,
    /// File names of the objects that were searched.
    pub searched: Vec<String>,
    /// The number of functions, USDT probes or marker scopes in them.
    pub candidates: usize,
    /// The closest names.
    pub nearest: Vec<String>,
    /// The explanation that the name is inlined into another function. It comes first.
    pub inlined: Option<String>,
    /// Possible explanations, each a short sentence.
    pub hints: Vec<String>,
}

/// The kind of thing that a pattern searches for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchedKind {
    Function,
    Usdt,
    Marker,
}

const NEAREST: usize = 5;

impl NotFound {
    pub(super) fn function(pattern: &Pattern, objects: &[Object], searched: &[usize]) -> Self {
        let searched: Vec<&Object> = searched.iter().map(|object| &objects[*object]).collect();
        let home = Home::of(names_of(objects.iter().filter(|object| object.is_main())));
        let by_address = is_asked_for(&pattern.stem);
        let all = searched.iter().flat_map(|object| {
            let is_main = object.is_main();
            let is_meant = move |it: &&Function| by_address || !it.is_named_by_address();
            let functions = object.functions().iter().filter(is_meant);
            functions.flat_map(names).map(move |name| (name, is_main))
        });
        let all = all.map(|(name, is_main)| (name, home.distance(name, is_main)));
        let (mut inlined, mut hints, mut lacks) = (None, Vec::new(), Vec::new());
        for object in &searched {
            if let Some(reason) = &object.symbols().broken {
                hints.push(format!("the symbols of {} are broken: {reason}", object.name()));
            }
            hints.extend(object.left_out());
            if object.is_main() || searched.len() == 1 {
                inlined = inlined.or_else(|| inlined_hint(pattern, object));
            }
            lacks
                .extend(stripped::hint(object).filter(|_| object.is_main() || searched.len() == 1));
        }
        if !pattern.names_object() {
            lacks.extend(languages::hint(objects));
        }
        // The way to what was meant comes first, and is all where it is sure.
        let known = hints::of_function(pattern, &searched);
        let is_known = inlined.is_some() || !known.is_empty();
        let mut nearest = match is_known {
            true => Vec::new(),
            false => nearest_of(&pattern.stem, all, NEAREST),
        };
        if nearest.first().is_some_and(|name| is_typo(&pattern.stem, name)) {
            nearest.truncate(1);
        } else if !is_known {
            hints.extend(lacks);
        }
        hints.splice(..0, known);
        Self {
            pattern: pattern.text.clone(),
            kind: SearchedKind::Function,
            nearest,
            inlined,
            candidates: searched.iter().map(|object| object.functions().len()).sum(),
            searched: searched.iter().map(|object| object.name().to_string()).collect(),
            hints: hints.into_iter().chain(object_hint(pattern, objects, &searched)).collect(),
        }
    }

    pub(super) fn usdt(pattern: &Pattern, objects: &[Object], searched: &[usize]) -> Self {
        let searched: Vec<&Object> = searched.iter().map(|object| &objects[*object]).collect();
        let probes: Vec<&UsdtProbe> =
            searched.iter().flat_map(|object| object.usdt_probes()).collect();
        let names: Vec<String> = probes.iter().map(|probe| probe.full_name()).collect();
        let broken: usize = searched.iter().map(|object| object.broken_usdt_notes()).sum();
        let broken = (broken > 0).then(|| format!("{broken} notes of probes are broken"));
        let wanted = pattern.stem.rsplit(':').next().unwrap_or_default();
        let mut close = nearest(wanted, probes.iter().map(|probe| &*probe.name), NEAREST);
        for name in &mut close {
            if let Some(full) = names.iter().find(|full| full.ends_with(&format!(":{name}"))) {
                name.clone_from(full);
            }
        }
        Self {
            pattern: pattern.text.clone(),
            kind: SearchedKind::Usdt,
            nearest: close,
            candidates: probes.len(),
            searched: searched.iter().map(|object| object.name().to_string()).collect(),
            inlined: None,
            hints: broken
                .into_iter()
                .chain(languages::loaded_later(objects).map(str::to_owned))
                .chain(object_hint(pattern, objects, &searched))
                .collect(),
        }
    }

    pub(super) fn marker(pattern: &Pattern, objects: &[Object], searched: &[usize]) -> Self {
        let searched: Vec<&Object> = searched.iter().map(|object| &objects[*object]).collect();
        let scopes: Vec<&MarkerScope> =
            searched.iter().flat_map(|object| &object.markers().scopes).collect();
        let flaws: Vec<String> =
            searched.iter().filter_map(|object| flawed_markers(object)).collect();
        let none = scopes.is_empty() && flaws.is_empty() && !searched.is_empty();
        let none = none.then(|| {
            "none of them has markers for ctrace (--wait awaits those of libraries that are opened \
             later)"
                .to_owned()
        });
        Self {
            pattern: pattern.text.clone(),
            kind: SearchedKind::Marker,
            nearest: nearest_scopes(&pattern.stem, &scopes),
            candidates: scopes.len(),
            searched: searched.iter().map(|object| object.name().to_string()).collect(),
            inlined: None,
            hints: flaws
                .into_iter()
                .chain(none)
                .chain(object_hint(pattern, objects, &searched))
                .collect(),
        }
    }

    /// Reports that patterns of -x removed all matches.
    pub(super) fn all_excluded(patterns: &[(SearchedKind, &[Pattern])], candidates: usize) -> Self {
        let asked = || patterns.iter().filter(|(_, patterns)| !patterns.is_empty());
        let texts: Vec<&str> =
            asked().flat_map(|(_, patterns)| *patterns).map(|p| p.text.as_str()).collect();
        Self {
            pattern: texts.join("`, `"),
            kind: asked().next().map_or(SearchedKind::Function, |(kind, _)| *kind),
            searched: Vec::new(),
            candidates,
            nearest: Vec::new(),
            inlined: None,
            hints: vec!["-x took all of them away".to_owned()],
        }
    }

    /// Returns the line for a pattern that may match in programs that come later.
    pub(crate) fn until_later(&self, awaits: Awaits) -> String {
        let program = self.searched.first().map_or("the program", String::as_str);
        let close = match &self.nearest[..] {
            [] => String::new(),
            names => format!(" (close to it: {})", written(names).join(", ")),
        };
        format!(
            "no {} of {program} matches `{}`{close}; {}{} are searched",
            self.kind,
            self.pattern,
            awaits.reason(),
            awaits.searched(),
        )
    }

    /// Returns what these patterns ask for.
    pub(crate) fn wanted(all: &[Self]) -> String {
        let each = all.iter().map(|one| format!("a {} that matches `{}`", one.kind, one.pattern));
        each.collect::<Vec<_>>().join(" or ")
    }

    pub(super) fn line(all: &[Self]) -> String {
        all.iter().map(Self::to_string).collect::<Vec<_>>().join("; ")
    }
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = self.kind;
        write!(f, "no {kind} matches `{}`", self.pattern)?;
        if let Some(inlined) = &self.inlined {
            write!(f, ": {inlined}")?;
        }
        if !self.searched.is_empty() {
            let shown = text::first_few(5, &self.searched);
            write!(f, " (searched {} in {shown})", count(self.candidates, kind))?;
        }
        if !self.nearest.is_empty() {
            write!(f, "; close to it: {}", written(&self.nearest).join(", "))?;
        }
        for hint in &self.hints {
            write!(f, "; {hint}")?;
        }
        Ok(())
    }
}

impl fmt::Display for SearchedKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Function => "function",
            Self::Usdt => "USDT probe",
            Self::Marker => "marker scope",
        })
    }
}

/// Returns names as reports have them, each once.
pub(super) fn written(names: &[String]) -> Vec<String> {
    let mut written = Vec::with_capacity(names.len());
    for name in names {
        let name = as_written(name).unwrap_or_else(|| name.clone());
        if !written.contains(&name) {
            written.push(name);
        }
    }
    written
}

fn count(number: usize, what: SearchedKind) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Returns the closest scopes by name or group, as `-m` takes them.
fn nearest_scopes(wanted: &str, scopes: &[&MarkerScope]) -> Vec<String> {
    let asked_for = scopes.iter().flat_map(|scope| {
        let full = scope.full_name().to_string();
        let group = scope.group.as_ref().map(|group| (format!("{group}/"), format!("{group}/*")));
        [(scope.name.to_string(), full.clone()), (full.clone(), full)].into_iter().chain(group)
    });
    let asked_for: BTreeMap<String, String> = asked_for.collect();
    let mut close = nearest(wanted, asked_for.keys().map(String::as_str), NEAREST);
    for name in &mut close {
        name.clone_from(&asked_for[name]);
    }
    close.dedup();
    close
}

/// Reports markers of an object that were left out.
pub(crate) fn flawed_markers(object: &Object) -> Option<String> {
    let flaws = &object.markers().flaws;
    (!flaws.is_empty()).then(|| format!("markers of {}: {flaws}", object.name()))
}

#[cfg(test)]
mod tests {
    use crate::target::fixtures::compile;
    use crate::target::select::{Patterns, Selector};

    #[test]
    fn an_inlined_function_is_told_first_and_nothing_is_guessed() {
        let source = "
            static inline __attribute__((always_inline)) int parse_header(int x) { return x * 7 / 9; }
            __attribute__((noinline)) int parse_headers(int x) { return parse_header(x) + x; }
            int main(int c, char **v) { return parse_headers(c); }
        ";
        let told = |name: &str| {
            let objects = [compile("gcc -g -O1", "c", source).object()];
            let functions = [name.to_owned()];
            let patterns = Patterns { functions: &functions, ..Patterns::default() };
            let selector = Selector::parse(patterns).expect("a pattern");
            selector.select(&objects, 9).expect_err("no function has this name").to_string()
        };
        let inlined = told("parse_header");
        let begin = "no function matches `parse_header`: `parse_header` is there, but inlined into \
                     parse_headers";
        assert!(inlined.starts_with(begin) && !inlined.contains("close to it"), "{inlined}");
        let typo = told("parse_haeders");
        assert!(typo.contains("; close to it: parse_headers"), "{typo}");
        let joined = told("parse_headers,main");
        assert!(joined.contains("give parse_headers and main an option each"), "{joined}");
        assert!(!told("parse_headers,none").contains("an option each"));
    }
}
