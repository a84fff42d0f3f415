//! Adds what chosen functions call: the way from a slow function to what is slow inside it, without
//! guesses of names.
//!
//! A call to another object names a symbol. Which definition of it the loader takes depends on the
//! order in which it loaded the objects, which a running process does not tell. So all of them are
//! added: those that nobody calls cost nothing.
//!
//! Of a function with several implementations (IFUNC), such as memcpy, the loader calls a chooser once at
//! the start. A running process tells what was chosen; otherwise a note says how to trace it.

use super::Selection;
use super::choices;
use super::loaded::{Loaded, Slot};
use super::search::Match;
use crate::target::elf;
use crate::target::elf::tables::{self, NamedSymbols};
use crate::target::object::Object;
use crate::target::place::{Candidate, CodeCalls, CodeMap, calls};
use std::collections::{BTreeMap, BTreeSet};

/// Adds the functions that the chosen ones call, and what those call, this many calls deep.
/// `exclude` takes away what is not wanted. What it took is not followed.
pub(super) fn add(
    selection: &mut Selection,
    objects: &[Object],
    loaded: Option<&Loaded>,
    depth: u32,
    exclude: impl Fn(&mut Selection),
) {
    let chosen: BTreeSet<Match> = selection.functions.iter().copied().collect();
    if chosen.is_empty() {
        return selection.notes.push(adds_nothing("--with-callees"));
    }
    let (mut search, mut unknown) = (Search::new(objects), BTreeSet::new());
    let all = reach(&chosen, depth, exclude, |functions| {
        search.called_by(functions, loaded, &mut unknown)
    });
    selection.notes.push(search.end().note("--with-callees", all.len() - chosen.len()));
    selection.notes.extend(choices::note(objects, &unknown));
    selection.functions = all.into_iter().collect();
}

pub(super) fn adds_nothing(option: &str) -> String {
    format!("{option} adds nothing: no function is chosen, which -f does")
}

/// Returns the chosen functions, and those that `next` finds from them, this many calls away.
pub(super) fn reach(
    chosen: &BTreeSet<Match>,
    depth: u32,
    exclude: impl Fn(&mut Selection),
    mut next: impl FnMut(&BTreeSet<Match>) -> BTreeSet<Match>,
) -> BTreeSet<Match> {
    let (mut all, mut newest) = (chosen.clone(), chosen.clone());
    for _ in 0..depth {
        let found = next(&newest);
        let mut found = Selection::of(found.difference(&all).copied().collect());
        exclude(&mut found);
        newest = found.functions.into_iter().collect();
        all.extend(&newest);
        if newest.is_empty() {
            break;
        }
    }
    all
}

/// A symbol of an object as others call it.
pub(super) enum Definition {
    Function(Match),
    /// The symbol is that of the chooser.
    ChosenAtStart,
}

/// The calls and functions that the search could not follow.
#[derive(Default)]
pub(super) struct Missed {
    /// Calls through pointers.
    through_pointers: usize,
    /// Called places without a function that has a name.
    nameless: usize,
    /// Functions whose code could not be followed to its end.
    pub(super) partial: usize,
}

impl Missed {
    /// Counts the calls of a function that do not say whom they call.
    pub(super) fn count(&mut self, calls: &CodeCalls<'_>) {
        self.through_pointers += calls.through_pointers;
        self.partial += usize::from(calls.is_partial);
    }

    pub(super) fn note(&self, option: &str, added: usize) -> String {
        let mut note = format!("functions that {option} adds: {added}");
        let parts = [
            (self.through_pointers, "calls through pointers, which do not say whom they call"),
            (self.nameless, "called functions without a name"),
            (self.partial, "functions whose code could not be followed to its end"),
        ];
        for (count, what) in parts.into_iter().filter(|(count, _)| *count > 0) {
            note += &format!("; {what}: {count}");
        }
        note
    }
}

/// The code of the objects in which calls are looked for.
pub(super) struct Search<'a> {
    objects: &'a [Object],
    /// By object, each with its memory. None for an object whose code cannot be read.
    maps: BTreeMap<usize, (Option<CodeMap<'a>>, u64)>,
    pub(super) missed: Missed,
}

impl<'a> Search<'a> {
    pub(super) fn new(objects: &'a [Object]) -> Self {
        Self { objects, maps: BTreeMap::new(), missed: Missed::default() }
    }

    /// Gives the memory of the maps back. Whoever places probes reads the code again.
    pub(super) fn end(mut self) -> Missed {
        (0..self.objects.len()).for_each(|object| self.leave(object));
        self.missed
    }

    /// Gives the memory of an object's map back.
    pub(super) fn leave(&mut self, object: usize) {
        if let Some((map, memory)) = self.maps.remove(&object) {
            drop(map);
            self.objects[object].source().budget().release(memory);
        }
    }

