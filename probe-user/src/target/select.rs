//! From what the user asked for to the functions that are to be traced.

use super::not_found::{NotFound, chosen_at_load};
use super::object::Object;
use super::pattern::{Pattern, PatternError};
use super::symbols::Function;
use super::usdt::UsdtProbe;
use std::collections::BTreeSet;

/// How many functions are taken at most unless the user raises it.
pub const DEFAULT_LIMIT: usize = 10_000;

/// Why nothing can be traced.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelectError {
    #[error(transparent)]
    Pattern(#[from] PatternError),
    #[error(
        "no function or probe was chosen; say which with -f GLOB or -u GLOB, `ctrace list` shows them"
    )]
    NothingAsked,
    #[error("{}", NotFound::line(.0))]
    NothingFound(Vec<NotFound>),
    #[error(
        "{found} functions match, more than the limit of {limit}; narrow the pattern, exclude some with -x GLOB, or raise the limit with --max-functions {found}"
    )]
    TooMany { found: usize, limit: usize },
}

/// The parsed SELECT of a command line.
#[derive(Clone, Debug, Default)]
pub struct Selector {
    functions: Vec<Pattern>,
    usdt: Vec<Pattern>,
    exclude: Vec<Pattern>,
}

/// A function, by its object's place in the list that was searched, and its place in the object's
/// functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selected {
    pub object: usize,
    pub index: usize,
}

/// What was selected, in the order of objects and addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    pub functions: Vec<Selected>,
    pub usdt: Vec<Selected>,
    /// Patterns that matched nothing, while others did: worth a warning.
    pub unmatched: Vec<NotFound>,
    /// What else the user should know, each a short sentence.
    pub notes: Vec<String>,
    /// Functions and probes that -x took away.
    pub excluded: usize,
    /// Patterns without an object that the program itself satisfied, by their places.
    settled: Settled,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Settled {
    functions: Vec<usize>,
    usdt: Vec<usize>,
}

impl Selection {
    /// The functions with their objects.
    pub fn functions<'a>(
        &'a self,
        objects: &'a [Object],
    ) -> impl Iterator<Item = (&'a Object, &'a Function)> {
        self.functions.iter().filter_map(|selected| {
            let object = objects.get(selected.object)?;
            Some((object, object.functions().get(selected.index)?))
        })
    }

    /// The USDT probes with their objects.
    pub fn usdt<'a>(
        &'a self,
        objects: &'a [Object],
    ) -> impl Iterator<Item = (&'a Object, &'a UsdtProbe)> {
        self.usdt.iter().filter_map(|selected| {
            let object = objects.get(selected.object)?;
            Some((object, object.usdt_probes().get(selected.index)?))
        })
    }
}

impl Selector {
    /// Parses `-f`, `-u` and `-x`.
    pub fn parse(
        functions: &[String],
        usdt: &[String],
        exclude: &[String],
    ) -> Result<Self, SelectError> {
        let parse = |texts: &[String]| -> Result<Vec<Pattern>, PatternError> {
            texts.iter().map(|text| Pattern::parse(text)).collect()
        };
        Ok(Self { functions: parse(functions)?, usdt: parse(usdt)?, exclude: parse(exclude)? })
    }

