//! Delivers a thread's buffer at the end of the thread or of the process.
//!
//! The destructor of a thread-specific key of the C library runs at each thread's end, except at
//! the end of the process. The key is made early, when the program or library is loaded: glibc
//! keeps the values of the first 32 keys in the thread and allocates memory for later ones, which a
//! signal handler must not.

use super::{
    enter::{Local, local},
    flush, sys,
};
use core::ffi::{c_uint, c_void};
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// The key plus 1; 0 means none.
static KEY: AtomicU32 = AtomicU32::new(0);

/// Runs when the program or library is loaded.
pub(super) extern "C" fn loaded() {
    let mut key: c_uint = 0;
    // SAFETY: a place for the key, and a function that stays as long as the key: `unloaded` takes
    // the key away.
    if unsafe { sys::pthread_key_create(&raw mut key, Some(thread_ends)) } == 0 {
        KEY.store(key.wrapping_add(1), Relaxed);
    }
}

/// Runs when the process exits or the library is closed, on the thread that does it.
pub(super) extern "C" fn unloaded() {
    flush::end(this_thread());
    if let Some(key) = KEY.swap(0, Relaxed).checked_sub(1) {
        // SAFETY: a key that was made and is deleted once.
        unsafe { sys::pthread_key_delete(key) };
    }
}

unsafe extern "C" fn thread_ends(_: *mut c_void) {
    flush::end(this_thread());
}

/// Makes `end` run when this thread ends.
pub(super) fn watch(local: &Local) {
    if let Some(key) = KEY.load(Relaxed).checked_sub(1) {
        // SAFETY: a key that was made. The value is not used, but must not be null. Without memory
        // for it, the end of the thread goes unnoticed.
        unsafe { sys::pthread_setspecific(key, core::ptr::from_ref(local).cast()) };
    }
}

#[inline]
pub(super) fn this_thread<'a>() -> &'a Local {
    // SAFETY: `local` returns the address of this thread's variable; it is used on this thread only
    // and while the thread lives.
    unsafe { &*local() }
}
