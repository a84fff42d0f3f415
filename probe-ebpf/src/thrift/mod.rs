//! Leaves out calls that are deeper than asked for (`--depth`): they make no events.
//!
//! User space leaves them out as well, so nothing depends on this but the cost. A call is left out only
//! where user space would do so: the stack pointers of the thread's open calls prove that it is too deep.
//! Where they prove nothing, there is an event. The limit counts calls of functions with different stack
//! pointers only, so it is never reached earlier than in user space.
//!
//! A call without a return probe has an end all the same, where the ways out are probed or the kernel
//! has no session links. That end is left out if no call that made events can be meant.

mod calls;

use crate::{
    aggregate::counts_at,
    atomic::add,
    maps::{KEPT_CALLS, LEFT_OUT},
    output::now,
    settings,
};
use calls::Calls;
use ctrace_common::{LeftOutCalls, STACK_SIZE};

/// Enters a function. Returns false if the call is left out.
#[inline(always)]
pub fn enter(tid: u32, function: u32, sp: u64) -> bool {
    let time = now();
    // User space does not know of calls that began before the start.
    if !counts_at(time) {
        return true;
    }
    let Some(calls) = Calls::of(tid, time) else { return true };
    let mut depth = calls.depth();
    if let Some(top) = calls.top() {
        let below = top.sp().wrapping_sub(sp);
        if below == 0 || below > STACK_SIZE {
            calls::replace(calls.0, sp);
            depth = calls.depth();
        }
        if depth >= settings::MOST_NESTED.load() {
            // SAFETY: the closures only compute addresses within the element.
            count(function, |calls| unsafe { &raw mut (*calls).too_deep });
            count(top.function(), |calls| unsafe { &raw mut (*calls).inside });
            return false;
        }
    }
    calls.push(function, sp);
    true
}

/// Leaves a function. Returns false if the call was left out.
#[inline(always)]
pub fn leave(tid: u32, function: u32, sp: u64) -> bool {
    let Some(calls) = KEPT_CALLS.get_ptr_mut(tid).map(Calls) else { return true };
    let Some(top) = calls.top() else { return true };
    if top.sp() == sp {
        calls.pop();
        return true;
    }
    if top.sp().wrapping_sub(sp) <= STACK_SIZE {
        let counts = calls.depth() < settings::MOST_NESTED.load() || calls.is_doubtful();
        if !counts {
            // SAFETY: as above.
            count(function, |calls| unsafe { &raw mut (*calls).ends });
        }
        return counts;
    }
    calls::replace(calls.0, sp);
    true
}

/// Forgets a thread that is gone.
#[inline(always)]
pub fn end_thread(tid: u32) {
    if settings::MOST_NESTED.load() != 0 {
        let _ = KEPT_CALLS.remove(tid);
    }
}

/// Adds 1 to a count of a function.
#[inline(always)]
fn count(function: u32, which: impl Fn(*mut LeftOutCalls) -> *mut u64) {
    if let Some(calls) = LEFT_OUT.get_ptr_mut(function) {
        // SAFETY: a word of an element of the map. Atomic, because all CPUs share it.
        unsafe { add(which(calls), 1) };
    }
}
