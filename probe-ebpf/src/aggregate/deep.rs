//! Calls that are deeper than asked for (`--depth`). They are counted by function only, and their time is
//! their caller's.
//!
//! Nearly all are not even opened: the open calls around them prove that they are too deep, and that what
//! ends below these is one of them. Two kinds are opened all the same, since their events tell no more than
//! that: what a call has jumped to, which has the place of that one on the stack, and functions whose entry
//! is the head of a loop, as their probe is hit once a round.

use super::{calls::Calls, counts_at, is_too_deep, rare::facts_of};
use crate::{output::now, settings, thrift::counts};
use ctrace_common::{ENTRY_IS_LOOP_HEAD, OpenCalls, STACK_SIZE};

/// Enters a function. Returns false if its end need not be seen.
#[cold]
#[inline(never)]
pub fn enter(calls: *mut OpenCalls, function: u32, sp: u64) -> bool {
    let calls = Calls(calls);
    let Some(top) = calls.top().filter(|_| counts_at(now())) else { return true };
    calls.set_far(0);
    counts::too_deep(function);
    counts::inside(calls.call(settings::MOST_NESTED.load().wrapping_sub(1)).function());
    if top.sp() != sp && facts_of(function) & ENTRY_IS_LOOP_HEAD == 0 {
        return false;
    }
    calls.push_deep(function, sp);
    true
}

/// Returns true if an end at this place of the stack is that of a call that was not opened.
#[inline(always)]
pub fn is_end(calls: Calls, sp: u64) -> bool {
    let is_below =
        calls.top().is_some_and(|top| (1..=STACK_SIZE).contains(&top.sp().wrapping_sub(sp)));
    is_below && is_too_deep(calls.depth())
}

/// Counts the end of a call that was too deep.
#[cold]
#[inline(never)]
pub fn end(function: u32) -> u32 {
    counts::end(function);
    0
}
