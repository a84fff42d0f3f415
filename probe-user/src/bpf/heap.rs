//! Keeps the heap of a program with many threads small: glibc gives each its own, and what was free
//! in one is not given back while something behind it is in use.

/// All threads share a heap from now on. For programs whose threads mostly sleep.
pub(crate) fn use_one_arena() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it sets a parameter of the allocator.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Gives what is free back to the kernel, after something large.
pub(crate) fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes a number of bytes to keep.
    unsafe {
        libc::malloc_trim(0);
    }
}
