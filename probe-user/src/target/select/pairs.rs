//! Finds the pairs of USDT probes that the user names with `--pair`.

use super::pattern::{Pattern, PatternError};
use crate::target::object::Object;
use crate::target::usdt::UsdtProbe;
use crate::target::usdt::pairs::{SEPARATORS, UsdtPair};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A pair that is asked for by name.
#[derive(Clone, Debug)]
pub(super) struct PairPattern {
    name: Option<Arc<str>>,
    pub(super) start: Pattern,
    ends: Vec<Pattern>,
}

impl PairPattern {
    /// Parses `[NAME=]START,END[,END…]`, of which the probes are patterns as for `-u`.
    pub(super) fn parse(text: &str) -> Result<Self, PatternError> {
        let (name, probes) = match text.split_once('=') {
            Some((name, probes)) => (Some(name.trim()), probes),
            None => (None, text),
        };
        let probes: Vec<&str> = probes.split(',').map(str::trim).collect();
        let [start, ends @ ..] = &probes[..] else { return Err(PatternError::NoPair(text.into())) };
        if ends.is_empty() || name == Some("") || probes.contains(&"") {
            return Err(PatternError::NoPair(text.into()));
        }
        let ends = ends.iter().map(|end| Pattern::parse(end)).collect::<Result<_, _>>()?;
        Ok(Self { name: name.map(Arc::from), start: Pattern::parse(start)?, ends })
    }

    /// Returns the pair in each object that has all of it, with the object's index.
    pub(super) fn find(&self, objects: &[Object]) -> Vec<(usize, UsdtPair)> {
        let objects = objects.iter().enumerate();
        objects.filter_map(|(index, object)| Some((index, self.find_in(object)?))).collect()
    }

    /// Returns the pattern of a pair that was not found that matches nothing, or its start.
    pub(super) fn missing(&self, objects: &[Object]) -> &Pattern {
        let matches = |pattern: &Pattern| {
            let mut objects = objects.iter().filter(|object| pattern.matches_object(object));
            objects
                .any(|it| it.usdt_probes().iter().any(|probe| pattern.matches_usdt_itself(probe)))
        };
        self.ends
            .iter()
            .find(|end| !matches(end))
            .filter(|_| matches(&self.start))
            .unwrap_or(&self.start)
    }

    /// Returns the pair in this object. A pattern that matches several probes means the first.
    fn find_in(&self, object: &Object) -> Option<UsdtPair> {
        let probes = object.usdt_probes();
        let find = |pattern: &Pattern| {
            let matches = |probe: &UsdtProbe| pattern.matches_usdt_itself(probe);
            probes.iter().position(matches).filter(|_| pattern.matches_object(object))
        };
        let start = find(&self.start)?;
        let ends: BTreeSet<usize> = self.ends.iter().map(find).collect::<Option<_>>()?;
        let ends: Vec<usize> = ends.into_iter().collect();
        let name = match &self.name {
            Some(name) => Arc::clone(name),
            None => common_name(&probes[start].name, &probes[*ends.first()?].name),
        };
        UsdtPair::of(probes, name, start, ends)
    }
}

/// Returns the name of a call: what its probes' names have in common, or else that of its start.
fn common_name(start: &str, end: &str) -> Arc<str> {
    let same = start.char_indices().zip(end.chars()).take_while(|((_, a), b)| a == b).count();
    let common: String = start.chars().take(same).collect();
    match common.trim_end_matches(SEPARATORS) {
        "" => start.into(),
        common => common.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_by_hand_is_a_start_and_its_ends() {
        let pair = PairPattern::parse("x = a:b, c , d@lib*").unwrap();
        let ends: Vec<&str> = pair.ends.iter().map(|end| &*end.text).collect();
        assert_eq!((pair.name.as_deref(), &*pair.start.text), (Some("x"), "a:b"));
        assert_eq!(ends, ["c", "d@lib*"]);
        assert_eq!(PairPattern::parse("a,b").unwrap().name, None);
        for text in ["", "a", "a,", ",b", "=a,b", "x=a", "x=,b", "a,b@"] {
            assert!(PairPattern::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_call_has_the_name_that_its_ends_share() {
        let check = |start, end, expected: &str| assert_eq!(&*common_name(start, end), expected);
        check("mutex_entry", "mutex_acquired", "mutex");
        check("job__ready", "job__gone", "job");
        check("open", "close", "open");
        check("é__a", "é__b", "é");
    }
}
