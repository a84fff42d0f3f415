//! Keeps the heap of a program with many threads small. glibc gives each thread a heap, and free
//! memory in one stays while something behind it is in use.

/// Makes all threads share a heap. For programs whose threads mostly sleep.
pub(crate) fn use_one_arena() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it sets a parameter of the allocator.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}

/// Returns free memory to the kernel, after something large.
pub(crate) fn give_back() {
    #[cfg(target_env = "gnu")]
    // SAFETY: it takes a number of bytes to keep.
    unsafe {
        libc::malloc_trim(0);
    }
}
