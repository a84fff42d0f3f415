//! Atomic addition: the instruction exists on every kernel, `core` just does not offer it for a
//! target without compare-and-swap.

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
    pub fn add(&self, delta: i64) {
        // SAFETY: a static.
        unsafe { add(self.0.get(), delta) }
    }
}
