//! Entries and ends that are not plain, each in a function of its own: the short way stays short, and
//! the verifier follows the loops less often.

use super::{
    calls::Calls,
    counting,
    counts::{headless, of_function, unplaced},
    counts_at,
};
use crate::{maps::OPEN_CALLS, output::now};
use ctrace_common::{
    ENTRY_IS_LOOP_HEAD, FAR_AWAY, MOST_OPEN, OpenCalls, STACK_SIZE, TAIL_CALLS_NEST,
};

/// Returns true if an event is on another stack than the innermost call.
#[inline(always)]
fn is_far(calls: Calls, sp: u64) -> bool {
    calls.top().is_some_and(|top| top.sp().abs_diff(sp) > STACK_SIZE)
}

#[inline(never)]
fn drop_top(calls: *mut OpenCalls) -> u32 {
    Calls(calls).drop_top();
    0
}

/// Ends the calls that this stack pointer proves to be over.
#[inline(always)]
fn bury(calls: Calls, sp: u64) {
    for _ in 0..MOST_OPEN {
        match calls.top() {
            Some(top) if top.sp() < sp => drop_top(calls.0),
            _ => break,
        };
    }
}

#[inline(always)]
fn facts_of(function: u32) -> u64 {
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
        // An own stack for it would be found here.
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
        return false;
    }
    if facts & TAIL_CALLS_NEST == 0 || top.is_restored() {
        // It cannot have jumped here, so its end was not seen.
        bury(calls, sp.saturating_add(1));
    }
    true
}

/// Leaves a function that is not the innermost one.
#[cold]
#[inline(never)]
pub fn leave(calls: *mut OpenCalls, function: u32, sp: u64, ts_ns: u64, may_be_none: u32) -> u32 {
    let calls = Calls(calls);
    if is_far(calls, sp) {
        return 0;
    }
    // A call beyond the depth has been counted already.
    let was_full = calls.depth() >= MOST_OPEN as u32;
    bury(calls, sp);
    let mut over = 0;
    let mut is_open = false;
    for _ in 0..MOST_OPEN {
        if over >= calls.depth() {
            break;
        }
        let call = calls.call(calls.depth().wrapping_sub(1).wrapping_sub(over));
        if call.sp() != sp {
            break;
        }
        if call.function() == function {
            is_open = true;
            break;
        }
        over += 1;
    }
    if !is_open {
        if may_be_none == 0 && !was_full {
            headless(function);
        }
        return 0;
    }
    for nth in 0..MOST_OPEN as u32 {
        if nth >= over {
            break;
        }
        drop_top(calls.0);
    }
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
    let mut kept = 0;
    for _ in 0..MOST_OPEN {
        if kept >= calls.depth() {
            return 0;
        }
        let call = calls.call(kept);
        let Some(of) = of_function(call.function()) else { break };
        // SAFETY: an element of a map, whose words user space writes whole.
        if call.start() < unsafe { (&raw const (*of).forsaken).read_volatile() } {
            break;
        }
        kept += 1;
    }
    drop_all_but(calls, kept);
    0
}

#[inline(always)]
fn drop_all_but(calls: Calls, kept: u32) {
    for _ in 0..MOST_OPEN {
        if calls.depth() <= kept {
            break;
        }
        drop_top(calls.0);
    }
}

#[cold]
#[inline(never)]
pub fn end_thread(tid: u32) -> u32 {
    if let Some(calls) = OPEN_CALLS.get_ptr_mut(tid) {
        drop_all_but(Calls(calls), 0);
        let _ = OPEN_CALLS.remove(tid);
    }
    0
}

#[cold]
#[inline(never)]
pub fn restored(tid: u32) -> u32 {
    let Some(calls) = OPEN_CALLS.get_ptr_mut(tid) else { return 0 };
    let calls = Calls(calls);
    for nth in 0..MOST_OPEN as u32 {
        if nth >= calls.depth() {
            break;
        }
        calls.call(nth).set_restored();
    }
    0
}
