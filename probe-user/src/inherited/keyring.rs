//! The session keyring, which gives whoever has it the keys in it, whatever the user id.

use std::io;

/// What keyctl(2) calls "the session keyring".
const SESSION: libc::c_long = libc::KEY_SPEC_SESSION_KEYRING as libc::c_long;

/// Leaves the session keyring that this process was started with for an empty one. A kernel without keys
/// has nothing to leave.
pub(crate) fn join_a_new_session() -> io::Result<()> {
    let joined = keyctl(libc::KEYCTL_JOIN_SESSION_KEYRING, 0);
    joined.or_else(|error| match error.raw_os_error() {
        Some(libc::ENOSYS) => Ok(()),
        // A filter of system calls, as in a container, keeps them from the command as well.
        Some(libc::EPERM) if is_filtered() => Ok(()),
        _ => Err(error),
    })
}

/// The kernel itself refuses nobody the number of their keyring in this way.
fn is_filtered() -> bool {
    let number = keyctl(libc::KEYCTL_GET_KEYRING_ID, SESSION);
    number.is_err_and(|error| error.raw_os_error() == Some(libc::EPERM))
}

fn keyctl(operation: u32, argument: libc::c_long) -> io::Result<()> {
    // SAFETY: the argument is a number, or the null pointer that stands for "no name".
    let done = unsafe { libc::syscall(libc::SYS_keyctl, operation as libc::c_long, argument, 0) };
    if done < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
