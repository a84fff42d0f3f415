//! The part-filled marker buffers of running threads, read from outside while they are written.
//!
//! Full buffers come through the rings. What a slow thread has written so far is fetched here, so
//! that reports are up to date and events of all tiers meet in time. A look reads the headers of all
//! buffers of a process with few calls; a buffer whose header has not changed since the last look is
//! left alone.

use super::{
    memory::Memory,
    readings::{Unreadable, headers, read_twice},
};
use ctrace_core::{
    marker::{BufferId, Header, Reading},
    units::{Nanos, Pid, Tid},
};
use std::collections::HashMap;

/// Buffers that are read together: while one is, nothing happens to the others' readings.
const AT_ONCE: usize = 64;

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
    /// Batch, position and whole calls at the last look.
    seen: Option<(u64, u32, u16)>,
    /// Since when the thread has it, until what it has written since then is handed on.
    since: Option<Nanos>,
    looked_at: bool,
    is_unreadable: bool,
}

/// The buffers of one process.
#[derive(Default)]
struct Process {
    memory: Option<Memory>,
    known: Vec<Known>,
}

/// All buffers that are known.
#[derive(Default)]
pub struct Buffers {
    processes: HashMap<Pid, Process>,
    /// When the last look began.
    looked: Nanos,
    /// When the last look began whose readings have been handed on.
    handed: Nanos,
}

impl Buffers {
    /// A thread has this buffer from a time on.
    pub fn add(&mut self, owned: OwnedBuffer, since: Nanos) {
        let known = &mut self.processes.entry(owned.id.pid).or_default().known;
        known.retain(|known| known.owned.id != owned.id);
        let since = Some(since);
        known.push(Known { owned, seen: None, since, looked_at: false, is_unreadable: false });
    }

    /// The thread has none any more: what it had was shipped.
    pub fn forget_thread(&mut self, pid: Pid, tid: Tid) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.known.retain(|known| known.owned.tid != tid);
        }
    }

    /// The process, or its memory, is gone.
    pub fn forget(&mut self, pid: Pid) {
        self.processes.remove(&pid);
    }

    /// What was read so far is being handed on.
    pub fn hand_on(&mut self) {
        self.handed = self.looked;
        let known = self.processes.values_mut().flat_map(|process| &mut process.known);
        for known in known.filter(|known| known.looked_at) {
            known.since = None;
        }
    }

    /// Up to when everything in the buffers has been handed on.
    pub fn handed_to(&self) -> Nanos {
        let known = self.processes.values().flat_map(|process| &process.known);
        known.map(|known| known.since.unwrap_or(self.handed)).min().unwrap_or(Nanos::MAX)
    }

    /// When the last look began.
    pub fn looked(&self) -> Nanos {
        self.looked
    }

    /// Reads every buffer that has changed since the last time, or all that hold anything.
    pub fn look(&mut self, now: Nanos, all: bool, mut each: impl FnMut(Reading)) {
        self.looked = now;
        for (pid, process) in &mut self.processes {
            process.look(*pid, all, &mut each);
        }
    }
}

impl Process {
    fn look(&mut self, pid: Pid, all: bool, each: &mut impl FnMut(Reading)) {
        if self.known.is_empty() {
            return;
        }
        let memory = match self.memory.take().map_or_else(|| Memory::open(pid), Ok) {
            Ok(memory) => memory,
            Err(error) => {
                tracing::debug!("memory of process {}: {error}", pid.0);
                self.known.clear();
                return;
            }
        };
        let mut changed = self.changed(&memory, all);
        for buffers in changed.chunks_mut(AT_ONCE) {
            let owned: Vec<_> = buffers.iter().map(|known| known.owned).collect();
            for (known, reading) in buffers.iter_mut().zip(read_twice(&memory, &owned)) {
                known.is_unreadable = reading == Err(Unreadable);
                let reading = reading.ok().flatten();
                if !reading.as_ref().is_some_and(Reading::is_whole) {
                    known.seen = None;
                }
                reading.into_iter().for_each(&mut *each);
            }
        }
        let before = self.known.len();
        self.known.retain(|known| !known.is_unreadable);
        // The memory of a program that is gone: the next one is opened anew.
        self.memory = (self.known.len() == before).then_some(memory);
    }

    /// Those that hold anything new, or with `all` anything.
    fn changed(&mut self, memory: &Memory, all: bool) -> Vec<&mut Known> {
        let headers = headers(memory, self.known.iter().map(|known| known.owned.id.address));
        let changed = self.known.iter_mut().zip(headers).filter_map(|(known, header)| {
            known.is_unreadable = header.is_none();
            known.looked_at |= header.is_some();
            // Wiped or scribbled over: it may be a buffer again.
            let header = Header::parse(&header?)?;
            let seen = known.seen.replace((header.batch, header.position, header.whole));
            (header.taken() > 0 && (all || seen != known.seen)).then_some(known)
        });
        changed.collect()
    }
}

#[cfg(test)]
#[path = "buffers_tests.rs"]
mod tests;
