//! Remarks on a pattern that matched something else than its user may expect.

use super::Match;
use super::not_found::written;
use super::pattern::Pattern;
use crate::target::names::demangle::is_part;
use crate::target::object::{Object, symbols::Function};
use crate::ui::text;

/// Says which functions a bare name stands for.
pub(super) fn stands_for(pattern: &Pattern, objects: &[Object], found: &[Match]) -> String {
    const NAMED: usize = 3;
    let functions = || found.iter().map(|it| &objects[it.object].functions()[it.index]);
    // Overloads can differ in tags, which are not shown.
    let shown = |function: &Function| written(&[function.name().to_string()]);
    let named = |function: &Function| {
        let is_alone = functions().filter(|other| shown(other) == shown(function)).count() == 1;
        if is_alone { function.name().to_string() } else { function.full_name().to_string() }
    };
    let mut names = written(&functions().take(NAMED).map(named).collect::<Vec<_>>());
    if found.len() > NAMED {
        names.push(format!("and {} more", found.len() - NAMED));
    }
    let name = &pattern.stem;
    format!(
        "no function has the whole name `{name}`: it stands for *::{name}, here {}",
        names.join(", ")
    )
}

/// Tells of functions of the program whose names only end in what a glob matches, if it matched none of
/// the program itself.
pub(super) fn ends_of_names(
    pattern: &Pattern,
    objects: &[Object],
    found: &[Match],
) -> Option<String> {
    /// Their functions are no program's own.
    const OTHERS: [&str; 4] = ["std::", "core::", "alloc::", "__"];
    let main = objects.iter().find(|object| object.is_main())?;
    if !pattern.is_glob_of_names() || found.iter().any(|it| objects[it.object].is_main()) {
        return None;
    }
    let is_others =
        |name: &str| OTHERS.iter().any(|it| name.trim_start_matches('<').starts_with(it));
    let ends_so = |name: &&str| {
        name.match_indices("::").any(|(at, sign)| pattern.matches_name(&name[at + sign.len()..]))
    };
    let functions = || main.functions().iter().filter(|function| !is_part(function.raw()));
    let names = || functions().map(|function| &**function.name()).filter(ends_so);
    let first = names().find(|name| !is_others(name))?;
    let first = written(&[first.to_owned()]).concat();
    let ending = text::units::counted(names().count() as u64, "function", "functions");
    let glob = &pattern.stem;
    Some(format!(
        "`{glob}` matches only functions of libraries ({}). In {}, -f '*::{glob}' matches {ending}, such \
         as {first}",
        found.len(),
        main.name(),
    ))
}
