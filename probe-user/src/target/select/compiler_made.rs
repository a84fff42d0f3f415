//! Functions that compilers and linkers add to every program. `*` leaves them out: nobody wrote them,
//! and each of them runs once.

/// The start and the end of a program or library, as the C runtime has them.
const NAMES: [&str; 12] = [
    "_start",
    "_init",
    "_fini",
    "frame_dummy",
    "register_tm_clones",
    "deregister_tm_clones",
    "__do_global_dtors_aux",
    "__do_global_ctors_aux",
    "__libc_csu_init",
    "__libc_csu_fini",
    "_dl_relocate_static_pie",
    "call_weak_fn",
];

/// Functions that run the constructors of a C++ file.
const PREFIXES: [&str; 5] = [
    "_GLOBAL__sub_",
    "_GLOBAL__I_",
    "_GLOBAL__D_",
    "_Z41__static_initialization_and_destruction_0",
    "__cxx_global_",
];

/// Returns whether the function with this symbol was written by nobody.
pub(crate) fn is_compiler_made(symbol: &str) -> bool {
    NAMES.contains(&symbol) || PREFIXES.iter().any(|prefix| symbol.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::is_compiler_made;

    #[test]
    fn names_that_people_give_are_not_of_the_compiler() {
        for symbol in ["frame_dummy", "_GLOBAL__sub_I_main", "__cxx_global_var_init.3"] {
            assert!(is_compiler_made(symbol), "{symbol}");
        }
        for symbol in ["main", "frame_dummy_2", "_initialize", "_ZN4_GLOBAL5startEv"] {
            assert!(!is_compiler_made(symbol), "{symbol}");
        }
    }
}
