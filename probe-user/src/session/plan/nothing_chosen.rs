//! The message for a user who chose nothing, if there are no markers to trace instead.

use crate::target::{
    object::{Object, symbols::Function},
    select::not_found::flawed_markers,
};

/// Returns the message: the functions that there are, and an option that would trace some of them.
pub(super) fn what_could_be_traced(objects: &[Object]) -> String {
    const SHOWN: usize = 4;
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
    largest.sort_by_key(|function| std::cmp::Reverse(function.size));
    let names: Vec<&str> = largest.iter().map(|function| &**function.name()).collect();
    let mut shown: Vec<&str> =
        names.iter().copied().filter(|name| name.len() <= READABLE).take(SHOWN).collect();
    if shown.is_empty() {
        shown.push(names[0]);
    }
    let tip = names.iter().find(|name| **name == "main").unwrap_or(&shown[0]);
    format!(
        "nothing was chosen: {} has {} functions ({}, …), {probes} USDT probes with its libraries, \
         and no marker scopes{flawed}; try -f '{tip}', or -f '*' for all functions; `ctrace list` \
         shows them",
        main.name(),
        functions.len(),
        shown.join(", "),
    )
}
