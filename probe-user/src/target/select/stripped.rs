//! Says of a stripped program which names it lacks, as nothing else tells it from one that has no such function.

use super::{Match, pattern::Pattern};
use crate::target::names::by_address::is_asked_for;
use crate::{target::object::Object, ui::text};

/// The way to functions without a name.
const BY_ADDRESS: &str = "-f 'fn_*'";

/// Explains why an object lacks a name.
pub(super) fn hint(object: &Object) -> Option<String> {
    let mut left = what_is_left(object)?;
    if !object.is_main() && !object.functions().iter().any(|it| it.is_named_by_address()) {
        left += &format!(", and -f 'fn_*@{}' chooses others by their addresses", object.name());
    }
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

/// Says that a pattern which stands for many names chose functions of libraries alone, or functions
/// that have no names, because the program is stripped.
pub(super) fn remark(pattern: &Pattern, objects: &[Object], found: &[Match]) -> Option<String> {
    let is_of_many = !pattern.is_literal() && !pattern.names_object();
    let is_in_program = |it: &&Match| objects[it.object].is_main();
    if !is_of_many || found.is_empty() {
        return None;
    }
    let mut own = found.iter().filter(is_in_program).peekable();
    let is_of_libraries = own.peek().is_none();
    let is_unnamed = |it: &Match| objects[it.object].functions()[it.index].is_named_by_address();
    if !is_of_libraries && (is_asked_for(&pattern.stem) || !own.any(is_unnamed)) {
        return None;
    }
    let left = what_is_left(objects.iter().find(|object| object.is_main())?)?;
    let symbols = "install the program's debug symbols, a -dbgsym or -debuginfo package, or use an \
                   unstripped build";
    Some(match is_of_libraries {
        true => {
            format!("{left}: `{}` chooses functions of libraries alone ({symbols})", pattern.text)
        }
        false => format!("{left}: for their names, {symbols}"),
    })
}

/// Says which names an object without symbols has.
pub(crate) fn what_is_left(object: &Object) -> Option<String> {
    if !object.is_stripped() || object.debug_file().path().is_some() {
        return None;
    }
    let unnamed = object.functions().iter().filter(|it| it.is_named_by_address()).count();
    let left = match (object.functions().len() - unnamed, unnamed) {
        (0, 0) => "its own functions have no names left".to_owned(),
        (0, unnamed) => {
            format!("its own functions have their addresses as names ({unnamed}: {BY_ADDRESS})")
        }
        (names, 0) => format!("only the {names} functions that it exports have names"),
        (names, unnamed) => format!(
            "what it exports has names ({names}), its other functions have their addresses \
             ({unnamed}: {BY_ADDRESS})"
        ),
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
        let told = notes("gcc -s", "far_*");
        assert!(told.contains("program is stripped, its own functions have their addresses as names (1: -f 'fn_*')"), "{told}");
        assert!(told.contains("`far_*` chooses functions of libraries alone"), "{told}");
        let told = notes("gcc -s", "*");
        assert!(told.contains("-f 'fn_*'): for their names, install"), "{told}");
        assert_eq!(notes("gcc -s", "fn_*"), "");
        // Who names a function means it.
        assert_eq!(notes("gcc -s", "far_away"), "");
        assert_eq!(notes("gcc", "far_*"), "");
    }
}
