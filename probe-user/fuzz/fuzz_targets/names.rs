//! Any symbol has a name, soon and of bounded length.

#![no_main]

use ctrace_user::target::demangle::{full, short, without_clone_suffix, without_generics};

/// As the symbol is, or at most as long as a demangled name may be.
const LONGEST: usize = 32 << 10;

libfuzzer_sys::fuzz_target!(|raw: &str| {
    for name in [short(raw), full(raw)] {
        assert!(name.len() <= LONGEST.max(raw.len()));
        without_generics(&name);
        without_clone_suffix(&name);
    }
});
