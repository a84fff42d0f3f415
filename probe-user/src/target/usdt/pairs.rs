//! Pairs of USDT probes that are the two ends of a call, by their names: `query__start` and
//! `query__done` begin and end `query`.
//!
//! A call may end in several ways: `transaction__start`, and `transaction__commit` or
//! `transaction__abort`. A probe without its other end stays a point.

use super::UsdtProbe;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

/// The last words of names that begin a call, and of those that end it.
const WORDS: [(&str, &[&str]); 3] = [
    ("start", &["done", "end", "stop", "complete", "commit", "abort"]),
    ("begin", &["end", "done"]),
    (ENTRY, &["return", "exit"]),
];

/// The word for calls that may call themselves: functions of a language.
const ENTRY: &str = "entry";

/// The part that a probe has in a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PairPart {
    /// The name of the call, without the provider.
    pub call: Arc<str>,
    pub is_start: bool,
}

/// A pair among the probes of an object, by their indices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UsdtPair {
    pub name: Arc<str>,
    pub start: usize,
    pub ends: Vec<usize>,
    /// True if calls may begin inside calls of the same name.
    pub nests: bool,
}

impl UsdtPair {
    /// Returns the pair of these probes, unless its calls would begin and end at one place.
    pub(crate) fn of(
        probes: &[UsdtProbe],
        name: Arc<str>,
        start: usize,
        ends: Vec<usize>,
    ) -> Option<Self> {
        let nests = nests(&probes[start].name);
        (!coincide(probes, start, &ends)).then_some(Self { name, start, ends, nests })
    }

    /// Returns the indices of its probes.
    pub(crate) fn parts(&self) -> impl Iterator<Item = usize> {
        std::iter::once(self.start).chain(self.ends.iter().copied())
    }
}

/// Marks the probes that are parts of calls. They must be sorted by provider and name.
pub(super) fn mark(probes: &mut [UsdtProbe]) {
    for of_provider in providers(probes) {
        let names = probes[of_provider.clone()].iter().zip(of_provider);
        let names: BTreeMap<Arc<str>, usize> =
            names.map(|(probe, at)| (Arc::clone(&probe.name), at)).collect();
        for (name, &start) in &names {
            let Some((stem, ends)) = beginning(name) else { continue };
            let ends = ends.iter().filter_map(|end| names.get(format!("{stem}{end}").as_str()));
            let ends: Vec<usize> = ends.copied().filter(|&at| probes[at].part.is_none()).collect();
            let call: Arc<str> = stem.trim_end_matches(SEPARATORS).into();
            if !ends.is_empty() && !call.is_empty() {
                let part = |is_start| Some(PairPart { call: Arc::clone(&call), is_start });
                ends.into_iter().for_each(|at| probes[at].part = part(false));
                probes[start].part = part(true);
            }
        }
    }
}

/// Returns the pairs of these probes that [`mark`] has marked, whose indices ascend, as far as they
/// have both ends.
pub(crate) fn pairs(probes: &[UsdtProbe], among: impl IntoIterator<Item = usize>) -> Vec<UsdtPair> {
    /// The starts and the ends of a call.
    type Ends = (Vec<usize>, Vec<usize>);
    let mut calls: BTreeMap<(&str, &str), Ends> = BTreeMap::new();
    for at in among {
        let probe = &probes[at];
        let Some(part) = &probe.part else { continue };
        let (starts, ends) = calls.entry((&*probe.provider, &*part.call)).or_default();
        if part.is_start { starts.push(at) } else { ends.push(at) }
    }
    let pair = |(starts, ends): Ends| {
        let [start] = starts[..] else { return None };
        let name = Arc::clone(&probes[start].part.as_ref()?.call);
        if ends.is_empty() { None } else { UsdtPair::of(probes, name, start, ends) }
    };
    calls.into_values().filter_map(pair).collect()
}

/// Returns whether a call would begin and end at one place: nothing tells the two apart there.
fn coincide(probes: &[UsdtProbe], start: usize, ends: &[usize]) -> bool {
    let offsets = |at: usize| probes[at].sites.iter().map(|site| site.file_offset);
    let starts: BTreeSet<u64> = offsets(start).collect();
    ends.iter().any(|&end| offsets(end).any(|offset| starts.contains(&offset)))
}

/// The characters between the words of a name.
pub(crate) const SEPARATORS: [char; 2] = ['_', '-'];