    /// Whether neither functions nor USDT probes are asked for.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty() && self.usdt.is_empty()
    }

    /// What is left to look for in libraries that come after `selection` was made from this: a
    /// pattern without an object is done once the program itself has matched it.
    pub fn for_late_objects(&self, selection: &Selection) -> Self {
        let open = |patterns: &[Pattern], settled: &[usize]| -> Vec<Pattern> {
            let places = patterns.iter().enumerate();
            let open = places.filter(|(place, _)| !settled.contains(place));
            open.map(|(_, pattern)| pattern.clone()).collect()
        };
        Self {
            functions: open(&self.functions, &selection.settled.functions),
            usdt: open(&self.usdt, &selection.settled.usdt),
            exclude: self.exclude.clone(),
        }
    }

    /// Looks everything up. `objects` are those of one process, with the program itself marked
    /// as main; at most `limit` functions and probe sites are taken.
    pub fn select(&self, objects: &[Object], limit: usize) -> Result<Selection, SelectError> {
        if self.is_empty() {
            return Err(SelectError::NothingAsked);
        }
        let mut selection = Selection::default();
        let mut functions = BTreeSet::new();
        for (place, pattern) in self.functions.iter().enumerate() {
            let (found, searched) = search(pattern, objects, matching_functions);
            if found.is_empty() {
                selection.unmatched.push(NotFound::function(pattern, objects, &searched));
            } else if pattern.is_literal() {
                // What was found is not all that goes by this name.
                let found_in = searched.iter().map(|object| &objects[*object]);
                selection.notes.extend(found_in.filter_map(|o| chosen_at_load(pattern, o)));
            }
            if is_settled(pattern, objects, &found) {
                selection.settled.functions.push(place);
            }
            functions.extend(found);
        }
        let mut usdt = BTreeSet::new();
        for (place, pattern) in self.usdt.iter().enumerate() {
            let (found, searched) = search(pattern, objects, |pattern, object| {
                matching(object.usdt_probes(), |probe| pattern.matches_usdt(probe))
            });
            if found.is_empty() {
                selection.unmatched.push(NotFound::usdt(pattern, objects, &searched));
            }
            if is_settled(pattern, objects, &found) {
                selection.settled.usdt.push(place);
            }
            usdt.extend(found);
        }
        let before = functions.len() + usdt.len();
        if before == 0 {
            return Err(SelectError::NothingFound(selection.unmatched));
        }
        for exclude in &self.exclude {
            functions.retain(|selected: &Selected| {
                let object = &objects[selected.object];
                !(exclude.matches_object(object)
                    && exclude.matches_function(&object.functions()[selected.index]))
            });
            usdt.retain(|selected: &Selected| {
                let object = &objects[selected.object];
                !(exclude.matches_object(object)
                    && exclude.matches_usdt(&object.usdt_probes()[selected.index]))
            });
        }
        let found = functions.len() + usdt.len();
        selection.excluded = before - found;
        if found == 0 {
            let mut none = NotFound::all_excluded(&self.functions, &self.usdt, before);
            none.hints.push("-x took all of them away".to_owned());
            return Err(SelectError::NothingFound(vec![none]));
        }
        if found > limit {
            return Err(SelectError::TooMany { found, limit });
        }
        selection.functions = functions.into_iter().collect();
        selection.usdt = usdt.into_iter().collect();
        Ok(selection)
    }
}

fn is_settled(pattern: &Pattern, objects: &[Object], found: &[Selected]) -> bool {
    !pattern.names_object() && found.iter().any(|selected| objects[selected.object].is_main())
}

/// Where a pattern matches, and the objects that were searched: those it names, else the main
/// executable, and the libraries only when nothing matches there.
fn search(
    pattern: &Pattern,
    objects: &[Object],
    matches: impl Fn(&Pattern, &Object) -> Vec<usize>,
) -> (Vec<Selected>, Vec<usize>) {
    let all = |pick: &dyn Fn(&Object) -> bool| -> Vec<usize> {
        (0..objects.len()).filter(|object| pick(&objects[*object])).collect()
    };
    let find = |places: &[usize]| -> Vec<Selected> {
        let in_object = |object: usize| {
            let found = matches(pattern, &objects[object]);
            found.into_iter().map(move |index| Selected { object, index })
        };
        places.iter().copied().flat_map(in_object).collect()
    };
    if pattern.names_object() {
        let named = all(&|object| pattern.matches_object(object));
        return (find(&named), named);
    }
    let main = all(&Object::is_main);
    let found = find(&main);
    if !found.is_empty() {
        return (found, main);
    }
    (find(&all(&|object| !object.is_main())), all(&|_| true))
}

fn matching<T>(items: &[T], matches: impl Fn(&T) -> bool) -> Vec<usize> {
    (0..items.len()).filter(|index| matches(&items[*index])).collect()
}

/// Demangling is most of the work: large objects are shared out over two or more threads.
fn matching_functions(pattern: &Pattern, object: &Object) -> Vec<usize> {
    const WORTH_A_THREAD: usize = 20_000;
    let functions = object.functions();
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(8));
    if threads == 1 || functions.len() < WORTH_A_THREAD {
        return matching(functions, |function| pattern.matches_function(function));
    }
    let share = functions.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let workers: Vec<_> = functions
            .chunks(share)
            .map(|part| scope.spawn(|| matching(part, |f| pattern.matches_function(f))))
            .collect();
        let parts = workers.into_iter().map(|worker| worker.join().unwrap_or_default());
        parts
            .enumerate()
            .flat_map(|(part, found)| found.into_iter().map(move |index| part * share + index))
            .collect()
    })
}

#[cfg(test)]
#[path = "select_tests.rs"]
mod tests;
