//! process_vm_readv(2) and process_vm_writev(2): many pieces of another process's memory with one
//! call.

use super::Syscall;
use std::{
    ffi::c_void,
    io::{self, IoSlice, IoSliceMut},
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

/// Writes each word to its address. Returns the number of words that were written: the kernel stops
/// at the first that it cannot write. If that is the very first, there is an error.
pub(crate) fn write_process(pid: u32, words: &[(u64, u64)]) -> io::Result<usize> {
    let bytes: Vec<_> = words.iter().map(|(_, word)| word.to_le_bytes()).collect();
    let local: Vec<_> = bytes.iter().map(|bytes| IoSlice::new(bytes)).collect();
    let remote: Vec<_> = words
        .iter()
        .map(|(address, _)| libc::iovec { iov_base: *address as *mut c_void, iov_len: 8 })
        .collect();
    Ok(Syscall::WriteProcess { pid, local: &local, remote: &remote }.run()? / 8)
}
