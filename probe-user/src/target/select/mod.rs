//! Selects the functions to trace from what the user asked for.

pub(crate) mod awaits;
mod by_address;
mod callees;
mod callers;
mod choices;
mod compiler_made;
mod error;
mod hints;
mod languages;
mod loaded;
pub(crate) mod naming;
pub(crate) mod not_found;
mod pairs;
pub(crate) mod pattern;
mod prefilter;
pub(crate) mod recorded;
mod regex_error;
mod search;
mod selection;
pub(crate) mod stripped;
mod surprises;

use super::object::Object;
use super::process::maps::MappedObject;
use hints::chosen_at_load;
use loaded::Loaded;
use not_found::{NotFound, SearchedKind};
use pairs::PairPattern;
use pattern::{Pattern, PatternError};
use search::{Found, find, matching, matching_functions, objects_that, search};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use surprises::{ends_of_names, stands_for};

pub(crate) use compiler_made::is_compiler_made;
pub(crate) use error::SelectError;
pub(crate) use search::Match;
pub(crate) use selection::Selection;

/// SELECT as it stands on the command line: -f, -u, -m and -x, --pair and --no-pairs, --with-callees,
/// --with-callers, and the functions of --arg, --ret and --where.
#[derive(Clone, Copy, Debug, Default)]
pub struct Patterns<'a> {
    pub functions: &'a [String],
    pub usdt: &'a [String],
    pub markers: &'a [String],
    pub exclude: &'a [String],
    pub pairs: &'a [String],
    pub no_pairs: bool,
    pub with_callees: u32,
    pub with_callers: u32,
    pub values: &'a [ValuesOf<'a>],
}

/// A pattern of functions, or of USDT probes, whose values are asked for.
#[derive(Clone, Copy, Debug)]
pub struct ValuesOf<'a> {
    pub pattern: &'a str,
    pub is_usdt: bool,
}

impl Patterns<'_> {
    pub(crate) fn is_empty(&self) -> bool {
        let lists = [self.functions, self.usdt, self.markers, self.exclude];
        lists.iter().all(|list| list.is_empty()) && self.pairs.is_empty() && self.values.is_empty()
    }
}

/// The parsed SELECT of a command line.
#[derive(Clone, Debug, Default)]
pub struct Selector {
    functions: Vec<Pattern>,
    usdt: Vec<Pattern>,
    /// Pairs of USDT probes that are asked for by name.
    pairs: Vec<PairPattern>,
    no_pairs: bool,
    /// The number of calls from chosen functions to others that are chosen as well.
    with_callees: u32,
    /// The same for calls of chosen functions by others.
    with_callers: u32,
    markers: Vec<Pattern>,
    exclude: Vec<Pattern>,
}

impl Selector {
    pub fn parse(asked: Patterns<'_>) -> Result<Self, SelectError> {
        let parse = |texts: &[String]| -> Result<Vec<Pattern>, PatternError> {
            texts.iter().map(|text| Pattern::parse(text)).collect()
        };
        let (mut functions, mut usdt) = (parse(asked.functions)?, parse(asked.usdt)?);
        for (number, of) in asked.values.iter().enumerate() {
            let list = if of.is_usdt { &mut usdt } else { &mut functions };
            list.push(Pattern::parse_of_values(of.pattern, number)?);
        }
        Ok(Self {
            functions,
            usdt,
            pairs: asked
                .pairs
                .iter()
                .map(|text| PairPattern::parse(text))
                .collect::<Result<_, _>>()?,
            no_pairs: asked.no_pairs,
            with_callees: asked.with_callees,
            with_callers: asked.with_callers,
            markers: parse(asked.markers)?,
            exclude: parse(asked.exclude)?,
        })
    }

    /// Returns whether nothing is asked for.
    pub(crate) fn is_empty(&self) -> bool {
        let usdt = self.usdt.is_empty() && self.pairs.is_empty();
        self.functions.is_empty() && usdt && self.markers.is_empty()
    }

    /// Asks for all marker scopes as well.
    pub(crate) fn ask_for_all_markers(&mut self) -> Result<(), PatternError> {
        self.markers.push(Pattern::parse("*")?);
        Ok(())
    }

    pub(crate) fn asks_for_functions(&self) -> bool {
        !self.functions.is_empty()
    }

    pub(crate) fn asks_for_markers(&self) -> bool {
        !self.markers.is_empty()
    }

    pub fn asks_for_usdt(&self) -> bool {
        !self.usdt.is_empty() || !self.pairs.is_empty()
    }

