//! process_vm_readv(2): many pieces of another process's memory with one
//! call.

use super::Syscall;
use std::{
    ffi::c_void,
    io::{self, IoSliceMut},
};

/// The most pieces of one call: the kernel's `UIO_MAXIOV`.
pub(crate) const MOST_PIECES: usize = 1024;

/// Reads bytes from each address into its slice. Returns the total: the kernel stops at the first
/// piece that it cannot read. If that is the very first, there is an error.
pub(crate) fn read_process(
    pid: u32,
    addresses: impl Iterator<Item = u64>,
    local: &mut [IoSliceMut<'_>],
) -> io::Result<usize> {
    let pieces = addresses.zip(local.iter());
    let remote: Vec<_> = pieces
        .map(|(address, to)| libc::iovec { iov_base: address as *mut c_void, iov_len: to.len() })
        .collect();
    assert_eq!(remote.len(), local.len());
    Syscall::ReadProcess { pid, local, remote: &remote }.run()
}
