//! Shortens names that stand below each other, so that different ones stay different.
//!
//! Overloads and instances of templates have most of their long names in common. A name that is
//! shortened alone may lose just what differs. So names that became equal are cut around it. A
//! namespace that most names have tells nothing: it goes before the names themselves are cut.

use crate::ui::text::names::{cut_end, cut_middle, plain, shorten, width, without_parameters};
use crate::ui::text::path::STEP;
use crate::ui::text::{by_words, namespaces};
use std::collections::{HashMap, HashSet};
use std::ops::Range;

/// The number of times that names are told apart which are still equal: each time, only what
/// differs among those few is looked at.
const ROUNDS: usize = 8;

/// The least room for parts of a name on both sides of what differs.
const ROOM_OF_TWO: usize = 12;

/// Shortens each name to at most `room` columns.
pub(crate) fn shorten_all<N: AsRef<str>>(names: &[N], room: usize) -> Vec<String> {
    shorten_each(names, |_| room)
}

/// Shortens each name to the room at its place.
pub(crate) fn shorten_each<N: AsRef<str>>(
    names: &[N],
    room: impl Fn(usize) -> usize,
) -> Vec<String> {
    let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
    let fits = |at: usize| width(names[at]) <= room(at);
    if (0..names.len()).all(fits) {
        return names.into_iter().map(str::to_owned).collect();
    }
    // Next to overloads with parameters, one without them could be any.
    let plain: Vec<String> = names.iter().map(|name| plain(name)).collect();
    let groups = alike(&names, &plain, 0..names.len());
    let is_alike: HashSet<usize> = groups.iter().flatten().copied().collect();
    let needs_room =
        |at: usize| !fits(at) && (is_alike.contains(&at) || width(&plain[at]) > room(at));
    let names = namespaces::without_common(&names, needs_room);
    let places = names.iter().enumerate();
    let mut short: Vec<String> = places.map(|(at, name)| shorten(name, room(at))).collect();
    for group in groups {
        let is_cut = |&at: &usize| short[at] != *names[at];
        let cut: Vec<usize> = group.iter().copied().filter(is_cut).collect();
        cut_around_differences(&names, &mut short, &group, &cut, &room);
    }
    tell_apart(&names, &mut short, room);
    short
}

/// Changes texts that became equal when they were shortened, although their names are different.
pub(crate) fn tell_apart<N: AsRef<str>>(
    names: &[N],
    short: &mut [String],
    room: impl Fn(usize) -> usize,
) {
    let mut groups = alike(names, short, 0..names.len());
    // What is told apart of one name may make it equal to another.
    let mut entangled: HashSet<usize> = HashSet::new();
    for _ in 0..ROUNDS {
        let mut still = Vec::new();
        for group in groups {
            entangled.extend(&group);
            cut_around_differences(names, short, &group, &group, &room);
            let left = alike(names, short, group.iter().copied());
            // Without progress there is no room for what differs.
            still.extend(left.into_iter().filter(|left| left.len() < group.len()));
        }
        groups = still;
        if groups.is_empty() {
            // Texts of two groups may have become equal.
            groups = alike(names, short, 0..names.len());
        }
    }
    if !groups.is_empty() {
        let places: Vec<usize> = (0..names.len()).filter(|at| entangled.contains(at)).collect();
        let of_places: Vec<&str> = places.iter().map(|&at| names[at].as_ref()).collect();
        let rooms: Vec<usize> = places.iter().map(|&at| room(at)).collect();
        let equal: HashSet<usize> = groups.into_iter().flatten().collect();
        let mut taken: HashSet<String> = short.iter().cloned().collect();
        for (&at, cut) in places.iter().zip(by_words::cut(&of_places, &rooms)) {
            if equal.contains(&at)
                && let Some(cut) = cut
                && taken.insert(cut.clone())
            {
                short[at] = cut;
            }
        }
    }
}

/// Cuts some names of a group around what differs within it.
fn cut_around_differences<N: AsRef<str>>(
    names: &[N],
    short: &mut [String],
    group: &[usize],
    cut: &[usize],
    room: impl Fn(usize) -> usize,
) {
    let (start, end) = common(&group.iter().map(|&at| names[at].as_ref()).collect::<Vec<_>>());
    for &at in cut {
        let name = names[at].as_ref();
        short[at] = around(name, start..name.len() - end, room(at));
    }
}

/// Returns the places of texts that are equal although their names are not.
fn alike<N: AsRef<str>>(
    names: &[N],
    short: &[String],
    places: impl Iterator<Item = usize>,
) -> Vec<Vec<usize>> {
    let mut groups = HashMap::<&str, Vec<usize>>::new();
    for at in places {
        groups.entry(&short[at]).or_default().push(at);
    }
    let differ = |group: &Vec<usize>| {
        let first = names[group[0]].as_ref();
        group[1..].iter().any(|&at| names[at].as_ref() != first)
    };
    groups.into_values().filter(differ).collect()
}

/// Returns the lengths of the beginning and the end that all names have in common. Neither ends
/// within a word.
fn common(names: &[&str]) -> (usize, usize) {
    let Some((first, others)) = names.split_first() else { return (0, 0) };
    let shared = |a: &mut dyn Iterator<Item = char>, b: &mut dyn Iterator<Item = char>| -> usize {
        a.zip(b).take_while(|(a, b)| a == b).map(|(a, _)| a.len_utf8()).sum()
    };
    let start = others.iter().map(|name| shared(&mut first.chars(), &mut name.chars())).min();
    let mut start = start.unwrap_or(0);
    start -= word(first[..start].chars().rev());
    let ends = others.iter().map(|name| {
        let (a, b) = (&first[start..], &name[start..]);
        shared(&mut a.chars().rev(), &mut b.chars().rev())
    });
    let mut end = ends.min().unwrap_or(0);
    end -= word(first[first.len() - end..].chars());
    (start, end)
}