    /// Returns what these functions call. `unknown` gets the names of those with several implementations
    /// of which nothing tells which one runs, each with the object that has them.
    fn called_by(
        &mut self,
        functions: &BTreeSet<Match>,
        loaded: Option<&Loaded>,
        unknown: &mut BTreeSet<(usize, &'a str)>,
    ) -> BTreeSet<Match> {
        let mut called = BTreeSet::new();
        let mut symbols = BTreeMap::<&str, BTreeSet<Slot>>::new();
        let mut choices = BTreeSet::<Slot>::new();
        for function in functions {
            let Some(found) = self.calls(*function) else {
                self.missed.partial += 1;
                continue;
            };
            self.missed.count(&found);
            for address in found.inside {
                match self.function_at(function.object, address) {
                    Some(function) => _ = called.insert(function),
                    None => self.missed.nameless += 1,
                }
            }
            for (symbol, slot) in found.imports {
                symbols.entry(symbol).or_default().insert((function.object, slot));
            }
            choices.extend(found.choices.into_iter().map(|slot| (function.object, slot)));
        }
        let (mut found, mut chosen) = (BTreeSet::new(), BTreeMap::new());
        for object in (0..self.objects.len()).filter(|_| !symbols.is_empty()) {
            let mut functions = Vec::new();
            self.each_defined(object, |name, defined| {
                if symbols.contains_key(name) {
                    found.insert(name);
                    match defined {
                        Definition::Function(function) => functions.push((name, function)),
                        Definition::ChosenAtStart => _ = chosen.entry(name).or_insert(object),
                    }
                }
            });
            // An old version of a name, for old programs, may have one implementation.
            functions.retain(|(name, _)| chosen.get(name) != Some(&object));
            called.extend(functions.into_iter().map(|(_, function)| function));
        }
        self.missed.nameless += symbols.len() - found.len();
        let behind = |slots: &BTreeSet<Slot>| match loaded {
            Some(loaded) => loaded.functions(self.objects, slots),
            None => BTreeMap::new(),
        };
        let of_names = chosen.keys().filter_map(|name| symbols.get(name)).flatten();
        let known = behind(&of_names.chain(&choices).copied().collect());
        self.missed.nameless += choices.iter().filter(|slot| !known.contains_key(*slot)).count();
        let is_known = |name: &str| symbols[name].iter().any(|slot| known.contains_key(slot));
        let untold = chosen.into_iter().filter(|(name, _)| !is_known(name));
        unknown.extend(untold.map(|(name, object)| (object, name)));
        called.extend(known.into_values());
        called
    }

    pub(super) fn calls(&mut self, function: Match) -> Option<CodeCalls<'a>> {
        let object = &self.objects[function.object];
        let (functions, budget) = (object.functions(), object.source().budget());
        let (map, _) = self.maps.entry(function.object).or_insert_with(|| {
            let before = budget.used();
            let map = CodeMap::of(object).ok();
            (map, budget.used().saturating_sub(before))
        });
        let function = &functions[function.index];
        let (address, size, name) = (function.address, function.size, function.raw());
        map.as_ref().map(|map| calls(Candidate { address, size, name }, map))
    }

    pub(super) fn function_at(&self, object: usize, address: u64) -> Option<Match> {
        let functions = self.objects[object].functions();
        let index = functions.binary_search_by_key(&address, |it| it.address).ok()?;
        Some(Match { object, index })
    }

    /// Passes the functions on that an object defines for others, by name.
    pub(super) fn each_defined(&self, object: usize, mut take: impl FnMut(&'a str, Definition)) {
        let source = self.objects[object].source();
        let _look = source.budget().look();
        let Ok(file) = elf::parse(source) else { return };
        for (symbol, name) in NamedSymbols::dynamic(source, &file).named() {
            let (address, _, is_function) = tables::facts(symbol);
            if !is_function {
                continue;
            }
            if tables::is_chosen_at_start(symbol) {
                take(name, Definition::ChosenAtStart);
            } else if let Some(function) = self.function_at(object, address) {
                take(name, Definition::Function(function));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Patterns;

    fn chosen(function: &str, depth: u32, exclude: &[&str]) -> (Vec<String>, Vec<String>) {
        super::super::tests::chosen(function, exclude, |asked| Patterns {
            with_callees: depth,
            ..asked
        })
    }

    #[test]
    fn calls_are_followed_as_deep_as_asked() {
        assert_eq!(chosen("start", 0, &[]).0, ["start"]);
        let (names, notes) = chosen("start", 1, &[]);
        assert_eq!(names, ["middle", "other", "start"]);
        let note = "functions that --with-callees adds: 2; calls through pointers, which do not say whom \
                    they call: 1";
        assert_eq!(notes, [note]);
        assert_eq!(chosen("start", 2, &[]).0, ["deeper", "middle", "other", "start"]);
        // The last level is in a library.
        let (names, _) = chosen("start", 9, &[]);
        let own = ["deeper", "deepest", "malloc", "middle", "other", "puts", "start"];
        assert!(own.iter().all(|own| names.iter().any(|name| name == own)), "{names:?}");
        assert!(!names.iter().any(|name| name == "only_hooked"));
    }

    #[test]
    fn a_jump_at_the_end_is_a_call() {
        assert_eq!(chosen("last", 1, &[]).0, ["last", "middle"]);
    }

    #[test]
    fn what_is_left_out_is_not_followed() {
        assert_eq!(chosen("start", 9, &["deeper"]).0, ["middle", "other", "start"]);
    }
}
