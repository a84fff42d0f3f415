//! Applies SELECT to the functions of a recording, with the same patterns.

use super::{Patterns, pattern::Pattern};
use crate::target::names::nearest::nearest;
use ctrace_core::function::{FunctionInfo, FunctionKind};

/// Returns which functions are chosen, by id. Without patterns, all but the excluded ones are. A
/// pattern for functions also finds markers and USDT probes of that name.
pub(crate) fn choose(
    functions: &[FunctionInfo],
    patterns: &Patterns<'_>,
) -> anyhow::Result<Vec<bool>> {
    let mut chosen = vec![
        patterns.functions.is_empty()
            && patterns.usdt.is_empty()
            && patterns.markers.is_empty();
        functions.len()
    ];
    let kinds = [
        (patterns.functions, None),
        (patterns.usdt, Some(FunctionKind::Usdt)),
        (patterns.markers, Some(FunctionKind::Marker)),
    ];
    for (texts, kind) in kinds {
        for text in texts {
            let pattern = Pattern::parse(text)?;
            let is_kind = |id: usize| kind.is_none_or(|kind| kind == functions[id].kind);
            let found = matching(&pattern, functions, is_kind);
            if found.is_empty() {
                anyhow::bail!("{}", not_found(text, &pattern, functions));
            }
            found.into_iter().for_each(|id| chosen[id] = true);
        }
    }
    for text in patterns.exclude {
        let excluded = matching(&Pattern::parse(text)?, functions, |id| chosen[id]);
        excluded.into_iter().for_each(|id| chosen[id] = false);
    }
    Ok(chosen)
}

/// Returns the functions that match, by id. A bare name that is no whole name matches the last part
/// of names.
fn matching(
    pattern: &Pattern,
    functions: &[FunctionInfo],
    is_candidate: impl Fn(usize) -> bool,
) -> Vec<usize> {
    let find = |pattern: &Pattern| -> Vec<usize> {
        let matches = |id: &usize| is_candidate(*id) && pattern.matches_recorded(&functions[*id]);
        let found = (0..functions.len()).filter(matches).collect();
        pattern.prefer_named(found, |&id| {
            let function = &functions[id];
            [function.short(), function.full()].into_iter().chain(&function.aliases).collect()
        })
    };
    let found = find(pattern);
    match pattern.by_last_part() {
        Some(last) if found.is_empty() => find(&last),
        _ => found,
    }
}

fn not_found(text: &str, pattern: &Pattern, functions: &[FunctionInfo]) -> String {
    let near = nearest(&pattern.stem, functions.iter().map(|function| &*function.name), 3);
    let near = match near.as_slice() {
        [] => String::new(),
        names => format!("; near it: {}", names.join(", ")),
    };
    format!("none of the {} recorded functions matches `{text}`{near}", functions.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_stands_for_names_that_end_in_it() {
        let names = ["shop::format", "log::format", "total", "shop::total"];
        let functions = names.map(|name| FunctionInfo::new(name, "program"));
        let chosen = |wanted: &[&str], exclude: &[&str]| -> Vec<&str> {
            let owned =
                |all: &[&str]| all.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
            let (wanted, exclude) = (owned(wanted), owned(exclude));
            let patterns =
                Patterns { functions: &wanted, exclude: &exclude, ..Patterns::default() };
            let chosen = choose(&functions, &patterns).expect("found");
            names.into_iter().zip(chosen).filter(|(_, chosen)| *chosen).map(|(n, _)| n).collect()
        };
        assert_eq!(chosen(&["format"], &[]), ["shop::format", "log::format"]);
        assert_eq!(chosen(&["total"], &[]), ["total"]);
        assert_eq!(chosen(&[], &["format"]), ["total", "shop::total"]);
        assert_eq!(chosen(&[], &["total"]), ["shop::format", "log::format", "shop::total"]);
        // Where the whole name was not chosen, the last part is what is left out.
        assert_eq!(chosen(&["shop::*"], &["total"]), ["shop::format"]);
    }

    fn function(short: &str, full: &str, shows_full: bool) -> FunctionInfo {
        match shows_full {
            true => {
                FunctionInfo { short_name: Some(short.into()), ..FunctionInfo::new(full, "app") }
            }
            false => {
                FunctionInfo { full_name: Some(full.into()), ..FunctionInfo::new(short, "app") }
            }
        }
    }

    #[test]
    fn functions_are_chosen_by_each_of_their_names() {
        let functions = [
            function("shop::format", "shop::format(char*)", true),
            function("shop::format", "shop::format(char const*)", true),
            function("shop::load", "shop::load(int, int)", false),
            FunctionInfo::new("printf", "libc.so.6"),
            function("max", "max::h0123456789abcdef", false),
            function("shop::label", "shop::label(char*)", true),
            function("shop::label", "shop::label[abi:cxx11](char*)", true),
        ];
        let chosen = |asked: &[&str], exclude: &[&str]| -> Vec<usize> {
            let owned = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
            let (asked, exclude): (Vec<String>, Vec<String>) = (owned(asked), owned(exclude));
            let patterns = Patterns { functions: &asked, exclude: &exclude, ..Patterns::default() };
            let chosen = choose(&functions, &patterns).unwrap();
            (0..chosen.len()).filter(|&at| chosen[at]).collect()
        };
        assert_eq!(chosen(&["shop::format"], &[]), [0, 1]);
        assert_eq!(chosen(&["shop::format(char*)"], &[]), [0]);
        assert_eq!(chosen(&["shop::format(*)"], &[]), [0, 1]);
        assert_eq!(chosen(&["shop::load(int, int)"], &[]), [2]);
        assert_eq!(chosen(&["max::h0123456789abcdef"], &[]), [4]);
        assert_eq!(chosen(&["shop::*"], &["shop::format(char*)"]), [1, 2, 5, 6]);
        assert_eq!(chosen(&["shop::label(char*)"], &[]), [5]);
        assert_eq!(chosen(&["shop::label[abi:cxx11](char*)"], &[]), [6]);
        // Nobody means parameters by this.
        assert_eq!(chosen(&["*int*"], &[]), [3]);
    }
}
