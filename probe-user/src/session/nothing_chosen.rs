//! What a user is told who chose nothing, where there are no markers to trace instead.

use crate::target::{not_found::flawed_markers, object::Object, symbols::Function};

/// For a user who chose nothing: what there is, and an option that would trace some of it.
pub(super) fn what_could_be_traced(objects: &[Object]) -> String {
    const SHOWN: usize = 4;
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
    let names: Vec<&str> = largest.iter().take(SHOWN).map(|f| &**f.name()).collect();
    format!(
        "nothing was chosen: {} has {} functions ({}, …), {probes} USDT probes and no marker \
         scopes are there{flawed}; try -f '{}', or -f '*' for all functions; `ctrace list` shows them",
        main.name(),
        functions.len(),
        names.join(", "),
        names[0],
    )
}
