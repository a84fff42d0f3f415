//! Says of a stripped program which names it lacks, as nothing else tells it from one that has no such function.

use super::{Match, pattern::Pattern};
use crate::{target::object::Object, ui::text};

/// Explains why an object lacks a name.
pub(super) fn hint(object: &Object) -> Option<String> {
    let left = what_is_left(object)?;
    let paths: Vec<String> =
        object.debug_file().looked_at.iter().map(|(path, _)| path.display().to_string()).collect();
    let looked = match paths.as_slice() {
        [] => "it names no debug file".to_owned(),
        paths => format!("looked for its debug file at {}", text::first_few(2, paths)),
    };
    Some(format!(
        "{left}: install its debug symbols (-dbgsym or -debuginfo package) or use an unstripped build; \
         {looked}"
    ))
}

/// Says that a pattern which stands for many names chose functions of libraries alone, because the
/// program is stripped.
pub(super) fn remark(pattern: &Pattern, objects: &[Object], found: &[Match]) -> Option<String> {
    let is_of_many = !pattern.is_literal() && !pattern.names_object();
    let is_in_program = |it: &Match| objects[it.object].is_main();
    if !is_of_many || found.is_empty() || found.iter().any(is_in_program) {
        return None;
    }
    let left = what_is_left(objects.iter().find(|object| object.is_main())?)?;
    Some(format!(
        "{left}: `{}` chooses functions of libraries alone (install the program's debug symbols, a \
         -dbgsym or -debuginfo package, or use an unstripped build)",
        pattern.text
    ))
}

/// Says which names an object without symbols has.
fn what_is_left(object: &Object) -> Option<String> {
    if !object.is_stripped() || object.debug_file().path().is_some() {
        return None;
    }
    let left = match object.functions().len() {
        0 => "its own functions have no names left".to_owned(),
        names => format!("only the {names} functions that it exports have names"),
    };
    Some(format!("{} is stripped, {left}", object.name()))
}

#[cfg(test)]
mod tests {
    use crate::target::fixtures::compile;
    use crate::target::select::{Patterns, Selector};

    #[test]
    fn a_stripped_program_is_told_where_a_glob_chooses_of_libraries_alone() {
        let program = "int main(void) { return 7; }";
        let library = "int far_away(int x) { return x * 3; }";
        let notes = |flags: &str, pattern: &str| {
            let mut library = compile("gcc -shared -fPIC", "c", library).object();
            library.set_main(false);
            let objects = [compile(flags, "c", program).object(), library];
            let functions = [pattern.to_owned()];
            let patterns = Patterns { functions: &functions, ..Patterns::default() };
            let selector = Selector::parse(patterns).expect("a pattern");
            selector.select(&objects, 999).expect("something is found").notes.join("; ")
        };
        let told = notes("gcc -s", "*");
        assert!(told.contains("stripped, its own functions have no names left"), "{told}");
        assert!(told.contains("`*` chooses functions of libraries alone"), "{told}");
        // Who names a function means it.
        assert_eq!(notes("gcc -s", "far_away"), "");
        assert_eq!(notes("gcc", "far_*"), "");
    }
}