    /// Returns the patterns to search for in libraries that load after `selection` was made. A
    /// pattern without an object is done once the program itself matched it. Markers are the
    /// exception: they are searched everywhere.
    pub(crate) fn for_late_objects(&self, selection: &Selection) -> Self {
        let open = |patterns: &[Pattern], settled: &[usize]| -> Vec<Pattern> {
            let places = patterns.iter().enumerate();
            let open = places.filter(|(place, _)| !settled.contains(place));
            open.map(|(_, pattern)| pattern.clone()).collect()
        };
        let whole = |patterns: &[Pattern], found: &[usize]| -> Vec<Pattern> {
            let places = patterns.iter().enumerate();
            let is_whole = |place: usize| found.contains(&place);
            places.map(|(at, p)| if is_whole(at) { p.found_whole() } else { p.clone() }).collect()
        };
        let settled = &selection.settled;
        let functions = whole(&self.functions, &settled.whole_functions);
        let pairs = self.pairs.iter().enumerate();
        let pairs = pairs.filter(|(place, _)| !settled.pairs.contains(place));
        let pairs = pairs.map(|(_, pair)| pair.clone()).collect();
        Self {
            functions: open(&functions, &settled.functions),
            usdt: open(&self.usdt, &settled.usdt),
            pairs,
            no_pairs: self.no_pairs,
            with_callees: self.with_callees,
            with_callers: self.with_callers,
            markers: whole(&self.markers, &settled.whole_markers),
            exclude: self.exclude.clone(),
        }
    }

    /// Looks everything up, in objects of a program that does not run.
    pub fn select(&self, objects: &[Object], limit: usize) -> Result<Selection, SelectError> {
        self.select_in(objects, None, limit)
    }

    /// Looks everything up. `objects` are those that are `mapped`: if a process runs, it is asked what was
    /// chosen at its start.
    pub(crate) fn select_mapped(
        &self,
        mapped: &[MappedObject],
        objects: &[Object],
        limit: usize,
    ) -> Result<Selection, SelectError> {
        let loaded = (self.with_callees > 0).then(|| Loaded::of(mapped, objects)).flatten();
        self.select_in(objects, loaded.as_ref(), limit)
    }

    /// Looks everything up. `objects` belong to one process, with the program itself marked as
    /// main. Takes at most `limit` functions, probes and scopes.
    fn select_in(
        &self,
        objects: &[Object],
        loaded: Option<&Loaded>,
        limit: usize,
    ) -> Result<Selection, SelectError> {
        if self.is_empty() {
            return Err(SelectError::NothingAsked);
        }
        let mut selection = Selection::default();
        self.select_functions(objects, &mut selection);
        self.select_usdt(objects, &mut selection);
        self.select_markers(objects, &mut selection);
        let before = selection.len();
        if before == 0 {
            return Err(SelectError::NothingFound(selection.unmatched));
        }
        let exclude = Self::exclude(&self.exclude, objects, &mut selection);
        selection.excluded = before - selection.len();
        let chosen: BTreeSet<Match> = selection.functions.iter().copied().collect();
        let exclude = |more: &mut Selection| _ = Self::exclude(&exclude, objects, more);
        if self.with_callees > 0 {
            callees::add(&mut selection, objects, loaded, self.with_callees, exclude);
        }
        if self.with_callers > 0 {
            callers::add(&mut selection, &chosen, objects, self.with_callers, exclude);
        }
        selection.settle_pairs();
        let found = selection.len();
        if found == 0 {
            let asked: [(SearchedKind, &[Pattern]); 3] = [
                (SearchedKind::Function, &self.functions),
                (SearchedKind::Usdt, &self.usdt),
                (SearchedKind::Marker, &self.markers),
            ];
            return Err(SelectError::NothingFound(vec![NotFound::all_excluded(&asked, before)]));
        }
        if found > limit {
            return Err(SelectError::TooMany { found, limit });
        }
        Ok(selection)
    }

    fn select_functions(&self, objects: &[Object], selection: &mut Selection) {
        let mut all = BTreeSet::new();
        for (place, pattern) in self.functions.iter().enumerate() {
            let Found { matches: found, searched, by_last_part } =
                search(pattern, objects, matching_functions);
            let found = pattern.prefer_named(found, |found| names(objects, found));
            if found.is_empty() {
                selection.unmatched.push(NotFound::function(pattern, objects, &searched));
            } else if by_last_part {
                // The table has the whole name of the only one.
                if found.len() > 1 {
                    selection.notes.push(stands_for(pattern, objects, &found));
                }
            } else if let Some(note) = ends_of_names(pattern, objects, &found) {
                selection.report_notes.push(note.clone());
                selection.notes.push(note);
            } else if pattern.is_literal() {
                // A function chosen at load may have this name, too.
                let found_in = searched.iter().map(|object| &objects[*object]);
                selection.notes.extend(found_in.filter_map(|o| chosen_at_load(pattern, o)));
            }
            selection.notes.extend(stripped::remark(pattern, objects, &found));
            if !found.is_empty() && !by_last_part {
                selection.settled.whole_functions.push(place);
            }
            if is_settled(pattern, objects, &found) {
                selection.settled.functions.push(place);
            }
            let in_full = |found: &&Match| {
                pattern.names_in_full(&objects[found.object].functions()[found.index])
            };
            selection.named_in_full.extend(found.iter().filter(in_full));
            if let Some(number) = pattern.values {
                found.iter().for_each(|it| selection.values.entry(*it).or_default().push(number));
            }
            all.extend(found);
        }
        selection.functions = all.into_iter().collect();
    }

