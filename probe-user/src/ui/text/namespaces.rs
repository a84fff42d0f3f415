//! Leaves out namespaces that most names of a table have.
//!
//! In a narrow table they would take the room of what tells rows apart.

use std::borrow::Cow;
use std::collections::HashMap;

const SEPARATOR: &str = "::";

/// The least number of names that have a namespace in common before it goes.
const LEAST: usize = 3;

/// Returns the names. Where `needs_room`, `…` stands for the namespaces that more than half of all names have.
pub(super) fn without_common<'a>(
    names: &[&'a str],
    needs_room: impl Fn(usize) -> bool,
) -> Vec<Cow<'a, str>> {
    let mut counts = HashMap::<&str, usize>::new();
    for name in names {
        for end in ends(name) {
            *counts.entry(&name[..end]).or_default() += 1;
        }
    }
    let is_common = |space: &str| counts[space] >= LEAST && counts[space] * 2 > names.len();
    let short = |(at, name): (usize, &&'a str)| {
        let common = ends(name).take_while(|&end| is_common(&name[..end])).last();
        match common.filter(|_| needs_room(at)) {
            Some(end) => Cow::Owned(format!("…{}", &name[end..])),
            None => Cow::Borrowed(*name),
        }
    };
    names.iter().enumerate().map(short).collect()
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
