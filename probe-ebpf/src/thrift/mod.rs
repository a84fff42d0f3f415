//! Leaves out calls that are deeper (`--depth`) or shorter (`--min-duration`) than asked for: they make no
//! events.
//!
//! User space leaves them out as well, so nothing depends on this but the cost. A call is left out only
//! where user space would do so. Where that is not certain, there is an event.
//!
//! - The stack pointers of the thread's open calls prove that a call is too deep. The limit counts only
//!   calls with different stack pointers, so it is never reached earlier than in user space.
//! - The entry of a call is held until the call has lasted long enough, or until another event of the
//!   thread has to be delivered. A call that ends before that, by an end of its own, was short.
//!
//! Where functions lose their probes, the calls of all threads are given up: which of them are over is known
//! to user space alone.
//!
//! A loop may lead back to the entry of its function: then the probe there is hit once a round, and only user space
//! tells the rounds of a call from each other. Such calls make events however deep they are.
//!
//! A call that was too deep may have an end all the same, where the ways out are probed or the kernel has
//! no session links. That end is left out if no call that made events can be meant.

mod calls;
pub mod counts;

use crate::{
    aggregate::counts_at,
    maps::KEPT_CALLS,
    output::{Task, now},
    settings,
};
use calls::{Call, Calls};
use ctrace_common::{MOST_KEPT, STACK_SIZE};

/// What is done at an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    Deliver,
    /// It may be delivered later.
    Hold,
    /// The call makes no events.
    LeaveOut,
}

#[inline(always)]
pub fn is_thrifty() -> bool {
    settings::MOST_NESTED.load() != 0 || holds()
}

/// Returns true if short calls are left out.
#[inline(always)]
fn holds() -> bool {
    settings::SHORTEST_EVENTS.load() != 0
}

/// Enters a function. `is_wanted`: the entry has to be delivered, unless the call is left out.
#[inline(always)]
pub fn enter(task: Task, function: u32, sp: u64, is_wanted: bool) -> Entry {
    let time = now();
    // User space does not know of calls that began before the start.
    if !counts_at(time) {
        return Entry::Deliver;
    }
    let Some(calls) = Calls::of(task, time) else { return Entry::Deliver };
    if calls.are_outdated() {
        note_change(calls);
        calls::give_up(calls.0, task.tid);
        note_change(calls);
    }
    let mut is_plain = true;
    if let Some(top) = calls.top() {
        let below = top.sp().wrapping_sub(sp);
        is_plain = below != 0 && below <= STACK_SIZE;
    }
    let may_be_deep = counts::has_count(function);
    if is_plain && is_too_deep(calls) && may_be_deep {
        return leave_out(calls, function);
    }
    let call = Begun { tid: task.tid, function, sp, time, is_wanted, is_plain, may_be_deep };
    note_change(calls);
    let entry = begin(calls, call);
    note_change(calls);
    entry
}

/// A call that has just begun.
#[derive(Clone, Copy)]
struct Begun {
    tid: u32,
    function: u32,
    sp: u64,
    time: u64,
    is_wanted: bool,
    /// It is inside the innermost open call.
    is_plain: bool,
    may_be_deep: bool,
}

#[inline(always)]
fn begin(calls: Calls, call: Begun) -> Entry {
    let Begun { tid, function, sp, time, is_wanted, is_plain, may_be_deep } = call;
    let depth = calls.depth();
    let has_room = depth < MOST_KEPT as u32;
    // The end of what a call jumps to is its own end, too.
    let is_wanted = is_wanted || calls.has_jumped_at(sp);
    let is_held = holds() && is_plain && has_room && !is_wanted && !is_too_deep(calls);
    if holds() && (!is_held || calls.is_overdue(time)) {
        calls::deliver(calls.0, tid);
    }
    if !is_plain {
        calls::replace(calls.0, sp);
        if is_too_deep(calls) && may_be_deep {
            return leave_out(calls, function);
        }
    } else if !has_room {
        return Entry::Deliver;
    }
    if is_too_deep(calls) {
        return Entry::Deliver;
    }
    calls.push(function, sp, time);
    if is_held {
        return Entry::Hold;
    }
    calls.all_are_delivered();
    Entry::Deliver
}

