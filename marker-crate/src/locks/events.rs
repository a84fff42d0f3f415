//! The markers of locks. Each is in one function, so that ctrace sees each once.
//!
//! `ctrace_core::locks` knows them by their names.

use crate::Guard;

/// Functions that write a point, and return whether it is on.
macro_rules! points {
    ($($name:literal: $function:ident;)*) => {$(
        #[inline(always)]
        pub(super) fn $function(lock: u64) -> bool {
            crate::__lock_event!($name, lock)
        }
    )*};
}
points! {
    "mutex lock": mutex_locked;
    "mutex unlock": mutex_unlocked;
    "mutex refused": mutex_refused;
    "rwlock read lock": rwlock_read;
    "rwlock write lock": rwlock_written;
    "rwlock unlock": rwlock_unlocked;
    "rwlock refused": rwlock_refused;
}

/// Functions that begin a scope around a wait, which ends with the lock taken. A wait for a condition begins
/// with its release.
macro_rules! waits {
    ($($name:literal: $function:ident;)*) => {$(
        #[inline(always)]
        pub(super) fn $function(lock: u64) -> Guard {
            crate::scope!($name, lock = lock, group = "locks")
        }
    )*};
}
waits! {
    "mutex wait": mutex_waits;
    "condition wait": mutex_awaits;
    "rwlock read wait": rwlock_waits_to_read;
    "rwlock write wait": rwlock_waits_to_write;
}

#[inline(always)]
pub(super) fn name(lock: u64, name: &str) {
    crate::__lock_name!(lock, name);
}
