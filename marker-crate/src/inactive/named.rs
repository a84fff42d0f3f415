//! `ctrace_enter` and `ctrace_exit` without effect.

use core::ffi::CStr;

/// Does nothing in this build.
#[inline(always)]
pub fn ctrace_enter(_name: &CStr) {}

/// Does nothing in this build.
#[inline(always)]
pub fn ctrace_exit(_name: &CStr) {}
