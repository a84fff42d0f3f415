//! Any symbol has a name, soon and of bounded length.

use ctrace_user::testing::target::{full, short, without_clone_suffix, without_generics};

/// As the symbol is, or at most as long as a demangled name may be.
const LONGEST: usize = 32 << 10;

pub fn check(raw: &str) {
    for name in [short(raw), full(raw)] {
        assert!(name.len() <= LONGEST.max(raw.len()));
        without_generics(&name);
        without_clone_suffix(&name);
    }
}
