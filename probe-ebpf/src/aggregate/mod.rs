//! Counts calls where they end, without an event of each.
//!
//! A thread has a stack of its open calls. The rules are those of user space for events: the stack
//! pointer of an event proves that all calls below it are over, and a call whose end was not seen has
//! no duration. Plain entries and ends, which nearly all are, take the short way; `rare` has the others.

mod calls;
mod counts;
mod deep;
mod paths;
mod rare;
pub mod values;

use crate::{
    maps::{COUNTING, OPEN_CALLS},
    output::{Task, Who, now},
    settings,
};
use calls::{Calls, begin};
use ctrace_common::{Counting, Kind, STACK_SIZE, THREADS_FULL};

/// Returns when calls count.
#[inline(always)]
pub fn counting() -> Option<&'static Counting> {
    COUNTING.get(0)
}

#[inline(always)]
pub fn counts_at(ts_ns: u64) -> bool {
    counting().is_some_and(|counting| counting.start <= ts_ns && ts_ns <= counting.end)
}

/// Who calls: a thread, or a goroutine in its place.
#[derive(Clone, Copy)]
pub struct Caller {
    /// The key in `OPEN_CALLS`.
    key: u32,
    /// Other goroutines have the same key, one after the other, but not this number.
    owner: u32,
    is_goroutine: bool,
}

impl Caller {
    #[inline(always)]
    pub fn thread(task: Task) -> Self {
        Self { key: task.tid, owner: task.tid, is_goroutine: false }
    }

    /// Returns the caller in a function of Go.
    #[inline(always)]
    pub fn in_go(who: Who) -> Self {
        Self { key: who.key, owner: who.task.tid, is_goroutine: true }
    }
}

impl Caller {
    /// Returns the room of its calls.
    #[inline(always)]
    fn calls(self) -> Option<Calls> {
        OPEN_CALLS.get_ptr_mut(self.key).map(Calls)
    }

    /// Ends the calls of an earlier goroutine that had the room, and returns true if there was one.
    #[inline(always)]
    fn takes_over(self, calls: Calls) -> bool {
        let takes = self.is_goroutine && calls.owner() != self.owner;
        if takes {
            rare::hand_over(calls.0, self.owner);
        }
        takes
    }
}

/// Ends the calls that have lost their probes.
#[inline(always)]
fn revise_if_changed(calls: Calls) {
    if counting().is_some_and(|counting| counting.changes != calls.changes()) {
        rare::revise(calls.0);
    }
}

/// Returns true if a call inside so many open ones is deeper than asked for.
#[inline(always)]
fn is_too_deep(depth: u32) -> bool {
    let limit = settings::MOST_NESTED.load();
    limit != 0 && depth >= limit
}

/// Enters a function. Returns false if the call is left out, and so is its end. `value` returns the number of
/// the value by which its calls are counted apart. It is asked for calls that are opened only: others must not
/// use up numbers.
#[inline(always)]
pub fn enter(caller: Caller, function: u32, value: impl Fn() -> u32, sp: u64) -> bool {
    let calls = match caller.calls() {
        Some(calls) => {
            caller.takes_over(calls);
            revise_if_changed(calls);
            calls
        }
        None => {
            let ts_ns = now();
            if !counts_at(ts_ns) {
                return true;
            }
            let Some(calls) = begin(caller, ts_ns) else {
                counts::unplaced(function, THREADS_FULL);
                return true;
            };
            calls
        }
    };
    if let Some(top) = calls.top() {
        let below = top.sp().wrapping_sub(sp);
        if (below == 0 || below > STACK_SIZE) && !rare::may_enter(calls.0, function, sp) {
            return true;
        }
    }
    if is_too_deep(calls.depth()) {
        return deep::enter(calls.0, function, sp);
    }
    calls.push(function, value(), sp);
    true
}

/// Leaves a function at this time. The calls that it proves to be over have lasted until the event before.
#[inline(always)]
pub fn leave(caller: Caller, function: u32, kind: Kind, sp: u64, ts_ns: u64) {
    if !counts_at(ts_ns) {
        return;
    }
    let Some(calls) = caller.calls().filter(|calls| !caller.takes_over(*calls)) else {
        rare::leave_unseen(function, kind as u32);
        return;
    };
    revise_if_changed(calls);
    match calls.top() {
        Some(top) if top.sp() == sp && top.function() == function => calls.end_top(ts_ns),
        _ => {
            rare::leave(calls.0, function, sp, ts_ns, kind as u32);
        }
    }
    calls.set_last(ts_ns);
}

/// Gives up the room of a goroutine without open calls: nothing tells when one ends.
#[inline(always)]
pub fn forget_idle(tid: u32) {
    if OPEN_CALLS.get_ptr_mut(tid).is_some_and(|calls| Calls(calls).depth() == 0) {
        let _ = OPEN_CALLS.remove(tid);
    }
}

/// Ends the open calls of a thread that is gone.
#[inline(always)]
pub fn end_thread(tid: u32) {
    if settings::AGGREGATES.load() != 0 && counts_at(now()) {
        rare::end_thread(tid);
    }
}

/// Notes that no return probe sees the thread's open calls end. `sp` is its stack pointer, or 0.
#[inline(always)]
pub fn restored(tid: u32, sp: u64) {
    if settings::AGGREGATES.load() != 0 {
        rare::restored(tid, sp);
    }
}
