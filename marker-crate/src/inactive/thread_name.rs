//! The names of threads, without effect.

/// Does nothing in this build.
#[inline(always)]
pub fn thread_name(_name: &str) {}

/// Does nothing in this build.
#[inline(always)]
pub fn thread_name_of(_name: core::fmt::Arguments<'_>) {}
