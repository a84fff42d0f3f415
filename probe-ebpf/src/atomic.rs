//! Atomic instructions, which `core` does not offer for this target. All kernels know the addition;
//! what returns the old value needs 5.12.

use core::{arch::asm, cell::UnsafeCell};

/// Adds `delta` to `*counter`.
///
/// # Safety
/// `counter` points to a global or to an element of a map, aligned to 8.
#[inline(always)]
pub unsafe fn add(counter: *mut u64, delta: i64) {
    // SAFETY: one instruction on memory the caller vouches for.
    unsafe {
        asm!(
            "lock *(u64 *)({counter} + 0) += {delta}",
            counter = in(reg) counter,
            delta = in(reg) delta,
            options(nostack),
        );
    }
}

/// Adds 1 to `*counter`.
///
/// # Safety
/// `counter` points to an element of a map, aligned to 4.
#[inline(always)]
pub unsafe fn count(counter: *mut u32) {
    // SAFETY: one instruction on memory the caller vouches for.
    unsafe {
        asm!(
            "lock *(u32 *)({counter} + 0) += {one}",
            counter = in(reg) counter,
            one = in(reg) 1_u64,
            options(nostack),
        );
    }
}

/// Raises `*word` to `least`, if it is smaller.
///
/// # Safety
/// `word` points to an element of a map, aligned to 8.
#[inline(always)]
pub unsafe fn raise(word: *mut u64, least: u64) {
    /// Others that raise it at the same moment are few: each of them leaves less to raise.
    const TRIES: u32 = 8;
    for _ in 0..TRIES {
        // SAFETY: an aligned word is read in one piece, and changed by one instruction.
        unsafe {
            let old = word.read_volatile();
            if old >= least || exchange(word, old, least) {
                return;
            }
        }
    }
}

/// Adds 1 to `*counter` and returns what was there before.
///
/// # Safety
/// `counter` points to a global, aligned to 8.
#[inline(always)]
unsafe fn take(counter: *mut u64) -> u64 {
    let mut value = 1_u64;
    // SAFETY: one instruction on memory the caller vouches for.
    unsafe {
        asm!(
            "{value} = atomic_fetch_add((u64 *)({counter} + 0), {value})",
            counter = in(reg) counter,
            value = inout(reg) value,
            options(nostack),
        );
    }
    value
}

/// Sets `*word` to `new` if it is `old`. Returns true if it was.
///
/// # Safety
/// `word` points to a global or to an element of a map, aligned to 8.
#[inline(always)]
pub unsafe fn exchange(word: *mut u64, old: u64, new: u64) -> bool {
    let found: u64;
    // SAFETY: one instruction on memory the caller vouches for.
    unsafe {
        asm!(
            "r0 = cmpxchg_64({word} + 0, r0, {new})",
            word = in(reg) word,
            new = in(reg) new,
            inlateout("r0") old => found,
            options(nostack),
        );
    }
    found == old
}

/// A global counter that all CPUs change.
pub struct Counter(UnsafeCell<u64>);

// SAFETY: it is only read as one word and changed by one atomic instruction.
unsafe impl Sync for Counter {}

impl Counter {
    pub const fn new() -> Self {
        Self(UnsafeCell::new(0))
    }

    #[inline(always)]
    pub fn get(&self) -> u64 {
        // SAFETY: a static; an aligned word is read in one piece.
        unsafe { self.0.get().read_volatile() }
    }

    #[inline(always)]
    pub fn set(&self, value: u64) {
        // SAFETY: a static; an aligned word is written in one piece.
        unsafe { self.0.get().write_volatile(value) }
    }

    /// Adds 1 and returns the number before, if that is below `limit`.
    #[inline(always)]
    pub fn take_below(&self, limit: u64) -> Option<u64> {
        if self.get() >= limit {
            return None;
        }
        // SAFETY: a static.
        let taken = unsafe { take(self.0.get()) };
        (taken < limit).then_some(taken)
    }

    #[inline(always)]
    pub fn add(&self, delta: i64) {
        // SAFETY: a static.
        unsafe { add(self.0.get(), delta) }
    }
}
