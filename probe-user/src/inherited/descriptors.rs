//! Access to the files that a process was started with.

use std::{
    io,
    os::fd::{FromRawFd as _, OwnedFd, RawFd},
    sync::atomic::{AtomicBool, Ordering},
};

/// Set once the one descriptor for ctrace's child has an owner.
static IS_TAKEN: AtomicBool = AtomicBool::new(false);

/// Takes the file that this process was handed under a number, once. Numbers below 3 are the
/// standard streams.
pub(crate) fn take(number: RawFd) -> io::Result<OwnedFd> {
    let is_open = std::fs::symlink_metadata(format!("/proc/self/fd/{number}")).is_ok();
    if number < 3 || !is_open || IS_TAKEN.swap(true, Ordering::Relaxed) {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    // SAFETY: the descriptor is open, and nobody in this process opened it: it is taken before any
    // other file is opened. The flag above sees to one owner.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Closes all files but the standard streams in the next program.
pub(crate) fn close_on_exec() -> io::Result<()> {
    // SAFETY: it marks descriptors, and reads and writes no memory.
    let done =
        unsafe { libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