/// Returns the length of the word with which the characters begin.
fn word(characters: impl Iterator<Item = char>) -> usize {
    let of_word = characters.take_while(|c| c.is_alphanumeric() || *c == '_');
    of_word.map(char::len_utf8).sum()
}

/// Cuts a name to `room` columns around a part of it that is to stay.
fn around(name: &str, kept: Range<usize>, room: usize) -> String {
    if width(name) <= room {
        return name.to_owned();
    }
    let start = kept.start;
    let (before, after) = (&name[..start], &name[kept.end..]);
    // The rest of the name tells which function it is at all.
    let rest = (width(before) + width(after)).min(room / 2);
    let kept = cut_middle(&name[kept], room - rest);
    let rest = room.saturating_sub(width(&kept));
    let left_before = rest.saturating_sub(width(before));
    let has_own_name = start < without_parameters(name).len() && rest >= ROOM_OF_TWO;
    if after.contains(STEP) || has_own_name {
        let own = without_parameters(after);
        let after = if width(after) <= left_before { after } else { &own };
        let behind = width(after).min((rest * 2 / 3).max(left_before));
        return format!("{}{kept}{}", cut_middle(before, rest - behind), cut_middle(after, behind));
    }
    let behind = width(after).min((rest / 3).max(left_before));
    format!("{}{kept}{}", cut_middle(before, rest - behind), cut_end(after, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(names: &[&str], room: usize, expected: &[&str]) {
        assert_eq!(shorten_all(names, room), expected);
    }

    #[test]
    fn parameters_stay_where_they_differ() {
        let overloads = ["shop::format(int)", "shop::format(double)", "shop::load(char const*)"];
        check(&overloads, 30, &overloads);
        check(&overloads, 18, &["shop::format(int)", "…format(double)", "shop::load"]);
        let long = [
            "shop::Index::insert(std::pair<int const, std::string> const&, bool)",
            "shop::Index::insert(std::pair<int const, long> const&, bool)",
            "shop::Index::insert(std::pair<int const, int> const&, bool)",
        ];
        check(
            &long,
            40,
            &[
                "…insert(s…nt const, std::string> const&…",
                "…insert(std…<int const, long> const&, b…",
                "…insert(std:…<int const, int> const&, b…",
            ],
        );
    }

    #[test]
    fn arguments_of_templates_stay_where_they_differ() {
        check(
            &["Tree<int>::insert", "Tree<std::string>::insert", "Tree<int>::insert"],
            16,
            &["Tree<int>::…sert", "Tree<std…ring>:…", "Tree<int>::…sert"],
        );
    }

    #[test]
    fn names_that_differ_at_two_places_stay_different() {
        let names: Vec<String> = ["int", "std::string"]
            .iter()
            .flat_map(|of| ["get", "put"].map(|own| format!("shop::Cache<{of}>::{own}.isra.0")))
            .collect();
        for room in 16..40 {
            let short = shorten_all(&names, room);
            assert_eq!(short.iter().collect::<HashSet<_>>().len(), 4, "{room}: {short:?}");
        }
    }

    #[test]
    fn the_own_name_stays_behind_arguments_of_templates() {
        let of =
            |kind: &str| format!("shop::Index<std::map<{kind}, std::vector<int>>>::insert(int)");
        let names = [of("shop::Customer"), of("shop::Supplier")];
        check(
            &[&names[0], &names[1]],
            40,
            &[
                "shop:…hop::Customer, std::vec…>>::insert",
                "shop:…hop::Supplier, std::vec…>>::insert",
            ],
        );
    }

    #[test]
    fn ends_stay_where_they_differ() {
        check(
            &["a_very_long_name_of_a_function_1", "a_very_long_name_of_a_function_2"],
            12,
            &["a_ver…tion_1", "a_ver…tion_2"],
        );
    }

    #[test]
    fn a_name_is_the_same_at_each_place() {
        check(&["f(int)", "f(int)"], 3, &["f", "f"]);
    }

    proptest::proptest! {
        #[test]
        fn names_fit_and_what_fits_stays(
            names in proptest::collection::vec("[a-c:<>()漢]{0,9}(int|long|char)[a-c:<>()漢]{0,9}", 0..9),
            room in 0_usize..30,
        ) {
            let short = shorten_all(&names, room);
            for (name, short) in names.iter().zip(&short) {
                proptest::prop_assert!(width(short) <= room.max(1), "{short}");
                proptest::prop_assert!(width(name) > room || name == short, "{short}");
            }
        }

        /// With room for a few words, what differs in one word is always seen.
        #[test]
        fn names_that_differ_in_a_word_stay_different(
            before in "[a-z:<]{0,60}",
            words in proptest::collection::hash_set("[a-z]{1,9}", 2..6),
            after in "[a-z:>]{0,60}",
            room in 24_usize..60,
        ) {
            let names: Vec<String> =
                words.iter().map(|word| format!("{before}({word}){after}")).collect();
            let short = shorten_all(&names, room);
            let distinct: std::collections::HashSet<_> = short.iter().collect();
            proptest::prop_assert_eq!(distinct.len(), names.len(), "{:?}", short);
        }
    }
}
