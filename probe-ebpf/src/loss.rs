//! Records that found no room: counted per CPU, and noted for the thread they belong to.
//!
//! The thread's next delivered record says how many went missing just before it. An entry of
//! `MISSED` is only ever touched by its own thread, so the two steps need no lock.

use crate::{
    atomic::add,
    maps::{LOST, MISSED, PENDING},
};
use ctrace_common::{LOST_EVENTS, LOST_UNATTRIBUTED};

const BPF_NOEXIST: u64 = 1;

/// One event of thread `tid` is lost.
#[cold]
#[inline(never)]
pub fn note(tid: u32) -> u32 {
    count(LOST_EVENTS);
    if let Some(missed) = MISSED.get_ptr_mut(tid) {
        // SAFETY: the entry is this thread's alone.
        unsafe { *missed = (*missed).saturating_add(1) };
    } else if MISSED.insert(tid, 1, BPF_NOEXIST).is_ok() {
        PENDING.add(1);
    } else {
        count(LOST_UNATTRIBUTED);
    }
    0
}

/// How many events thread `tid` lost since its last delivered record; forgets them.
#[inline(always)]
pub fn take(tid: u32) -> u16 {
    if PENDING.get() == 0 { 0 } else { take_noted(tid) as u16 }
}

/// Forgets what is noted for a thread that ends without a record.
pub fn forget(tid: u32) {
    if PENDING.get() != 0 && take_noted(tid) != 0 {
        count(LOST_UNATTRIBUTED);
    }
}

#[cold]
#[inline(never)]
fn take_noted(tid: u32) -> u32 {
    let Some(missed) = MISSED.get_ptr(tid) else { return 0 };
    // SAFETY: the entry is this thread's alone.
    let missed = unsafe { *missed };
    if MISSED.remove(tid).is_ok() {
        PENDING.add(-1);
    }
    if missed > 0xffff { 0xffff } else { missed }
}

pub fn count(counter: u32) {
    if let Some(value) = LOST.get_ptr_mut(counter) {
        // SAFETY: an element of a map, aligned to 8. Atomic, because a program can be preempted by
        // another one on the same CPU.
        unsafe { add(value, 1) };
    }
}
