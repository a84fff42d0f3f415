//! Adds the functions that call the chosen ones: the way from a slow function to whoever asks for it.
//!
//! The code of all functions is read once, for their calls by name. Calls through pointers do not say
//! whom they call, so their callers are missing, and a note counts them.

use super::Selection;
use super::callees::{Definition, Search, adds_nothing, reach};
use super::search::Match;
use crate::target::names::demangle::is_part;
use crate::target::object::Object;
use crate::target::read::budget::own_time;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

/// The limits of the search.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// Calls that are remembered.
    calls: usize,
    /// CPU time. Placing probes has its own.
    time: Duration,
}

const LIMITS: Limits = Limits { calls: 4_000_000, time: Duration::from_secs(5) };

/// Adds the functions that call some of `chosen`, and those that call these, this many calls deep.
/// `exclude` takes away what is not wanted. What it took is not followed.
pub(super) fn add(
    selection: &mut Selection,
    chosen: &BTreeSet<Match>,
    objects: &[Object],
    depth: u32,
    exclude: impl Fn(&mut Selection),
) {
    if chosen.is_empty() {
        return selection.notes.push(adds_nothing("--with-callers"));
    }
    let mut search = Search::new(objects);
    let calls = Calls::read(&mut search, objects, LIMITS);
    let mut all = reach(chosen, depth, exclude, |functions| calls.of(functions));
    let mut note = search.end().note("--with-callers", all.len() - chosen.len());
    if !calls.are_all {
        note += "; not all of the code was searched, there is too much of it";
    }
    selection.notes.push(note);
    all.extend(&selection.functions);
    selection.functions = all.into_iter().collect();
}

/// The calls by name in all code.
#[derive(Default)]
struct Calls<'a> {
    /// The callers of each function, within its object.
    inside: HashMap<Match, Vec<Match>>,
    /// The callers of each symbol.
    imports: BTreeMap<&'a str, Vec<Match>>,
    /// The symbols among these of each function that has any.
    names: BTreeMap<Match, BTreeSet<&'a str>>,
    /// False if the search came to a limit.
    are_all: bool,
}

impl<'a> Calls<'a> {
    fn read(search: &mut Search<'a>, objects: &'a [Object], limits: Limits) -> Self {
        let mut calls = Self { are_all: true, ..Self::default() };
        let (mut left, begun) = (limits.calls, own_time());
        for (object, of) in objects.iter().enumerate() {
            let start = own_time();
            for (index, function) in of.functions().iter().enumerate() {
                // It is read with its function.
                if is_part(function.raw()) {
                    continue;
                }
                if left == 0 || own_time().saturating_sub(begun) > limits.time {
                    calls.are_all = false;
                    break;
                }
                let caller = Match { object, index };
                let Some(found) = search.calls(caller) else {
                    search.missed.partial += of.functions().len();
                    break;
                };
                search.missed.count(&found);
                left = left.saturating_sub(found.inside.len() + found.imports.len());
                for address in found.inside {
                    if let Some(called) = search.function_at(object, address) {
                        calls.inside.entry(called).or_default().push(caller);
                    }
                }
                for symbol in found.imports.into_keys() {
                    calls.imports.entry(symbol).or_default().push(caller);
                }
            }
            search.leave(object);
            of.source().budget().release_time(own_time().saturating_sub(start));
        }
        for object in 0..objects.len() {
            search.each_defined(object, |name, defined| {
                if let Definition::Function(called) = defined
                    && calls.imports.contains_key(name)
                {
                    calls.names.entry(called).or_default().insert(name);
                }
            });
        }
        calls
    }

    /// Returns the functions that call one of these.
    fn of(&self, functions: &BTreeSet<Match>) -> BTreeSet<Match> {
        let names = functions.iter().filter_map(|function| self.names.get(function)).flatten();
        let names: BTreeSet<&str> = names.copied().collect();
        let imports = names.iter().filter_map(|name| self.imports.get(name)).flatten();
        let inside = functions.iter().filter_map(|function| self.inside.get(function)).flatten();
        imports.chain(inside).copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Patterns;
    use super::super::tests::chosen;
    use super::*;
    use crate::target::fixtures::system_libc;

    fn callers_of(function: &str, depth: u32, exclude: &[&str]) -> (Vec<String>, Vec<String>) {
        chosen(function, exclude, |asked| Patterns { with_callers: depth, ..asked })
    }

    #[test]
    fn callers_are_followed_as_high_as_asked() {
        let (names, notes) = callers_of("middle", 1, &[]);
        assert_eq!(names, ["last", "middle", "start"]);
        assert!(notes[0].starts_with("functions that --with-callers adds: 2; "), "{notes:?}");
        assert_eq!(callers_of("middle", 2, &[]).0, ["last", "main", "middle", "start"]);
        assert_eq!(callers_of("middle", 2, &["start"]).0, ["last", "main", "middle"]);
    }

    #[test]
    fn a_function_of_a_library_has_callers_in_the_program() {
        let (names, _) = callers_of("malloc", 1, &[]);
        assert!(names.iter().any(|name| name == "deepest"), "{names:?}");
        assert!(!names.iter().any(|name| name == "deeper"), "{names:?}");
    }

    /// Nobody calls it by name.
    #[test]
    fn calls_through_pointers_are_counted() {
        let (names, notes) = callers_of("only_hooked", 1, &[]);
        assert_eq!(names, ["only_hooked"]);
        assert!(notes[0].contains("calls through pointers, which do not say whom they call: "));
    }

    #[test]
    fn the_search_ends_at_its_limits() {
        let objects = [system_libc()];
        let are_all = |limits| {
            let mut search = Search::new(&objects);
            Calls::read(&mut search, &objects, limits).are_all
        };
        let enough = Limits { calls: 1_000_000, time: Duration::from_secs(1000) };
        assert!(are_all(enough));
        assert!(!are_all(Limits { calls: 100, ..enough }));
        assert!(!are_all(Limits { time: Duration::ZERO, ..enough }));
    }
}
