//! Adds the functions that call the chosen ones: the way from a slow function to whoever asks for it.
//!
//! The code of all functions is read once, for their calls by name. Calls through pointers do not say
//! whom they call, so their callers are missing, and a note counts them.

use super::Selection;
use super::callees::Search;
use super::search::Match;
use crate::target::object::Object;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Calls that are remembered, at most.
const MOST_CALLS: usize = 4_000_000;

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
        let note = "--with-callers adds nothing: no function is chosen, which -f does";
        return selection.notes.push(note.to_owned());
    }
    let mut search = Search::new(objects);
    let (callers, is_whole) = callers(&mut search, objects);
    let mut all = chosen.clone();
    let mut newest = chosen.clone();
    for _ in 0..depth {
        let calling = newest.iter().filter_map(|function| callers.get(function)).flatten();
        let calling: BTreeSet<Match> = calling.copied().collect();
        let mut calling = Selection::of(calling.difference(&all).copied().collect());
        exclude(&mut calling);
        newest = calling.functions.into_iter().collect();
        all.extend(&newest);
        if newest.is_empty() {
            break;
        }
    }
    let added = all.len() - chosen.len();
    let mut note = search.end().note("--with-callers", added);
    if !is_whole {
        note += &format!("; of all calls in the program, only {MOST_CALLS} were looked at");
    }
    selection.notes.push(note);
    selection.functions = selection
        .functions
        .iter()
        .copied()
        .chain(all)
        .collect::<BTreeSet<_>>()
        .into_iter()
        .collect();
}

/// Returns the callers of each function that is called by name, and whether these are all.
fn callers<'a>(
    search: &mut Search<'a>,
    objects: &'a [Object],
) -> (HashMap<Match, Vec<Match>>, bool) {
    let mut callers: HashMap<Match, Vec<Match>> = HashMap::new();
    let mut by_symbol: BTreeMap<&str, Vec<Match>> = BTreeMap::new();
    let mut left = MOST_CALLS;
    for (object, of) in objects.iter().enumerate() {
        for index in 0..of.functions().len() {
            let caller = Match { object, index };
            let Some(calls) = search.calls(caller) else { break };
            let count = calls.inside.len() + calls.imports.len();
            if count > left {
                return (callers, false);
            }
            left -= count;
            search.missed.count(&calls);
            for address in calls.inside {
                if let Some(called) = search.function_at(object, address) {
                    callers.entry(called).or_default().push(caller);
                }
            }
            for symbol in calls.imports {
                by_symbol.entry(symbol).or_default().push(caller);
            }
        }
    }
    for object in 0..objects.len() {
        search.each_defined(object, |name, called| {
            if let Some(calling) = by_symbol.get(name) {
                callers.entry(called).or_default().extend(calling);
            }
        });
    }
    (callers, true)
}

#[cfg(test)]
mod tests {
    use super::super::Patterns;
    use super::super::tests::chosen;

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
}
