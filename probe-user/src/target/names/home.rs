//! How far a name is from the code that the user wrote: suggestions and lists begin with their own
//! functions, of which the standard library, with a thousand times as many, may have all the names.

/// Crates and namespaces that come with a compiler, and crates that Rust's standard library has in it.
const STANDARD: [&str; 16] = [
    "std",
    "core",
    "alloc",
    "proc_macro",
    "compiler_builtins",
    "hashbrown",
    "__gnu_cxx",
    "__cxxabiv1",
    "addr2line",
    "adler2",
    "gimli",
    "miniz_oxide",
    "object",
    "panic_unwind",
    "rustc_demangle",
    "std_detect",
];

/// Beginnings of the names of functions that bring a program up, or unwind it.
const RUNTIME: [&str; 11] = [
    "__",
    "_start",
    "_init",
    "_fini",
    "_Unwind_",
    "rust_begin_unwind",
    "rust_eh_personality",
    "rust_panic",
    "frame_dummy",
    "register_tm_clones",
    "deregister_tm_clones",
];

/// The distance of a name of the program's other crates: that of one wrong letter.
const OTHER_CRATE: usize = 1;
/// The distance of a name of the standard library or of another library.
const FOREIGN: usize = 3;

/// The code that the user wrote.
#[derive(Debug, Default, PartialEq, Eq)]
pub(in crate::target) struct Home<'a> {
    /// The crate of a Rust program. In other programs all but the standard library is theirs.
    program: Option<&'a str>,
}

impl<'a> Home<'a> {
    /// Finds it by the names of a program's functions: Rust's `main` is in the root of its crate.
    pub(in crate::target) fn of(names: impl IntoIterator<Item = &'a str>) -> Self {
        let crates = names.into_iter().filter_map(|name| name.strip_suffix("::main"));
        let mut crates =
            crates.filter(|name| name.bytes().all(|c| c == b'_' || c.is_ascii_alphanumeric()));
        Self { program: crates.next() }
    }

    /// Returns how many wrong letters the origin of a name counts as.
    pub(in crate::target) fn distance(&self, name: &str, is_of_program: bool) -> usize {
        let first = root(name);
        match self.program {
            _ if !is_of_program || STANDARD.contains(&first) || is_of_runtime(name) => FOREIGN,
            Some(program) if program != first => OTHER_CRATE,
            _ => 0,
        }
    }
}

fn is_of_runtime(name: &str) -> bool {
    RUNTIME.iter().any(|begin| name.starts_with(begin))
}

/// Returns the crate or outermost namespace of a name; of an implementation, that of its type, or of
/// the trait if the type is of no crate.
fn root(name: &str) -> &str {
    let begin = name.trim_start_matches(['<', '&', '*', '[', '(', ' ']);
    let begin = ["impl ", "dyn ", "mut ", "const "]
        .iter()
        .fold(begin, |rest, word| rest.strip_prefix(word).unwrap_or(rest));
    let first = begin.split("::").next().unwrap_or(begin);
    match first.split_once(" as ") {
        Some((_, of_trait)) => of_trait,
        // Primitive types have methods of the core library.
        None if name.starts_with('<') && first.ends_with('>') => "core",
        None => first,
    }
}

#[cfg(test)]
mod tests {
    use super::{FOREIGN, Home, OTHER_CRATE};

    #[test]
    fn the_crate_of_main_is_home() {
        let rust = Home::of(["std::rt::main", "core::fmt::write", "shop::main", "main"]);
        assert_eq!(rust, Home { program: Some("shop") });
        for (name, distance) in [
            ("shop::cart::total", 0),
            ("<shop::Cart as core::fmt::Display>::fmt", 0),
            ("serde::de::total", OTHER_CRATE),
            ("<&mut alloc::vec::Vec<shop::Cart>>::total", FOREIGN),
            ("<u8 as core::fmt::Display>::fmt", FOREIGN),
            ("<T as shop::Total>::total", 0),
            ("<str>::total", FOREIGN),
            ("rust_begin_unwind", FOREIGN),
            ("_start", FOREIGN),
            ("main", OTHER_CRATE),
            ("core::iter::total", FOREIGN),
        ] {
            assert_eq!(rust.distance(name, true), distance, "{name}");
        }
        assert_eq!(rust.distance("shop::cart::total", false), FOREIGN);
    }

    #[test]
    fn a_program_without_crates_is_home_as_a_whole() {
        let cpp = Home::of(["main", "shop::total(int)"]);
        let distances =
            ["total", "shop::total(int)", "std::vector<shop::Cart>::total", "__libc_total"];
        assert_eq!(distances.map(|name| cpp.distance(name, true)), [0, 0, FOREIGN, FOREIGN]);
    }
}
