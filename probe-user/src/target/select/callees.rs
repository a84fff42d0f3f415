//! Adds what chosen functions call: the way from a slow function to what is slow inside it, without
//! guesses of names.
//!
//! A call to another object names a symbol. Which definition of it the loader takes depends on the
//! order in which it loaded the objects, which a running process does not tell. So all of them are
//! added: those that nobody calls cost nothing.

use super::Selection;
use super::search::Match;
use crate::target::elf;
use crate::target::elf::tables::{self, NamedSymbols};
use crate::target::object::Object;
use crate::target::place::{Candidate, CodeCalls, CodeMap, calls};
use std::collections::{BTreeMap, BTreeSet};

/// Adds the functions that the chosen ones call, and what those call, this many calls deep.
/// `exclude` takes away what is not wanted. What it took is not followed.
pub(crate) fn add(
    selection: &mut Selection,
    objects: &[Object],
    depth: u32,
    exclude: impl Fn(&mut Selection),
) {
    let mut all: BTreeSet<Match> = selection.functions.iter().copied().collect();
    if all.is_empty() {
        let note = "--with-callees adds nothing: no function is chosen, which -f does";
        return selection.notes.push(note.to_owned());
    }
    let before = all.len();
    let mut search = Search { objects, maps: BTreeMap::new(), missed: Missed::default() };
    let mut newest = all.clone();
    for _ in 0..depth {
        let called = search.called_by(&newest);
        let mut called = Selection::of(called.difference(&all).copied().collect());
        exclude(&mut called);
        newest = called.functions.into_iter().collect();
        all.extend(&newest);
        if newest.is_empty() {
            break;
        }
    }
    let missed = search.end();
    selection.notes.push(missed.note(all.len() - before));
    selection.functions = all.into_iter().collect();
}

/// The calls and functions that the search could not follow.
#[derive(Default)]
struct Missed {
    /// Calls through pointers.
    through_pointers: usize,
    /// Called places without a function that has a name, or that is chosen at load.
    nameless: usize,
    /// Functions whose code could not be followed to its end.
    partial: usize,
}

impl Missed {
    fn note(&self, added: usize) -> String {
        let mut note = format!("functions that --with-callees adds: {added}");
        let parts = [
            (self.through_pointers, "calls through pointers, which do not say whom they call"),
            (self.nameless, "called functions without a name, or chosen at load"),
            (self.partial, "functions whose code could not be followed to its end"),
        ];
        for (count, what) in parts.into_iter().filter(|(count, _)| *count > 0) {
            note += &format!("; {what}: {count}");
        }
        note
    }
}

/// The code of the objects in which calls are looked for.
struct Search<'a> {
    objects: &'a [Object],
    /// By object, each with its memory. None for an object whose code cannot be read.
    maps: BTreeMap<usize, (Option<CodeMap<'a>>, u64)>,
    missed: Missed,
}

impl<'a> Search<'a> {
    /// Gives the memory of the maps back. Whoever places probes reads the code again.
    fn end(self) -> Missed {
        for (object, (map, memory)) in self.maps {
            drop(map);
            self.objects[object].source().budget().release(memory);
        }
        self.missed
    }

    fn called_by(&mut self, functions: &BTreeSet<Match>) -> BTreeSet<Match> {
        let mut called = BTreeSet::new();
        let mut symbols = BTreeSet::new();
        for function in functions {
            let Some(found) = self.calls(*function) else {
                self.missed.partial += 1;
                continue;
            };
            for address in found.inside {
                match self.function_at(function.object, address) {
                    Some(function) => _ = called.insert(function),
                    None => self.missed.nameless += 1,
                }
            }
            symbols.extend(found.imports);
            self.missed.through_pointers += found.through_pointers;
            self.missed.partial += usize::from(found.is_partial);
        }
        let mut found = BTreeSet::new();
        if !symbols.is_empty() {
            for object in 0..self.objects.len() {
                self.add_defined(object, &symbols, &mut called, &mut found);
            }
        }
        self.missed.nameless += symbols.len() - found.len();
        called
    }

    fn calls(&mut self, function: Match) -> Option<CodeCalls<'a>> {
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

    fn function_at(&self, object: usize, address: u64) -> Option<Match> {
        let functions = self.objects[object].functions();
        let index = functions.binary_search_by_key(&address, |it| it.address).ok()?;
        Some(Match { object, index })
    }

    /// Adds an object's definitions of these symbols to the called functions.
    fn add_defined(
        &self,
        object: usize,
        symbols: &BTreeSet<&'a str>,
        called: &mut BTreeSet<Match>,
        found: &mut BTreeSet<&'a str>,
    ) {
        let source = self.objects[object].source();
        let _look = source.budget().look();
        let Ok(file) = elf::parse(source) else { return };
        for (symbol, name) in NamedSymbols::dynamic(source, &file).named() {
            let (address, _, is_function) = tables::facts(symbol);
            if is_function
                && symbols.contains(name)
                && let Some(function) = self.function_at(object, address)
            {
                called.insert(function);
                found.insert(name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Patterns, Selector};
    use crate::target::fixtures::{compile, system_libc};

    const SOURCE: &str = r#"
        #include <stdio.h>
        #include <stdlib.h>
        #define F(name, body) __attribute__((noinline)) int name(int x) { body; return x + __LINE__; }
        int (*volatile hook)(int);
        F(deepest, x += puts("deep"); x += malloc(x) == 0)
        F(deeper, x += deepest(x) * 3)
        F(middle, x += deeper(x) * 5)
        F(only_hooked, x *= 2)
        F(other, x *= 7)
        __attribute__((noinline)) int last(int x) { return middle(x + 11); }
        F(start, x += middle(x) * hook(x); x += start == 0; x += other(x) - 1)
        int main(int c, char **v) { hook = only_hooked; return start(c) + last(c); }
    "#;

    fn chosen(function: &str, depth: u32, exclude: &[&str]) -> (Vec<String>, Vec<String>) {
        let built = compile("gcc -O2", "c", SOURCE);
        let mut libc = system_libc();
        libc.set_main(false);
        let objects = [built.object(), libc];
        let exclude: Vec<String> = exclude.iter().map(|it| (*it).to_owned()).collect();
        let asked = Patterns {
            functions: &[function.to_owned()],
            exclude: &exclude,
            with_callees: depth,
            ..Patterns::default()
        };
        let selection = Selector::parse(asked).unwrap().select(&objects, 100_000).unwrap();
        let names = selection.functions(&objects).map(|(_, it)| it.name().to_string());
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        (names, selection.notes)
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
