//! Names of symbols for people, and the names closest to a wrong one.

pub(super) mod by_address;
pub(crate) mod demangle;
pub(super) mod home;
pub(super) mod nearest;

/// Returns the beginning of a name that is copied for many places: it may be as long as its file.
pub(super) fn cut(name: &str) -> &str {
    ctrace_core::names::cut(name, 1_024)
}
