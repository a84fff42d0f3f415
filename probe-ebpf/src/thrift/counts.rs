//! Counts the calls that are left out. All CPUs share the counts, so each changes by one atomic instruction.

use crate::{atomic::add, maps::LEFT_OUT};
use ctrace_common::LeftOutCalls;

#[inline(always)]
fn of(function: u32) -> Option<*mut LeftOutCalls> {
    LEFT_OUT.get_ptr_mut(function)
}

/// Returns true if calls of this function that are too deep can be counted: each has one entry.
#[inline(always)]
pub fn has_count(function: u32) -> bool {
    // SAFETY: a word of the element, which user space writes whole.
    of(function).is_some_and(|of| unsafe { (&raw const (*of).begins_a_loop).read_volatile() == 0 })
}

#[inline(always)]
pub fn too_deep(function: u32) {
    if let Some(of) = of(function) {
        // SAFETY: a word of the element.
        unsafe { add(&raw mut (*of).too_deep, 1) };
    }
}

/// Counts the end of a call that was too deep.
#[inline(always)]
pub fn end(function: u32) {
    if let Some(of) = of(function) {
        // SAFETY: a word of the element.
        unsafe { add(&raw mut (*of).ends, 1) };
    }
}

/// Counts a call that was too deep inside one of this function.
#[inline(always)]
pub fn inside(function: u32) {
    if let Some(of) = of(function) {
        // SAFETY: a word of the element.
        unsafe { add(&raw mut (*of).inside, 1) };
    }
}

/// Counts a call that was too short. Returns false if there is no room for that.
#[inline(always)]
pub fn short(function: u32, duration: u64) -> bool {
    let Some(of) = of(function) else { return false };
    // SAFETY: words of the element.
    unsafe {
        add(&raw mut (*of).short, 1);
        add(&raw mut (*of).short_ns, duration as i64);
    }
    true
}
