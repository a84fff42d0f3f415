//! Finds the same function in files that may have other names for it.
//!
//! A recording shows the parameters of a function only where another function has the same short
//! name, so two recordings of one program may name a function differently. And a new version of a
//! program may have other parameters. So functions of one object, kind and group are matched
//!
//! 1. by their full names: with parameters, and with the hashes of Rust;
//! 2. what has no match on the other side then, by full names without these hashes, which change
//!    with the compiler;
//! 3. what is left, by short names, where a side has only one function of that name, or was written
//!    by a ctrace that did not tell them apart.
//!
//! Functions of equal names on one side are merged, such as `static` functions of two source files.
//! The traced program itself may have any file name, so that `./app-old` and `./app-new` compare.

use super::catalogue::Named;
use crate::function::{FunctionInfo, FunctionKind};
use crate::names::as_written;
use crate::report::FunctionReport;
use crate::rust_hashes::without_hashes;
use crate::units::FuncId;
use std::collections::HashMap;
use std::sync::Arc;

/// A file's description of a function.
#[derive(Clone, Copy)]
pub(crate) struct Description<'a> {
    name: &'a Arc<str>,
    short: &'a Arc<str>,
    full: &'a Arc<str>,
    object: &'a Arc<str>,
    is_program: bool,
    kind: FunctionKind,
    group: Option<&'a Arc<str>>,
}

impl<'a> Description<'a> {
    /// `program` is the path of the traced program.
    pub(crate) fn of_info(info: &'a FunctionInfo, program: Option<&str>) -> Self {
        let FunctionInfo { name, object, kind, group, .. } = info;
        let (short, full) = (info.short(), info.full());
        let is_program = is_file_of(program, object);
        Self { name, short, full, object, is_program, kind: *kind, group: group.as_ref() }
    }

    pub(crate) fn of_row(row: &'a FunctionReport, program: Option<&str>) -> Self {
        let FunctionReport { name, object, kind, group, .. } = row;
        let short = row.short_name.as_ref().unwrap_or(name);
        let full = row.full_name.as_ref().unwrap_or(name);
        let is_program = is_file_of(program, object);
        Self { name, short, full, object, is_program, kind: *kind, group: group.as_ref() }
    }

    /// `short` and `full` are given where they differ from the shown name.
    #[cfg(feature = "parquet")]
    pub(crate) fn of_names(
        [name, object]: [&'a Arc<str>; 2],
        [short, full, group]: [Option<&'a Arc<str>>; 3],
        kind: FunctionKind,
    ) -> Self {
        let (short, full) = (short.unwrap_or(name), full.unwrap_or(name));
        Self { name, short, full, object, is_program: false, kind, group }
    }

    fn place(&self) -> Place {
        Place {
            object: (!self.is_program).then(|| self.object.clone()),
            kind: self.kind,
            group: self.group.cloned(),
        }
    }
}

/// Returns a name as it is written in the source.
fn written(name: &Arc<str>) -> Arc<str> {
    as_written(name).map_or_else(|| name.clone(), Into::into)
}

fn is_file_of(program: Option<&str>, object: &str) -> bool {
    program.and_then(|path| path.rsplit('/').next()) == Some(object)
}

/// The properties in which functions must agree to be matched by a name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Place {
    /// `None` for the program itself.
    object: Option<Arc<str>>,
    kind: FunctionKind,
    group: Option<Arc<str>>,
}

type Key = (Place, Arc<str>);

/// Functions with the same full name.
struct Group {
    place: Place,
    name: Arc<str>,
    short: Arc<str>,
    full: Arc<str>,
    object: Arc<str>,
    /// On the old side, and on the new one.
    sides: [bool; 2],
    /// The group that this one was matched with.
    matched: Option<usize>,
}

impl Group {
    fn new(told: &Description<'_>) -> Self {
        Self {
            place: told.place(),
            name: told.name.clone(),
            short: told.short.clone(),
            full: told.full.clone(),
            object: told.object.clone(),
            sides: [false; 2],
            matched: None,
        }
    }

    fn is_unmatched(&self) -> bool {
        self.matched.is_none() && self.sides != [true; 2]
    }
}

/// The index of each function in the comparison.
pub(crate) struct Matching(HashMap<Key, FuncId>);

impl Matching {
    /// Matches the functions of the old side and the new one. Returns each as it is shown, by index.
    pub(crate) fn new<'a>(sides: [impl Iterator<Item = Description<'a>>; 2]) -> (Self, Vec<Named>) {
        let (mut groups, mut places) = (Vec::<Group>::new(), HashMap::<Key, usize>::new());
        for (side, functions) in sides.into_iter().enumerate() {
            for told in functions {
                let key = (told.place(), told.full.clone());
                let place = *places.entry(key).or_insert(groups.len());
                if place == groups.len() {
                    groups.push(Group::new(&told));
                }
                let group = &mut groups[place];
                group.sides[side] = true;
                // The program's name in the last file counts.
                group.object = told.object.clone();
                if group.name != *told.name {
                    group.name = written(&group.full);
                }
            }
        }
        match_by(&mut groups, |group| written(&without_hashes(&group.full).into()), |_, _| true);
        let shows_short = |groups: &[Group], list: &[usize]| {
            list.iter().all(|&place| {
                let Group { name, short, .. } = &groups[place];
                name == short || *name == written(short)
            })
        };
        match_by(
            &mut groups,
            |group| written(&group.short),
            |groups, sides| sides.iter().any(|list| shows_short(groups, list)),
        );
        let mut functions = Vec::new();
        let mut ids = Vec::with_capacity(groups.len());
        for group in &groups {
            ids.push(match group.matched {
                Some(with) => ids[with],
                None => {
                    functions.push(Named {
                        name: group.name.clone(),
                        object: group.object.clone(),
                        kind: group.place.kind,
                        group: group.place.group.clone(),
                    });
                    FuncId(functions.len() as u32 - 1)
                }
            });
        }
        (Self(places.into_iter().map(|(key, place)| (key, ids[place])).collect()), functions)
    }

    /// Returns the index of a function that it was made of.
    pub(crate) fn of(&self, told: &Description<'_>) -> FuncId {
        self.0[&(told.place(), told.full.clone())]
    }
}

