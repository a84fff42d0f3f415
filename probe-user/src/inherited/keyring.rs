//! Leaves the session keyring, which gives its holder the keys in it, whatever the user id.

use std::io;

/// The "session keyring" of keyctl(2).
const SESSION: libc::c_long = libc::KEY_SPEC_SESSION_KEYRING as libc::c_long;

/// Replaces the session keyring that this process was started with by an empty one. On a kernel
/// without keys there is none to leave.
pub(crate) fn join_a_new_session() -> io::Result<()> {
    let joined = keyctl(libc::KEYCTL_JOIN_SESSION_KEYRING, 0);
    joined.or_else(|error| match error.raw_os_error() {
        Some(libc::ENOSYS) => Ok(()),
        // A filter of system calls, as in containers, stops the command's keyctl as well.
        Some(libc::EPERM) if is_filtered() => Ok(()),
        _ => Err(error),
    })
}

/// Detects such a filter: the kernel never refuses the number of one's own keyring.
fn is_filtered() -> bool {
    let number = keyctl(libc::KEYCTL_GET_KEYRING_ID, SESSION);
    number.is_err_and(|error| error.raw_os_error() == Some(libc::EPERM))
}

fn keyctl(operation: u32, argument: libc::c_long) -> io::Result<()> {
    // SAFETY: the argument is a number, or the null pointer that stands for "no name".
    let done = unsafe { libc::syscall(libc::SYS_keyctl, operation as libc::c_long, argument, 0) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
