//! The part-filled marker buffers of running threads, read from outside while they are written.
//!
//! Full buffers come through the rings. What a slow thread has written so far is fetched here, so
//! that reports are up to date and events of all tiers meet in time. A buffer whose header has not
//! changed since the last look is left alone. How a reading stays whole is in
//! `docs/marker-format.md`.

use crate::bpf;
use ctrace_core::{
    marker::{BUFFER_LEN, BufferId, Header, Reading},
    units::{Pid, Tid},
};
use std::{
    collections::{HashMap, HashSet},
    fs::File,
    os::unix::fs::FileExt as _,
};

/// Bytes of a header.
const HEADER_LEN: usize = 64;

/// The memory of one process, as it is now: an exec gives it another.
pub struct Memory(File);

impl Memory {
    pub fn open(pid: Pid) -> std::io::Result<Self> {
        File::open(format!("/proc/{}/mem", pid.0)).map(Self)
    }

    /// As many bytes as `bytes` holds. Nothing is left of a process that is gone.
    pub fn read<const N: usize>(&self, address: u64) -> Option<Box<[u8; N]>> {
        let mut bytes = Box::new([0; N]);
        self.0.read_exact_at(&mut bytes[..], address).ok()?;
        Some(bytes)
    }
}

#[derive(Clone, Copy, Debug)]
struct Known {
    id: BufferId,
    tid: Tid,
    /// Batch and position at the last look.
    seen: Option<(u64, u32)>,
}

/// All buffers that are known.
#[derive(Default)]
pub struct Buffers {
    memories: HashMap<Pid, Memory>,
    known: Vec<Known>,
}

impl Buffers {
    /// A thread has this buffer from now on.
    pub fn add(&mut self, id: BufferId, tid: Tid) {
        self.known.retain(|known| known.id != id);
        self.known.push(Known { id, tid, seen: None });
    }

    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The thread has none any more: what it had was shipped.
    pub fn forget_thread(&mut self, pid: Pid, tid: Tid) {
        self.known.retain(|known| (known.id.pid, known.tid) != (pid, tid));
    }

    /// The process, or its memory, is gone.
    pub fn forget(&mut self, pid: Pid) {
        self.memories.remove(&pid);
        self.known.retain(|known| known.id.pid != pid);
    }

    /// Reads every buffer that has changed since the last time.
    pub fn read(&mut self, mut each: impl FnMut(Reading)) {
        let memories = &mut self.memories;
        self.known.retain_mut(|known| {
            let memory = match memories.entry(known.id.pid) {
                std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::hash_map::Entry::Vacant(entry) => {
                    match Memory::open(known.id.pid) {
                        Ok(memory) => entry.insert(memory),
                        Err(_) => return false,
                    }
                }
            };
            let Some(header) = memory.read::<HEADER_LEN>(known.id.address) else { return false };
            // Wiped or scribbled over: it may be a buffer again.
            let Some(header) = Header::parse(&header[..]) else { return true };
            let now = Some((header.batch, header.position));
            if now == known.seen {
                return true;
            }
            known.seen = now;
            if let Some(reading) = read_twice(memory, known) {
                each(reading);
            }
            true
        });
    }
}

/// Two readings of one batch, or nothing: if it was emptied in between, its events come through a
/// ring.
fn read_twice(memory: &Memory, known: &Known) -> Option<Reading> {
    let before = memory.read::<BUFFER_LEN>(known.id.address)?;
    let time = bpf::now();
    let bytes = memory.read::<BUFFER_LEN>(known.id.address)?;
    let batch = |bytes: &[u8]| {
        Header::parse(bytes).filter(|header| !header.is_flushing).map(|header| header.batch)
    };
    let batches = (batch(&before[..])?, batch(&bytes[..])?);
    (batches.0 == batches.1).then_some(Reading {
        buffer: known.id,
        tid: known.tid,
        bytes,
        time,
        passed: None,
        before: Some(before),
    })
}

/// The buffers of a list, from the word at `head` on. A list that lies ends where it comes back to
/// itself, or at a bound.
pub fn walk(memory: &Memory, head: u64, mut each: impl FnMut(u64, Box<[u8; BUFFER_LEN]>, Header)) {
    const MOST: usize = 1 << 20;
    let mut seen = HashSet::new();
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
#[path = "buffers_tests.rs"]
mod tests;