/// Matches groups of one side with those of the other that have the same key, where `may` agrees.
/// The first group stands for all of them.
fn match_by(
    groups: &mut [Group],
    key: impl Fn(&Group) -> Arc<str>,
    may: impl Fn(&[Group], &[Vec<usize>; 2]) -> bool,
) {
    let mut alike = HashMap::<Key, [Vec<usize>; 2]>::new();
    for (place, group) in groups.iter().enumerate().filter(|(_, group)| group.is_unmatched()) {
        let sides = alike.entry((group.place.clone(), key(group))).or_default();
        sides[usize::from(group.sides[1])].push(place);
    }
    for sides in alike.into_values() {
        let [old, new] = &sides;
        let (Some(&first), false) = (old.first(), new.is_empty()) else { continue };
        if !may(groups, &sides) {
            continue;
        }
        // Groups of the old side come first.
        for &other in old[1..].iter().chain(new) {
            groups[other].matched = Some(first);
            if groups[other].name != groups[first].name {
                groups[first].name = written(&groups[first].short);
            }
        }
        if let Some(&last) = new.last() {
            groups[first].object = groups[last].object.clone();
        }
        groups[first].sides = [true; 2];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Makes a function that is shown by its short name or its full one.
    fn function(short: &str, full: &str, shows_full: bool) -> FunctionInfo {
        let [short, full] = [short, full].map(Arc::from);
        let other = |name: &Arc<str>| Some(name.clone()).filter(|_| short != full);
        match shows_full {
            true => FunctionInfo { short_name: other(&short), ..FunctionInfo::new(full, "app") },
            false => FunctionInfo { full_name: other(&full), ..FunctionInfo::new(short, "app") },
        }
    }

    fn described(infos: &[FunctionInfo]) -> Vec<Description<'_>> {
        infos.iter().map(|info| Description::of_info(info, None)).collect()
    }

    /// Returns a line for each row: its name, and which functions of each side are in it.
    fn rows(old: &[FunctionInfo], new: &[FunctionInfo]) -> Vec<String> {
        let (of_old, of_new) = (described(old), described(new));
        let (matching, named) = Matching::new([of_old.iter().copied(), of_new.iter().copied()]);
        let row = |(id, named): (usize, &Named)| {
            let on = |side: &[Description<'_>]| {
                let here = side.iter().filter(|told| matching.of(told).index() == id);
                here.map(|told| told.full.to_string()).collect::<Vec<_>>().join(" + ")
            };
            format!("{}: {} | {}", named.name, on(&of_old), on(&of_new))
        };
        named.iter().enumerate().map(row).collect()
    }

    #[test]
    fn a_name_with_parameters_is_matched_with_a_short_one() {
        let old = [function("f", "f(int)", false), function("g", "g()", false)];
        let new = [
            function("f", "f(int)", true),
            function("f", "f(long)", true),
            function("g", "g()", false),
        ];
        let expected = ["f(int): f(int) | f(int)", "g: g() | g()", "f(long):  | f(long)"];
        assert_eq!(rows(&old, &new), expected);
    }

    #[test]
    fn changed_parameters_are_matched_where_there_is_one_of_the_name() {
        let old = [function("f", "f(int)", false)];
        assert_eq!(rows(&old, &[function("f", "f(long)", false)]), ["f: f(int) | f(long)"]);
        // Here nobody knows which is which.
        let two = |first: &str, second: &str| [first, second].map(|full| function("f", full, true));
        let expected = ["f(int): f(int) | ", "f(long): f(long) | f(long)", "f(char):  | f(char)"];
        assert_eq!(rows(&two("f(int)", "f(long)"), &two("f(long)", "f(char)")), expected);
    }

    #[test]
    fn recordings_without_parameters_are_compared_by_short_names() {
        let old = [function("f", "f", false), function("f", "f", false)];
        let new = [function("f", "f(int)", true), function("f", "f(long)", true)];
        assert_eq!(rows(&old, &new), ["f: f + f | f(int) + f(long)"]);
    }

    #[test]
    fn hashes_match_exactly_or_not_at_all() {
        let of = |hashes: [&str; 2]| {
            hashes.map(|hash| function("max", &format!("max::h{hash:0>16}"), true))
        };
        let name = |hash: &str| format!("max::h{hash:0>16}");
        let both = |hash| format!("{0}: {0} | {0}", name(hash));
        assert_eq!(rows(&of(["1", "2"]), &of(["2", "1"])), [both("1"), both("2")]);
        // Another compiler.
        let expected =
            format!("max: {} + {} | {} + {}", name("1"), name("2"), name("3"), name("4"));
        assert_eq!(rows(&of(["1", "2"]), &of(["3", "4"])), [expected]);
    }
}
