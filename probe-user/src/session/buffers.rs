//! The part-filled marker buffers of running threads, read from outside while they are written.
//!
//! Full buffers come through the rings. What a slow thread has written so far is fetched here, so
//! that reports are up to date and events of all tiers meet in time. A buffer whose header has not
//! changed since the last look is left alone. How a reading stays whole is in
//! `docs/marker-format.md`.

use crate::bpf;
use ctrace_core::{
    marker::{BUFFER_LEN, BufferId, Header, Reading},
    units::{Nanos, Pid, Tid},
};
use std::{
    collections::{HashMap, HashSet, hash_map::Entry},
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

    /// As many bytes as the result holds. Nothing is left of a process that is gone.
    pub fn read<const N: usize>(&self, address: u64) -> Option<Box<[u8; N]>> {
        let mut bytes = Box::new([0; N]);
        self.0.read_exact_at(&mut bytes[..], address).ok()?;
        Some(bytes)
    }

    fn header(&self, address: u64) -> Option<Header> {
        Header::parse(&self.read::<HEADER_LEN>(address)?[..])
    }
}

/// A buffer and its thread.
#[derive(Clone, Copy, Debug)]
pub struct OwnedBuffer {
    pub id: BufferId,
    pub tid: Tid,
    /// The thread's id in its own pid namespace, as the buffer has it.
    pub inside: u32,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    owned: OwnedBuffer,
    /// Batch and position at the last look.
    seen: Option<(u64, u32)>,
    /// Since when the thread has it, until what it has written since then is handed on.
    since: Option<Nanos>,
    looked_at: bool,
}

/// All buffers that are known.
#[derive(Default)]
pub struct Buffers {
    memories: HashMap<Pid, Memory>,
    known: Vec<Known>,
    /// When the last look began.
    looked: Nanos,
    /// When the last look began whose readings have been handed on.
    handed: Nanos,
}

impl Buffers {
    /// A thread has this buffer from a time on.
    pub fn add(&mut self, owned: OwnedBuffer, since: Nanos) {
        self.known.retain(|known| known.owned.id != owned.id);
        self.known.push(Known { owned, seen: None, since: Some(since), looked_at: false });
    }

    /// The thread has none any more: what it had was shipped.
    pub fn forget_thread(&mut self, pid: Pid, tid: Tid) {
        self.known.retain(|Known { owned, .. }| (owned.id.pid, owned.tid) != (pid, tid));
    }

    /// The process, or its memory, is gone.
    pub fn forget(&mut self, pid: Pid) {
        self.memories.remove(&pid);
        self.known.retain(|known| known.owned.id.pid != pid);
    }

    /// What was read so far is being handed on.
    pub fn hand_on(&mut self) {
        self.handed = self.looked;
        for known in self.known.iter_mut().filter(|known| known.looked_at) {
            known.since = None;
        }
    }

    /// Up to when everything in the buffers has been handed on.
    pub fn handed_to(&self) -> Nanos {
        let to = self.known.iter().map(|known| known.since.unwrap_or(self.handed));
        to.min().unwrap_or(Nanos::MAX)
    }

    /// When the last look began.
    pub fn looked(&self) -> Nanos {
        self.looked
    }

    /// Reads every buffer that has changed since the last time, or all that hold anything.
    pub fn look(&mut self, now: Nanos, all: bool, mut each: impl FnMut(Reading)) {
        self.looked = now;
        let memories = &mut self.memories;
        let mut unreadable = HashSet::new();
        self.known.retain_mut(|known| {
            let id = known.owned.id;
            let memory = match memories.entry(id.pid) {
                Entry::Occupied(entry) => entry.into_mut(),
                Entry::Vacant(entry) => match Memory::open(id.pid) {
                    Ok(memory) => entry.insert(memory),
                    Err(error) => {
                        tracing::debug!("memory of process {}: {error}", id.pid.0);
                        return false;
                    }
                },
            };
            let Some(header) = memory.read::<HEADER_LEN>(id.address) else {
                unreadable.insert(id.pid);
                return false;
            };
            known.looked_at = true;
            // Wiped or scribbled over: it may be a buffer again.
            let Some(header) = Header::parse(&header[..]) else { return true };
            let now = Some((header.batch, header.position));
            if header.taken() > 0 && (all || now != known.seen) {
                let reading = read_twice(memory, known.owned);
                known.seen = now.filter(|_| reading.as_ref().is_some_and(Reading::is_whole));
                reading.into_iter().for_each(&mut each);
            }
            true
        });
        // The memory of a program that is gone: the next one is opened anew.
        memories.retain(|pid, _| !unreadable.contains(pid));
    }
}

/// Two readings of one batch while one thread had the buffer, or nothing: if it was emptied
/// meanwhile, its events come through a ring.
fn read_twice(memory: &Memory, owned: OwnedBuffer) -> Option<Reading> {
    let address = owned.id.address;
    let before = memory.read::<BUFFER_LEN>(address)?;
    let time = bpf::now();
    let bytes = memory.read::<BUFFER_LEN>(address)?;
    // The copy itself may have been interrupted: its header is of before.
    let headers =
        [Header::parse(&before[..])?, Header::parse(&bytes[..])?, memory.header(address)?];
    let is_same = |header: &Header| {
        header.batch == headers[0].batch && header.tid == owned.inside && !header.is_flushing
    };
    headers.iter().all(is_same).then_some(Reading {
        buffer: owned.id,
        tid: owned.tid,
        time,
        bytes,
        passed: None,
        before: Some(before),
    })
}

/// The buffers of a list, from the word at `head` on. A list that lies ends where it comes back to
/// itself, or at a bound.
pub fn walk(memory: &Memory, head: u64, mut each: impl FnMut(u64, Box<[u8; BUFFER_LEN]>, Header)) {
    /// More threads than a process has.
    const MOST: usize = 1 << 16;
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