/// Returns whether calls that begin at a probe of this name may be inside each other.
fn nests(start: &str) -> bool {
    start.strip_suffix(ENTRY).is_some_and(|stem| stem.ends_with(SEPARATORS))
}

/// Splits a name that begins calls: what is before its last word, and the words that end them.
fn beginning(name: &str) -> Option<(&str, &'static [&'static str])> {
    let (start, ends) = WORDS.into_iter().find(|(start, _)| name.ends_with(start))?;
    let stem = name.strip_suffix(start)?;
    stem.ends_with(SEPARATORS).then_some((stem, ends))
}

/// Returns the ranges of the probes of each provider.
fn providers(probes: &[UsdtProbe]) -> Vec<Range<usize>> {
    let mut first = 0;
    let of_each = probes.chunk_by(|a, b| a.provider == b.provider);
    of_each
        .map(|chunk| {
            let range = first..first + chunk.len();
            first = range.end;
            range
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::UsdtSite;
    use super::*;

    /// Probes by their names, each at a place of its own unless one is given: `name@7`.
    fn probes(names: &[&str]) -> Vec<UsdtProbe> {
        let probe = |(number, &name): (usize, &&str)| {
            let (name, address) = name.split_once('@').unwrap_or((name, ""));
            let address = address.parse().unwrap_or(100 + number as u64);
            let arguments = Box::default();
            let site = UsdtSite { address, file_offset: address, semaphore: None, arguments };
            let (provider, name) = name.split_once(':').unwrap_or(("app", name));
            UsdtProbe {
                provider: provider.into(),
                name: name.into(),
                sites: vec![site],
                part: None,
            }
        };
        let mut probes: Vec<_> = names.iter().enumerate().map(probe).collect();
        probes.sort_by_key(|probe| (probe.provider.clone(), probe.name.clone()));
        mark(&mut probes);
        probes
    }

    /// Checks the pairs as `NAME: START > ENDS`, and `*` behind those that nest.
    #[track_caller]
    fn check(names: &[&str], expected: &[&str]) {
        let probes = probes(names);
        let told = pairs(&probes, 0..probes.len()).into_iter().map(|pair| {
            let ends: Vec<&str> = pair.ends.iter().map(|&at| &*probes[at].name).collect();
            let nests = if pair.nests { "*" } else { "" };
            format!("{}: {} > {}{nests}", pair.name, probes[pair.start].name, ends.join(", "))
        });
        assert_eq!(told.collect::<Vec<_>>(), expected, "{names:?}");
    }

    #[test]
    fn names_tell_which_probes_are_pairs() {
        check(&["query__start", "query__done"], &["query: query__start > query__done"]);
        check(&["gc_begin", "gc_end"], &["gc: gc_begin > gc_end"]);
        check(&["x-start", "x-done"], &["x: x-start > x-done"]);
        check(&["f__entry", "f__return"], &["f: f__entry > f__return*"]);
        assert!(nests("f-entry") && !nests("lookup_dentry") && !nests("entry"));
        check(&["t__start", "t__commit", "t__abort"], &["t: t__start > t__abort, t__commit"]);
        // One word is within the other, and ends of another are no ends.
        check(
            &["q__start", "q__done", "q__parse__start", "q__parse__done"],
            &["q: q__start > q__done", "q__parse: q__parse__start > q__parse__done"],
        );
    }

    #[test]
    fn other_probes_are_points() {
        check(&["query__start", "query__failed"], &[]);
        check(&["query__done"], &[]);
        check(&["a:query__start", "b:query__done"], &[]);
        check(&["start", "done"], &[]);
        check(&["__start", "__done"], &[]);
        check(&["restart", "redone"], &[]);
        check(&["x__start", "x_done"], &[]);
        // An end belongs to one start.
        check(&["x__begin", "x__start", "x__end"], &["x: x__begin > x__end"]);
    }

    #[test]
    fn ends_at_one_place_are_no_pair() {
        check(&["x__start@7", "x__done@7"], &[]);
        check(&["x__start@7", "x__done@8"], &["x: x__start > x__done"]);
    }

    #[test]
    fn a_pair_needs_both_ends_in_the_selection() {
        let probes = probes(&["t__abort", "t__commit", "t__start"]);
        assert_eq!(pairs(&probes, [0, 1]), []);
        assert_eq!(pairs(&probes, [2]), []);
        assert_eq!(pairs(&probes, [1, 2]).len(), 1);
    }
}
