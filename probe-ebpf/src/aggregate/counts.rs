//! Adds calls to the counts of their paths. CPUs may share counts, and a program can preempt another one,
//! so every sum changes by one atomic instruction.

use crate::{
    atomic::{add, count, raise},
    maps::{COUNTED_FUNCTIONS, PATH_COUNTS, UNCOUNTED_CALLS},
    settings,
};
use aya_ebpf::helpers::bpf_get_smp_processor_id;
use core::arch::asm;
use ctrace_common::{
    CountedFunction, FIRST_BUCKETS, FULL_PATH, LONGEST, OWN_NS, PATHS_FULL, SHORTEST, SQUARES_HIGH,
    SQUARES_LOW, TIMED, TIMED_NS, UNTIMED, UNTIMED_NS, bucket_of,
};

/// Longer durations count as this one in the sum of squares: 78 hours.
const LONGEST_SQUARED: u64 = (1 << 48) - 1;

#[inline(always)]
fn words_of(path: u32) -> Option<*mut u64> {
    // SAFETY: a helper without arguments.
    let first = settings::first_counts(unsafe { bpf_get_smp_processor_id() });
    Some(PATH_COUNTS.get_ptr_mut(first.wrapping_add(path))?.cast())
}

/// Counts a call whose end was seen.
#[inline(always)]
pub fn timed(path: u32, duration: u64, own: u64) {
    let Some(words) = words_of(path) else { return };
    // SAFETY: words and buckets of the element. The instruction bounds the bucket for the verifier.
    unsafe {
        add(words.add(TIMED), 1);
        add(words.add(TIMED_NS), duration as i64);
        add(words.add(OWN_NS), own as i64);
        if duration >> 32 == 0 {
            let square = duration * duration;
            add(words.add(SQUARES_LOW), (square & u32::MAX as u64) as i64);
            if square >> 32 != 0 {
                add(words.add(SQUARES_HIGH), (square >> 32) as i64);
            }
        } else {
            let root = duration.min(LONGEST_SQUARED) >> 16;
            add(words.add(SQUARES_HIGH), (root * root) as i64);
        }
        raise(words.add(LONGEST), duration);
        raise(words.add(SHORTEST), !duration);
        let mut bucket = bucket_of(duration) as u64;
        asm!("{0} &= 1023", inout(reg) bucket, options(nomem, nostack));
        if bucket < ctrace_common::BUCKETS as u64 {
            count(words.add(FIRST_BUCKETS).cast::<u32>().add(bucket as usize));
        }
    }
}

/// Counts a call whose end was not seen. It was seen to last this long.
#[inline(always)]
pub fn untimed(path: u32, function: u32, lasted: u64, own: u64) {
    if path == FULL_PATH {
        unplaced(function, PATHS_FULL);
        return;
    }
    let Some(words) = words_of(path) else { return };
    // SAFETY: words of the element.
    unsafe {
        add(words.add(UNTIMED), 1);
        add(words.add(UNTIMED_NS), lasted as i64);
        add(words.add(OWN_NS), own as i64);
    }
}

/// Counts a call that was shorter than asked for.
#[inline(always)]
pub fn short(function: u32) {
    if let Some(counted) = of_function(function) {
        // SAFETY: a word of the element.
        unsafe { add(&raw mut (*counted).short, 1) };
    }
}

/// Counts a call of which nothing else is known, as something had no room for it.
#[cold]
#[inline(never)]
pub fn unplaced(function: u32, why: u32) -> u32 {
    if let Some(counted) = of_function(function) {
        // SAFETY: a word of the element.
        unsafe { add(&raw mut (*counted).unplaced, 1) };
    }
    uncounted(why);
    0
}

/// Counts the end of a call that began unseen.
#[cold]
#[inline(never)]
pub fn headless(function: u32) -> u32 {
    if let Some(counted) = of_function(function) {
        // SAFETY: a word of the element.
        unsafe { add(&raw mut (*counted).headless, 1) };
    }
    0
}

#[inline(always)]
pub fn of_function(function: u32) -> Option<*mut CountedFunction> {
    COUNTED_FUNCTIONS.get_ptr_mut(function)
}

#[inline(always)]
pub fn uncounted(counter: u32) {
    if let Some(value) = UNCOUNTED_CALLS.get_ptr_mut(counter) {
        // SAFETY: an element of a map, aligned to 8.
        unsafe { add(value, 1) };
    }
}
