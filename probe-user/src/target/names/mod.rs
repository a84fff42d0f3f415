//! Names of symbols for people, and the names closest to a wrong one.

pub(crate) mod demangle;
pub(super) mod home;
pub(super) mod nearest;