    fn select_usdt(&self, objects: &[Object], selection: &mut Selection) {
        let mut all = BTreeSet::new();
        for (place, pattern) in self.usdt.iter().enumerate() {
            let Found { matches: found, searched, .. } =
                search(pattern, objects, |pattern, object| {
                    matching(object.usdt_probes(), |probe| pattern.matches_usdt(probe))
                });
            if found.is_empty() {
                selection.unmatched.push(NotFound::usdt(pattern, objects, &searched));
            }
            if is_settled(pattern, objects, &found) {
                selection.settled.usdt.push(place);
            }
            if let Some(number) = pattern.values {
                let values = &mut selection.usdt_values;
                found.iter().for_each(|it| values.entry(*it).or_default().push(number));
            }
            all.extend(found);
        }
        for (place, pair) in self.pairs.iter().enumerate() {
            let found = pair.find(objects);
            if found.is_empty() {
                let searched: Vec<usize> = (0..objects.len()).collect();
                selection.unmatched.push(NotFound::usdt(pair.missing(objects), objects, &searched));
            } else {
                selection.settled.pairs.push(place);
            }
            for (object, pair) in found {
                all.extend(pair.parts().map(|index| Match { object, index }));
                selection.asked_pairs.push((object, pair));
            }
        }
        selection.usdt = all.into_iter().collect();
        selection.no_pairs = self.no_pairs;
    }

    /// Searches all objects: marks in a library are meant to be seen.
    fn select_markers(&self, objects: &[Object], selection: &mut Selection) {
        let mut all = BTreeSet::new();
        for (place, pattern) in self.markers.iter().enumerate() {
            let searched = objects_that(objects, |object| pattern.matches_object(object));
            let find = |pattern: &Pattern| {
                find(&searched, |object| {
                    let scopes = &objects[object].markers().scopes;
                    matching(scopes, |scope| pattern.matches_marker(scope))
                })
            };
            let mut found = find(pattern);
            if !found.is_empty() {
                selection.settled.whole_markers.push(place);
            } else if let Some(pattern) = pattern.by_last_part() {
                found = find(&pattern);
            }
            if found.is_empty() {
                selection.unmatched.push(NotFound::marker(pattern, objects, &searched));
            }
            all.extend(found);
        }
        selection.markers = all.into_iter().collect();
    }

    /// Takes away what these patterns name. Returns them; those that matched whole names stand for no
    /// others from now on.
    fn exclude(all: &[Pattern], objects: &[Object], selection: &mut Selection) -> Vec<Pattern> {
        let mut one = |exclude: &Pattern| {
            let before = selection.len();
            Self::exclude_one(exclude, objects, selection);
            if selection.len() < before {
                return exclude.found_whole();
            }
            if let Some(exclude) = exclude.by_last_part() {
                Self::exclude_one(&exclude, objects, selection);
            }
            exclude.clone()
        };
        all.iter().map(&mut one).collect()
    }

    fn exclude_one(exclude: &Pattern, objects: &[Object], selection: &mut Selection) {
        let stays = |selected: &Match, matches: &dyn Fn(&Object) -> bool| {
            let object = &objects[selected.object];
            !(exclude.matches_object(object) && matches(object))
        };
        let leaves = |it: &Match| {
            !stays(it, &|object| exclude.matches_function(&object.functions()[it.index]))
        };
        let leaving = selection.functions.iter().copied().filter(leaves).collect();
        let leaving = exclude.prefer_named(leaving, |found| names(objects, found));
        let leaving: HashSet<Match> = leaving.into_iter().collect();
        selection.functions.retain(|it| !leaving.contains(it));
        selection.usdt.retain(|it| {
            stays(it, &|object| exclude.matches_usdt(&object.usdt_probes()[it.index]))
        });
        selection.markers.retain(|it| {
            stays(it, &|object| exclude.matches_marker(&object.markers().scopes[it.index]))
        });
    }
}

/// Returns the names by which a function may be called.
fn names(objects: &[Object], found: &Match) -> Vec<Arc<str>> {
    let function = &objects[found.object].functions()[found.index];
    let own = [function.name(), function.full_name()].into_iter();
    own.chain(function.aliases()).cloned().collect()
}

fn is_settled(pattern: &Pattern, objects: &[Object], found: &[Match]) -> bool {
    !pattern.names_object() && found.iter().any(|selected| objects[selected.object].is_main())
}

#[cfg(test)]
mod tests;
