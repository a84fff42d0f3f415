//! Adds what chosen functions call: the way from a slow function to what is slow inside it, without
//! guesses of names.
//!
//! A call to another object names a symbol. The loader takes the first object that has it in its
//! dynamic symbol table, so that is looked for here.

use super::elf;
use super::object::Object;
use super::place::{Calls, Candidate, CodeMap, calls};
use super::search::Match;
use super::select::Selection;
use super::tables::{self, NamedSymbols};
use std::collections::{BTreeMap, BTreeSet};

/// Adds the functions that the chosen ones call, and what those call, this many calls deep.
/// `exclude` takes away what is not wanted. What it took is not followed.
pub(super) fn add(
    selection: &mut Selection,
    objects: &[Object],
    depth: u32,
    exclude: impl Fn(&mut Selection),
) {
    let mut all: BTreeSet<Match> = selection.functions.iter().copied().collect();
    let before = all.len();
    let mut maps = Maps { objects, read: BTreeMap::new() };
    let mut newest = all.clone();
    let mut through_pointers = 0;
    for _ in 0..depth {
        let (called, pointers) = maps.called_by(&newest);
        through_pointers += pointers;
        let mut called = Selection::of(called.difference(&all).copied().collect());
        exclude(&mut called);
        newest = called.functions.into_iter().collect();
        all.extend(&newest);
        if newest.is_empty() {
            break;
        }
    }
    selection.notes.push(note(all.len() - before, through_pointers));
    selection.functions = all.into_iter().collect();
}

fn note(added: usize, through_pointers: usize) -> String {
    let note = format!("functions that --with-callees adds: {added}");
    match through_pointers {
        0 => note,
        _ => format!(
            "{note}; calls through pointers in the code, which do not say whom they call: \
             {through_pointers}"
        ),
    }
}

/// The code of the objects in which calls are looked for.
struct Maps<'a> {
    objects: &'a [Object],
    /// None for an object whose code cannot be read.
    read: BTreeMap<usize, Option<CodeMap<'a>>>,
}

impl<'a> Maps<'a> {
    /// Returns what these functions call, and the number of calls through pointers.
    fn called_by(&mut self, functions: &BTreeSet<Match>) -> (BTreeSet<Match>, usize) {
        let mut called = BTreeSet::new();
        let mut symbols = BTreeSet::new();
        let mut through_pointers = 0;
        for function in functions {
            let found = self.calls(*function);
            let object = function.object;
            called.extend(found.inside.iter().filter_map(|at| self.function_at(object, *at)));
            symbols.extend(found.imports);
            through_pointers += found.through_pointers;
        }
        for object in 0..self.objects.len() {
            if symbols.is_empty() {
                break;
            }
            self.take_defined(object, &mut symbols, &mut called);
        }
        (called, through_pointers)
    }

    fn calls(&mut self, function: Match) -> Calls<'a> {
        let object = &self.objects[function.object];
        let map = self.read.entry(function.object).or_insert_with(|| {
            let mut map = CodeMap::parse(object.source()).ok()?;
            map.learn(object.functions().iter().map(|it| (it.address, it.size, it.raw())));
            Some(map)
        });
        let function = &object.functions()[function.index];
        let (address, size, name) = (function.address, function.size, function.raw());
        map.as_ref().map(|map| calls(Candidate { address, size, name }, map)).unwrap_or_default()
    }

    fn function_at(&self, object: usize, address: u64) -> Option<Match> {
        let functions = self.objects[object].functions();
        let index = functions.binary_search_by_key(&address, |it| it.address).ok()?;
        Some(Match { object, index })
    }

    /// Moves the symbols that an object defines to the called functions.
    fn take_defined(
        &self,
        object: usize,
        symbols: &mut BTreeSet<&'a str>,
        called: &mut BTreeSet<Match>,
    ) {
        let source = self.objects[object].source();
        let _look = source.budget().look();
        let Ok(file) = elf::parse(source) else { return };
        for (symbol, name) in NamedSymbols::dynamic(source, &file).named() {
            let (address, _, is_function) = tables::facts(symbol);
            if is_function && symbols.remove(name) {
                called.extend(self.function_at(object, address));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::{compile, system_libc};
    use super::super::select::{Patterns, Selector};

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
        let note = "functions that --with-callees adds: 2; calls through pointers in the code, which do \
                    not say whom they call: 1";
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
