//! Entries and ends that are not plain, each in a function of its own: the short way stays short, and
//! the verifier follows the loops less often.

use super::{
    calls::{Calls, are_full},
    counting,
    counts::{headless, of_function, unplaced},
    counts_at, deep, revise_if_changed,
};
use crate::{maps::OPEN_CALLS, output::now, turns::repeat};
use ctrace_common::{
    ENDS_ARE_SEEN, ENDS_BY_RETURN, ENTRY_IS_LOOP_HEAD, FAR_AWAY, Kind, MOST_HIJACKED, MOST_OPEN,
    OpenCalls, STACK_SIZE, TAIL_CALLS_NEST,
};

/// Calls in a row on another stack after which the open ones are given up: a stack that is left for ever,
/// as that of a coroutine, must not keep the thread's other calls from being timed.
const MOST_FAR: u32 = 256;

/// Returns true if an event is on another stack than the innermost call.
#[inline(always)]
fn is_far(calls: Calls, sp: u64) -> bool {
    calls.top().is_some_and(|top| top.sp().abs_diff(sp) > STACK_SIZE)
}

/// In the section of its callers: aya ties no calls from one such section to another.
#[cold]
#[inline(never)]
fn drop_top(calls: *mut OpenCalls) -> u32 {
    Calls(calls).drop_top();
    0
}

/// Ends the calls that this stack pointer proves to be over.
#[inline(always)]
fn bury(calls: Calls, sp: u64) {
    repeat(MOST_OPEN as u32, |_| {
        let is_over = calls.top().is_some_and(|top| top.sp() < sp);
        if is_over {
            drop_top(calls.0);
        }
        is_over
    });
}

#[inline(always)]
pub fn facts_of(function: u32) -> u64 {
    // SAFETY: an element of a map, whose words user space writes whole.
    of_function(function).map_or(0, |of| unsafe { (&raw const (*of).facts).read_volatile() })
}

/// Returns true if a call begins here that is to be opened.
#[cold]
#[inline(never)]
pub fn may_enter(calls: *mut OpenCalls, function: u32, sp: u64) -> bool {
    let calls = Calls(calls);
    if !counts_at(now()) {
        return false;
    }
    if is_far(calls, sp) {
        if calls.far() >= MOST_FAR {
            give_up(calls.0);
            return true;
        }
        calls.set_far(calls.far() + 1);
        unplaced(function, FAR_AWAY);
        return false;
    }
    bury(calls, sp);
    let Some(top) = calls.top() else { return true };
    if top.sp() != sp {
        return true;
    }
    let facts = facts_of(top.function());
    if top.function() == function && facts & ENTRY_IS_LOOP_HEAD != 0 {
        calls.set_last(now());
        return false;
    }
    if facts & TAIL_CALLS_NEST == 0 || top.is_restored() {
        // It cannot have jumped here, so its end was not seen.
        bury(calls, sp.saturating_add(1));
    }
    true
}

/// Returns true if an end of this kind is one only if a call fits: a jump may stay within the function,
/// and a return may come from the time before the function lost its return probe.
#[inline(always)]
fn may_be_none(kind: u32, function: u32) -> bool {
    kind == Kind::ExitJump as u32
        || kind == Kind::Return as u32 && facts_of(function) & ENDS_BY_RETURN == 0
}

/// Leaves a function in a thread that has no calls.
#[cold]
#[inline(never)]
pub fn leave_unseen(function: u32, kind: u32) -> u32 {
    if !are_full() && !may_be_none(kind, function) {
        headless(function);
    }
    0
}

