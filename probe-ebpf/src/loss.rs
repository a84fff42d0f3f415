//! Records that found no room: counted per CPU, and noted for their thread.
//!
//! The thread's next delivered record has the number of events lost just before it. An entry of
//! `MISSED` is only touched by its own thread, so the two steps need no lock.

use crate::{
    atomic::add,
    maps::{LOST, MISSED, PENDING, PENDING_GOROUTINES},
};
use ctrace_common::{LOST_EVENTS, LOST_UNATTRIBUTED, is_goroutine};

const BPF_NOEXIST: u64 = 1;

/// The largest number that fits into a record's `lost_before`.
const MOST: u32 = u16::MAX as u32;

/// Goroutines that have an entry at a time. Nothing tells when one ends, so without a bound they would take
/// all the room of threads.
const MOST_GOROUTINES: u64 = 8_192;

/// Notes the loss of one event of thread `tid`.
#[cold]
#[inline(never)]
pub fn note(tid: u32) -> u32 {
    note_some(tid, 1)
}

/// Notes the loss of some events of thread `tid`.
#[inline(always)]
pub fn note_some(tid: u32, events: u32) -> u32 {
    add_to(LOST_EVENTS, events);
    if let Some(missed) = MISSED.get_ptr_mut(tid) {
        // SAFETY: the entry is this thread's alone.
        unsafe { *missed = (*missed).saturating_add(events) };
    } else if has_room(tid) && MISSED.insert(tid, events, BPF_NOEXIST).is_ok() {
        PENDING.add(1);
        if is_goroutine(tid) {
            PENDING_GOROUTINES.add(1);
        }
    } else {
        add_to(LOST_UNATTRIBUTED, events);
    }
    0
}

/// Returns whether an entry of this thread may be made.
#[inline(always)]
fn has_room(tid: u32) -> bool {
    !is_goroutine(tid) || PENDING_GOROUTINES.get() < MOST_GOROUTINES
}

/// Counts the loss of one event that is not the current thread's.
#[cold]
#[inline(never)]
pub fn note_of_another() -> u32 {
    add_to(LOST_EVENTS, 1);
    add_to(LOST_UNATTRIBUTED, 1);
    0
}

/// Removes and returns the number of events that thread `tid` lost since its last delivered record.
#[inline(always)]
pub fn take(tid: u32) -> u16 {
    if PENDING.get() == 0 { 0 } else { take_noted(tid) as u16 }
}

/// Forgets the losses of a thread that ends without a record.
pub fn forget(tid: u32) {
    if PENDING.get() != 0 {
        add_to(LOST_UNATTRIBUTED, take_all(tid));
    }
}

#[cold]
#[inline(never)]
fn take_noted(tid: u32) -> u32 {
    let missed = take_all(tid);
    if missed > MOST {
        add_to(LOST_UNATTRIBUTED, missed - MOST);
        return MOST;
    }
    missed
}

#[inline(always)]
fn take_all(tid: u32) -> u32 {
    let Some(missed) = MISSED.get_ptr(tid) else { return 0 };
    // SAFETY: the entry is this thread's alone.
    let missed = unsafe { *missed };
    if MISSED.remove(tid).is_ok() {
        PENDING.add(-1);
        if is_goroutine(tid) {
            PENDING_GOROUTINES.add(-1);
        }
    }
    missed
}

#[inline(always)]
pub fn add_to(counter: u32, events: u32) {
    if let Some(value) = LOST.get_ptr_mut(counter) {
        // SAFETY: an element of a map, aligned to 8. Atomic, because a program can be preempted by
        // another one on the same CPU.
        unsafe { add(value, events as i64) };
    }
}
