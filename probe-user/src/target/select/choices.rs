//! Says how to trace functions with several implementations, of which one is chosen at the start (IFUNC).

use crate::target::object::Object;
use crate::ui::text;
use std::collections::BTreeSet;

/// Returns a note on called functions of which nothing tells what was chosen, each with its object.
pub(super) fn note(objects: &[Object], unknown: &BTreeSet<(usize, &str)>) -> Option<String> {
    const NAMED: usize = 3;
    let (object, first) = unknown.first()?;
    let names: Vec<String> = unknown.iter().map(|(_, name)| (*name).to_owned()).collect();
    let object = &objects[*object];
    Some(format!(
        "--with-callees leaves out {}: which implementation runs is chosen at start (IFUNC){}",
        text::first_few(NAMED, &names),
        remedy(object, first),
    ))
}

fn remedy(object: &Object, name: &str) -> String {
    // Libraries name them so: `__memcpy_avx_unaligned`.
    let (inner, of) = (format!("_{name}_"), object.name());
    let has_names = object.functions().iter().any(|it| it.raws().any(|raw| raw.contains(&inner)));
    match has_names {
        true => format!("; -f '*{inner}*@{of}' traces those of {name}"),
        false => {
            format!("; with the debug symbols of {of}, -f '*{inner}*' traces those of {name}")
        }
    }
}