/// Leaves a function that is not the innermost one.
#[cold]
#[inline(never)]
pub fn leave(calls: *mut OpenCalls, function: u32, sp: u64, ts_ns: u64, kind: u32) -> u32 {
    let calls = Calls(calls);
    if is_far(calls, sp) {
        return 0;
    }
    if deep::is_end(calls, sp) {
        return deep::end(function);
    }
    // A call beyond the depth has been counted already.
    let was_full = calls.depth() >= MOST_OPEN as u32;
    bury(calls, sp);
    let mut is_open = false;
    repeat(MOST_OPEN as u32, |over| {
        if over >= calls.depth() {
            return false;
        }
        let call = calls.call(calls.depth().wrapping_sub(1).wrapping_sub(over));
        is_open = call.sp() == sp && call.function() == function;
        call.sp() == sp && !is_open
    });
    if !is_open {
        // A thread that got its room late has calls that were counted without.
        if !was_full && !are_full() && !may_be_none(kind, function) {
            headless(function);
        }
        return 0;
    }
    repeat(MOST_OPEN as u32, |_| {
        let is_inside = calls.top().is_some_and(|top| top.function() != function);
        if is_inside {
            drop_top(calls.0);
        }
        is_inside
    });
    calls.end_top(ts_ns);
    0
}

/// Ends the open calls of functions that have lost their probes since, and the calls inside them.
#[cold]
#[inline(never)]
pub fn revise(calls: *mut OpenCalls) -> u32 {
    let calls = Calls(calls);
    let Some(counting) = counting().filter(|_| counts_at(now())) else { return 0 };
    calls.set_changes(counting.changes);
    calls.keep(calls.depth());
    repeat(MOST_OPEN as u32, |nth| {
        if nth >= calls.depth() {
            return false;
        }
        let call = calls.call(nth);
        let Some(of) = of_function(call.function()) else { return true };
        // SAFETY: an element of a map, whose words user space writes whole.
        let is_seen = call.start() >= unsafe { (&raw const (*of).forsaken).read_volatile() };
        if !is_seen {
            calls.keep(nth);
        }
        is_seen
    });
    drop_the_rest(calls);
    0
}

/// Ends all calls but those to keep.
#[inline(always)]
fn drop_the_rest(calls: Calls) {
    repeat(MOST_OPEN as u32, |_| {
        let is_more = calls.depth() > calls.kept();
        if is_more {
            drop_top(calls.0);
        }
        is_more
    });
}

/// Ends all calls.
#[cold]
#[inline(never)]
fn give_up(calls: *mut OpenCalls) -> u32 {
    let calls = Calls(calls);
    calls.keep(0);
    drop_the_rest(calls);
    0
}

#[cold]
#[inline(never)]
pub fn end_thread(tid: u32) -> u32 {
    if let Some(calls) = OPEN_CALLS.get_ptr_mut(tid) {
        give_up(calls);
        let _ = OPEN_CALLS.remove(tid);
    }
    0
}

/// Hands the room of a goroutine over to a later one: its open calls have no end.
#[cold]
#[inline(never)]
pub fn hand_over(calls: *mut OpenCalls, owner: u32) -> u32 {
    give_up(calls);
    let calls = Calls(calls);
    calls.set_far(0);
    calls.set_owner(owner);
    0
}

/// Returns true if the innermost call goes on now: its end would have been seen, and the stack does not
/// show that it is over. Return probes see no end beyond the kernel's list of them.
#[inline(always)]
fn goes_on(calls: Calls, sp: u64) -> bool {
    let Some(top) = calls.top() else { return false };
    let facts = facts_of(top.function());
    let by_return = facts & ENDS_BY_RETURN != 0;
    let is_seen = !top.is_restored()
        && facts & ENDS_ARE_SEEN != 0
        && (!by_return || calls.depth() <= MOST_HIJACKED as u32);
    let is_inside = if sp == 0 { by_return } else { top.sp().wrapping_sub(sp) <= STACK_SIZE };
    is_seen && is_inside
}

#[cold]
#[inline(never)]
pub fn restored(tid: u32, sp: u64) -> u32 {
    let Some(calls) = OPEN_CALLS.get_ptr_mut(tid) else { return 0 };
    let calls = Calls(calls);
    revise_if_changed(calls);
    let now = now();
    if goes_on(calls, sp) && counts_at(now) {
        calls.set_last(now);
    }
    repeat(MOST_OPEN as u32, |nth| {
        let is_open = nth < calls.depth();
        if is_open {
            calls.call(nth).set_restored();
        }
        is_open
    });
    0
}
