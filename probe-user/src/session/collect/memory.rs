//! The memory of a traced process, read from outside.
//!
//! There are two ways in. The file /proc/PID/mem stays with the memory it was opened on: after an exec
//! it reads nothing. process_vm_readv(2) reads many pieces with one call, but of whatever memory the
//! process has by then, and not where that call is forbidden, or where the process's first thread has
//! ended. So many pieces are read by the call, or by the file where it fails; and who must know that
//! all of it was of one program reads the file once more.

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

    /// As many bytes as the result holds. Nothing is left of a process that is gone.
    pub(crate) fn read<const N: usize>(&self, address: u64) -> Option<Box<[u8; N]>> {
        let mut bytes = Box::new([0; N]);
        self.file.read_exact_at(&mut bytes[..], address).ok()?;
        Some(bytes)
    }

    /// In the order of the pieces. They may be of a program that the process has executed since.
    pub(crate) fn read_pieces(&self, pieces: &mut [Piece<'_>]) {
        let Err(error) = bpf::read_pieces(self.pid, pieces) else { return };
        tracing::trace!("process_vm_readv of process {}: {error}", self.pid.0);
        for piece in pieces {
            piece.is_read = self.file.read_exact_at(piece.bytes, piece.address).is_ok();
        }
    }
}

/// The buffers of lists, from the word at `head` on, but for those that were `seen`. A list that lies
/// ends where it comes back to itself, or at a bound.
pub(crate) fn walk(
    memory: &Memory,
    head: u64,
    seen: &mut HashSet<u64>,
    mut each: impl FnMut(u64, Box<[u8; BUFFER_LEN]>, Header),
) {
    /// More threads than a process has.
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
