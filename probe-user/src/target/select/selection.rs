//! The outcome of a search: functions, USDT probes and marker scopes, and what there is to say about them.

use super::not_found::NotFound;
use super::search::Match;
use crate::target::object::Object;
use crate::target::usdt::pairs::{UsdtPair, pairs};
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// The selected functions, probes and scopes, by object and address.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    pub functions: Vec<Match>,
    /// Those that were chosen by their names with parameters.
    pub(super) named_in_full: HashSet<Match>,
    pub(crate) usdt: Vec<Match>,
    /// Pairs that were asked for by name, each with the index of its object.
    pub(super) asked_pairs: Vec<(usize, UsdtPair)>,
    /// True if no other pairs are timed.
    pub(super) no_pairs: bool,
    pub(crate) markers: Vec<Match>,
    /// Patterns that matched nothing while others matched: worth a warning.
    pub(crate) unmatched: Vec<NotFound>,
    /// The patterns of values by which functions were chosen, by their numbers.
    pub(crate) values: BTreeMap<Match, Vec<usize>>,
    /// The same of USDT probes.
    pub(super) usdt_values: BTreeMap<Match, Vec<usize>>,
    /// Further notes for the user, each a short sentence.
    pub notes: Vec<String>,
    /// Those that a reader of the report must know, too.
    pub(crate) report_notes: Vec<String>,
    /// Functions, probes and scopes that -x took away.
    pub excluded: usize,
    pub(super) settled: Settled,
}

/// The decisions of the search about patterns, by their indices.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Settled {
    /// Patterns without an object that matched in the program itself.
    pub(super) functions: Vec<usize>,
    pub(super) usdt: Vec<usize>,
    /// Pairs that were found.
    pub(super) pairs: Vec<usize>,
    /// Patterns that matched whole names.
    pub(super) whole_functions: Vec<usize>,
    pub(super) whole_markers: Vec<usize>,
}

impl Selection {
    /// Returns a selection of functions alone.
    pub(super) fn of(functions: Vec<Match>) -> Self {
        Self { functions, ..Self::default() }
    }

    /// Returns the number of functions, probes and scopes.
    pub(crate) fn len(&self) -> usize {
        self.functions.len() + self.usdt.len() + self.markers.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the pairs among the selected USDT probes of an object. Those that were asked for come
    /// first: a probe is part of one pair.
    pub(crate) fn pairs(&self, objects: &[Object], object: usize) -> Vec<UsdtPair> {
        let mut free: BTreeSet<usize> =
            self.usdt.iter().filter(|it| it.object == object).map(|it| it.index).collect();
        let mut found = Vec::new();
        for (_, pair) in self.asked_pairs.iter().filter(|(of, _)| *of == object) {
            pair.parts().for_each(|part| _ = free.remove(&part));
            found.push(pair.clone());
        }
        if !self.no_pairs {
            found.extend(pairs(objects[object].usdt_probes(), free));
        }
        found
    }

    /// Leaves the pairs that were asked for what -x and earlier ones have left of them.
    pub(super) fn settle_pairs(&mut self) {
        let mut free: BTreeSet<Match> = self.usdt.iter().copied().collect();
        for (object, mut pair) in std::mem::take(&mut self.asked_pairs) {
            let is_free = |index: &usize| free.contains(&Match { object, index: *index });
            let before = pair.ends.len();
            pair.ends.retain(is_free);
            let taken = "-x or an earlier --pair has taken";
            if !is_free(&pair.start) || pair.ends.is_empty() {
                self.notes.push(format!("{} is not timed: {taken} one of its probes", pair.name));
                continue;
            }
            if pair.ends.len() < before {
                self.notes.push(format!("{taken} an end of {}: it is timed without", pair.name));
            }
            pair.parts().for_each(|index| _ = free.remove(&Match { object, index }));
            self.asked_pairs.push((object, pair));
        }
    }

    /// Returns the numbers of the values that are asked for a USDT probe.
    pub(crate) fn usdt_values_of(&self, object: usize, index: usize) -> &[usize] {
        self.usdt_values.get(&Match { object, index }).map_or(&[], Vec::as_slice)
    }

    /// Returns the numbers of the values that are asked for a function.
    pub(crate) fn values_of(&self, function: &Match) -> &[usize] {
        self.values.get(function).map_or(&[], Vec::as_slice)
    }
}
