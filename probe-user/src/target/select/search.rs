//! Finds the matches of a pattern.

use super::pattern::Pattern;
use crate::target::object::{Object, symbols::Function};

/// A function, probe or scope: the index of its object in the searched list, and its own index in
/// the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Match {
    pub object: usize,
    pub index: usize,
}

/// The result of a search.
pub(crate) struct Found {
    pub(crate) matches: Vec<Match>,
    /// The searched objects.
    pub(crate) searched: Vec<usize>,
    /// True if no whole name matched, but the last part of these.
    pub(super) by_last_part: bool,
}

/// Searches for whole names, and where a bare name is none, for names that end in it.
pub(crate) fn search(
    pattern: &Pattern,
    objects: &[Object],
    matches: impl Fn(&Pattern, &Object) -> Vec<usize>,
) -> Found {
    let (found, searched) = search_whole(pattern, objects, &matches);
    if found.is_empty()
        && let Some(pattern) = pattern.by_last_part()
    {
        let (found, searched) = search_whole(&pattern, objects, &matches);
        return Found { by_last_part: !found.is_empty(), matches: found, searched };
    }
    Found { matches: found, searched, by_last_part: false }
}

/// Returns a pattern's matches and the searched objects: those it names, else the main executable,
/// and the libraries only when nothing matches there.
fn search_whole(
    pattern: &Pattern,
    objects: &[Object],
    matches: &impl Fn(&Pattern, &Object) -> Vec<usize>,
) -> (Vec<Match>, Vec<usize>) {
    let find = |places: &[usize]| find(places, |object| matches(pattern, &objects[object]));
    if pattern.names_object() {
        let named = objects_that(objects, |object| pattern.matches_object(object));
        return (find(&named), named);
    }
    let main = objects_that(objects, Object::is_main);
    let found = find(&main);
    if !found.is_empty() {
        return (found, main);
    }
    let libraries = objects_that(objects, |object| !object.is_main());
    (find(&libraries), objects_that(objects, |_| true))
}

pub(super) fn objects_that(objects: &[Object], pick: impl Fn(&Object) -> bool) -> Vec<usize> {
    (0..objects.len()).filter(|object| pick(&objects[*object])).collect()
}

pub(crate) fn find(objects: &[usize], matches: impl Fn(usize) -> Vec<usize>) -> Vec<Match> {
    let in_object =
        |object: usize| matches(object).into_iter().map(move |index| Match { object, index });
    objects.iter().copied().flat_map(in_object).collect()
}

pub(super) fn matching<T>(items: &[T], matches: impl Fn(&T) -> bool) -> Vec<usize> {
    (0..items.len()).filter(|index| matches(&items[*index])).collect()
}

/// Returns the matching functions. Demangling is most of the work, so large objects are shared out
/// over two or more threads.
pub(super) fn matching_functions(pattern: &Pattern, object: &Object) -> Vec<usize> {
    const WORTH_A_THREAD: usize = 20_000;
    let functions = object.functions();
    let matches = |it: &Function| {
        pattern.matches_function(it)
            && (pattern.may_mean_unnamed(object) || !it.is_named_by_address())
    };
    let threads = std::thread::available_parallelism().map_or(1, |count| count.get().min(8));
    if threads == 1 || functions.len() < WORTH_A_THREAD {
        return matching(functions, matches);
    }
    let share = functions.len().div_ceil(threads);
    std::thread::scope(|scope| {
        let workers: Vec<_> = functions
            .chunks(share)
            .map(|part| {
                let work = || matching(part, matches);
                // If no thread can start, this one does the work.
                std::thread::Builder::new().spawn_scoped(scope, work).map_err(|_| work())
            })
            .collect();
        let parts = workers.into_iter().map(|worker| match worker {
            Ok(thread) => thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)),
            Err(found) => found,
        });
        parts
            .enumerate()
            .flat_map(|(part, found)| found.into_iter().map(move |index| part * share + index))
            .collect()
    })
}