/// Shows those who read the entries that are held that something is about to change, or has changed.
#[inline(always)]
fn note_change(calls: Calls) {
    if holds() {
        calls.note_change();
    }
}

/// Returns true if a call inside those that are open is too deep. Nothing tells that of a thread that may have
/// several stacks beside each other: calls on one look as if they were inside those on the other.
#[inline(always)]
fn is_too_deep(calls: Calls) -> bool {
    let limit = settings::MOST_NESTED.load();
    limit != 0 && calls.depth() >= limit && !calls.may_have_stacks()
}

#[inline(always)]
fn leave_out(calls: Calls, function: u32) -> Entry {
    counts::too_deep(function);
    if let Some(top) = calls.top() {
        counts::inside(top.function());
    }
    Entry::LeaveOut
}

/// Leaves a function. Returns false if its end is left out. `is_jump`: the call may go on behind a jump.
#[inline(always)]
pub fn leave(tid: u32, function: u32, sp: u64, time: u64, is_jump: bool) -> bool {
    let Some(calls) = KEPT_CALLS.get_ptr_mut(tid).map(Calls) else { return true };
    note_change(calls);
    let is_delivered = end(calls, Ended { tid, function, sp, time, is_jump });
    note_change(calls);
    is_delivered
}

/// A call that has just ended, or made a jump.
#[derive(Clone, Copy)]
struct Ended {
    tid: u32,
    function: u32,
    sp: u64,
    time: u64,
    is_jump: bool,
}

#[inline(always)]
fn end(calls: Calls, Ended { tid, function, sp, time, is_jump }: Ended) -> bool {
    if calls.are_outdated() {
        calls::give_up(calls.0, tid);
    }
    let Some(top) = calls.top() else { return true };
    let is_own = top.sp() == sp && (!holds() || top.function() == function);
    if holds() && is_own && !is_jump && calls.holds_top() && is_short(top, time) {
        let duration = time.wrapping_sub(top.start());
        if counts::short(function, duration) {
            calls.pop();
            return false;
        }
    }
    let is_below = top.sp() != sp && top.sp().wrapping_sub(sp) <= STACK_SIZE;
    let is_too_deep = is_below && is_too_deep(calls) && !calls.is_doubtful();
    if is_too_deep && counts::has_count(function) {
        counts::end(function);
        return false;
    }
    if holds() {
        calls::deliver(calls.0, tid);
        calls.note_jump(if is_jump { sp } else { 0 });
    }
    if is_own {
        calls.pop();
    } else if !is_below {
        calls::replace(calls.0, sp);
    }
    calls.all_are_delivered();
    true
}

/// Returns true if a call that ends at this time is short, and no reader can have taken it for one that goes
/// on. A reader takes those that are long by then, and those that are open when nothing counts any more. One
/// that came before the change was noted did so before `now`.
#[inline(always)]
fn is_short(call: Call, time: u64) -> bool {
    let shortest = settings::SHORTEST_EVENTS.load();
    if time.wrapping_sub(call.start()) >= shortest {
        return false;
    }
    let now = now();
    now.wrapping_sub(call.start()) < shortest && counts_at(now)
}

/// Delivers the entries that are held of a thread: its next event must not come before them.
#[inline(always)]
pub fn deliver_held(tid: u32) {
    if holds()
        && let Some(calls) = KEPT_CALLS.get_ptr_mut(tid).map(Calls)
    {
        note_change(calls);
        calls::deliver(calls.0, tid);
        note_change(calls);
    }
}

/// Forgets a thread that is gone.
#[inline(always)]
pub fn end_thread(tid: u32) {
    if is_thrifty() {
        deliver_held(tid);
        let _ = KEPT_CALLS.remove(tid);
    }
}
