//! Leaves out the namespace that most names of a table have.
//!
//! In a narrow table it would take the room of what tells rows apart. It is one for all names, so that different
//! ones stay different.

use std::borrow::Cow;
use std::collections::HashMap;

const SEPARATOR: &str = "::";

/// The least number of names that have a namespace in common before it goes.
const LEAST: usize = 3;

/// Namespaces within so many others stay.
const DEEPEST: usize = 8;

/// Returns the names. Where `needs_room`, `…` stands for the namespaces that more than half of all names have.
pub(super) fn without_common<'a>(
    names: &[&'a str],
    needs_room: impl Fn(usize) -> bool,
) -> Vec<Cow<'a, str>> {
    let common = common(names);
    let short = |(at, name): (usize, &&'a str)| {
        let own = common.and_then(|common| name.strip_prefix(common));
        match own.filter(|_| needs_room(at)) {
            Some(own) => Cow::Owned(format!("…{own}")),
            None => Cow::Borrowed(*name),
        }
    };
    names.iter().enumerate().map(short).collect()
}

/// Returns the namespaces that the most names have, with their separators; of several, the longest.
fn common<'a>(names: &[&'a str]) -> Option<&'a str> {
    let mut counts = HashMap::<&str, usize>::new();
    for name in names {
        for end in ends(name).take(DEEPEST) {
            *counts.entry(&name[..end]).or_default() += 1;
        }
    }
    let most = counts.into_iter().max_by_key(|(space, count)| (*count, space.len()));
    most.filter(|(_, count)| *count >= LEAST && count * 2 > names.len()).map(|(space, _)| space)
}

/// Returns where the namespaces end that stand before the name: those in brackets belong to types.
fn ends(name: &str) -> impl Iterator<Item = usize> {
    let spaces = &name[..name.find(['<', '(', '{', '[', ' ']).unwrap_or(name.len())];
    spaces.match_indices(SEPARATOR).map(|(at, _)| at + SEPARATOR.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_most_have_goes_where_room_is_needed() {
        let names = ["shop::db::find", "shop::db::load(int)", "shop::Cart<shop::db>::add", "main"];
        let short = without_common(&names, |at| at != 1);
        assert_eq!(short, ["…db::find", "shop::db::load(int)", "…Cart<shop::db>::add", "main"]);
    }

    #[test]
    fn names_of_inner_namespaces_stay_different() {
        let names = ["shop::put", "shop::db::put", "shop::db::open", "shop::db::load"];
        assert_eq!(
            without_common(&names, |_| true),
            ["…put", "…db::put", "…db::open", "…db::load"]
        );
    }

    #[test]
    fn what_few_have_stays() {
        for names in [["a::b", "a::c", "d"], ["a::b", "c::d", "e::f"]] {
            assert_eq!(without_common(&names, |_| true), names);
        }
    }

    #[test]
    fn a_name_keeps_its_last_part() {
        let names = ["a::b::c", "a::b::d", "a::b::e", "<a::b as c>::f"];
        let short = without_common(&names, |_| true);
        assert_eq!(short, ["…c", "…d", "…e", "<a::b as c>::f"]);
    }
}
