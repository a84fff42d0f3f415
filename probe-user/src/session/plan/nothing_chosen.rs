//! The message for a user who chose nothing, if there are no markers to trace instead.

use crate::target::{
    object::{Object, symbols::Function},
    select::{is_compiler_made, not_found::flawed_markers, stripped::what_is_left},
};
use std::collections::BTreeMap;

/// Returns the message: the functions that there are, and an option that would trace some of them.
pub(super) fn what_could_be_traced(objects: &[Object]) -> String {
    const SHOWN: usize = 4;
    /// So many functions can all be traced.
    const FEW: usize = 200;
    /// Names of templates and closures fill lines.
    const READABLE: usize = 40;
    let Some(main) = objects.iter().find(|object| object.is_main()) else {
        return "nothing was chosen: say which functions with -f GLOB".into();
    };
    let functions = main.functions();
    let probes: usize = objects.iter().map(|object| object.usdt_probes().len()).sum();
    let flawed: String =
        objects.iter().filter_map(flawed_markers).map(|line| format!("; {line}")).collect();
    if functions.is_empty() {
        let library = objects.iter().find(|object| !object.functions().is_empty());
        let library = library.map_or("libc.so.6", |object| object.name());
        return format!(
            "nothing was chosen, and {} has no symbols and no marker scopes{flawed}; its libraries \
             have symbols: try -f 'GLOB@{library}'",
            main.name()
        );
    }
    let mut largest: Vec<&Function> = functions.iter().collect();
    let is_own = |function: &&Function| !is_compiler_made(function.raw());
    if largest.iter().any(is_own) {
        largest.retain(is_own);
    }
    let is_named = |function: &&Function| !function.is_named_by_address();
    let has_unnamed = !largest.iter().all(is_named);
    if largest.iter().any(is_named) {
        largest.retain(is_named);
    }
    largest.sort_by_key(|function| std::cmp::Reverse(function.size));
    let names: Vec<&str> = largest.iter().map(|function| &**function.name()).collect();
    let mut shown: Vec<&str> =
        names.iter().copied().filter(|name| name.len() <= READABLE).take(SHOWN).collect();
    if shown.is_empty() {
        shown.push(names[0]);
    }
    let left = has_unnamed.then(|| what_is_left(main)).flatten();
    let left = left.map(|left| format!("; {left}")).unwrap_or_default();
    let tip = match own_namespace(main.name(), &names) {
        Some(own) => format!("-f '{own}::*'"),
        None if functions.len() <= FEW => "-f '*'".to_owned(),
        None => format!("-f '{}'", shown[0]),
    };
    format!(
        "nothing was chosen: {} has {} functions ({}, …), {probes} USDT probes with its libraries, \
         and no marker scopes{flawed}{left}; try {tip}; `ctrace list` shows them",
        main.name(),
        functions.len(),
        shown.join(", "),
    )
}

/// Returns the namespace, or the crate, of the program's own functions: the one that has its name, or
/// that most of the names are in.
fn own_namespace<'a>(program: &str, names: &[&'a str]) -> Option<&'a str> {
    /// Those of compilers and their libraries.
    const OTHERS: [&str; 8] = [
        "__rustc",
        "std",
        "core",
        "alloc",
        "__gnu_cxx",
        "__cxxabiv1",
        "compiler_builtins",
        "hashbrown",
    ];
    let program = program.replace('-', "_");
    let mut counts = BTreeMap::<&str, usize>::new();
    for name in names {
        let first = name.split_once("::").map(|(first, _)| first);
        let is_name = |text: &&str| {
            !text.is_empty() && text.chars().all(|sign| sign.is_alphanumeric() || sign == '_')
        };
        if let Some(first) = first.filter(is_name).filter(|first| !OTHERS.contains(first)) {
            *counts.entry(first).or_default() += 1;
        }
    }
    // In Rust, `main` is in the program's own crate, however its file is named.
    let has_main = |own: &str| names.iter().any(|name| name.strip_prefix(own) == Some("::main"));
    let most =
        counts.iter().max_by_key(|(name, count)| (**name == program, has_main(name), **count));
    most.map(|(name, _)| *name)
}

#[cfg(test)]
mod tests {
    use super::own_namespace;

    #[test]
    fn the_own_namespace_is_that_of_the_program_or_the_largest() {
        let names = ["std::sort", "std::copy", "std::find", "shop::a", "shop::b", "log::a", "main"];
        assert_eq!(own_namespace("server", &names), Some("shop"));
        assert_eq!(own_namespace("log", &names), Some("log"));
        let rust = ["<str>::len", "gimli::read", "gimli::parse", "my_tool::main", "core::fmt"];
        assert_eq!(own_namespace("my-tool", &rust), Some("my_tool"));
        assert_eq!(own_namespace("my-tool-2", &rust), Some("my_tool"));
        assert_eq!(own_namespace("redis", &["call", "std::sort", "operator new"]), None);
    }
}
