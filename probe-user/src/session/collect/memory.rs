//! Reads the memory of a traced process from outside.
//!
//! There are two ways. The file /proc/PID/mem stays with the memory it was opened on: after an exec
//! it reads nothing. process_vm_readv(2) reads many pieces with one call, but from the memory that
//! the process has at that time. It also fails where the call is forbidden, or if the process's
//! first thread has ended. So many pieces are read by the call, or by the file if the call fails. A
//! caller that must know that all pieces are of one program reads the file once more.

use crate::bpf::{self, Piece};
use ctrace_core::{
    marker::{BUFFER_LEN, Header},
    units::Pid,
};
use std::{collections::HashSet, fs::File, os::unix::fs::FileExt as _};

/// The memory of one process, as it is now: an exec gives it another.
pub(crate) struct Memory {
    pid: Pid,
    file: File,
}

impl Memory {
    pub(crate) fn open(pid: Pid) -> std::io::Result<Self> {
        Ok(Self { pid, file: File::open(format!("/proc/{}/mem", pid.0))? })
    }

    /// Reads as many bytes as the result holds. Fails if the process is gone.
    pub(crate) fn read<const N: usize>(&self, address: u64) -> Option<Box<[u8; N]>> {
        let mut bytes = Box::new([0; N]);
        self.file.read_exact_at(&mut bytes[..], address).ok()?;
        Some(bytes)
    }

    /// Reads the pieces in order. They may be of a program that the process has executed since.
    pub(crate) fn read_pieces(&self, pieces: &mut [Piece<'_>]) {
        let Err(error) = bpf::read_pieces(self.pid, pieces) else { return };
        tracing::trace!("process_vm_readv of process {}: {error}", self.pid.0);
        for piece in pieces {
            piece.is_read = self.file.read_exact_at(piece.bytes, piece.address).is_ok();
        }
    }
}

/// Visits the buffers of a list, from the word at `head` on, except those in `seen`. A forged list
/// ends where it returns to an earlier buffer, or at a limit.
pub(crate) fn walk(
    memory: &Memory,
    head: u64,
    seen: &mut HashSet<u64>,
    mut each: impl FnMut(u64, Box<[u8; BUFFER_LEN]>, Header),
) {
    /// More than a process has threads.
    const MOST: usize = 1 << 16;
    let mut next = memory.read::<8>(head).map_or(0, |word| u64::from_le_bytes(*word));
    while next != 0 && seen.len() < MOST && seen.insert(next) {
        let Some(bytes) = memory.read::<BUFFER_LEN>(next) else { break };
        let Some(header) = Header::parse(&bytes[..]) else { break };
        let address = next;
        next = header.next;
        each(address, bytes, header);
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
pub(super) mod tests;
