//! The partly filled marker buffers of running threads, read from outside while they are written.
//!
//! Full buffers come through the rings. The events that a slow thread has written so far are
//! fetched here, so that reports are up to date and events of all tiers meet in time. A look reads
//! the headers of all buffers of a process with few calls. A buffer whose header has not changed
//! since the last look is left alone.

use super::{
    memory::Memory,
    readings::{Unreadable, headers, read_twice},
};
use crate::{
    bpf,
    target::process::patience::{self, GivenUp},
};
use ctrace_core::{
    marker::{BufferId, Header, Reading},
    units::{Nanos, Pid, Tid},
};
use std::{
    collections::{BTreeSet, HashMap},
    sync::Arc,
};

/// The number of buffers that are read together. All are read once, and then all again.
const AT_ONCE: usize = 64;
/// The limit of buffers per process: more than a process has threads.
const MOST: usize = 1 << 16;
/// The number of looks in a row that a process may leave unanswered. Reading memory that is swapped
/// out can exceed the time limit once.
const MOST_MISSES: u32 = 2;

/// A buffer and its thread.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OwnedBuffer {
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
    /// The time from which the thread has it, until the events written since then are handed on.
    since: Option<Nanos>,
    looked_at: bool,
    is_unreadable: bool,
}

/// The buffers of one process.
#[derive(Default)]
struct Process {
    memory: Option<Arc<Memory>>,
    /// Known buffers by address.
    known: HashMap<u64, Known>,
    of_threads: BTreeSet<(Tid, u64)>,
    has_too_many: bool,
    /// The number of looks in a row that it did not answer.
    misses: u32,
}

/// The reason why a process's events are not all read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unread {
    /// Its memory does not answer.
    Stuck,
    /// It names more buffers than it can have.
    TooMany,
}

/// All buffers that are known.
#[derive(Default)]
pub(crate) struct Buffers {
    processes: HashMap<Pid, Process>,
    /// The time at which the last look began.
    looked: Nanos,
    /// The time at which the last look began whose readings have been handed on.
    handed: Nanos,
    /// New reasons, each told only once.
    unread: Vec<(Pid, Unread)>,
    /// CPU time of the threads that read.
    spent: Nanos,
}

impl Buffers {
    /// Adds a buffer that the thread has from this time on.
    pub(crate) fn add(&mut self, owned: OwnedBuffer, since: Nanos) {
        let (pid, address) = (owned.id.pid, owned.id.address);
        let process = self.processes.entry(pid).or_default();
        process.forget(address);
        if process.known.len() >= MOST {
            if !std::mem::replace(&mut process.has_too_many, true) {
                self.unread.push((pid, Unread::TooMany));
            }
            return;
        }
        let since = Some(since);
        let known = Known { owned, seen: None, since, looked_at: false, is_unreadable: false };
        process.known.insert(address, known);
        process.of_threads.insert((owned.tid, address));
    }

    /// Forgets the buffers of a thread that has none any more: their contents were shipped.
    pub(crate) fn forget_thread(&mut self, pid: Pid, tid: Tid) {
        let Some(process) = self.processes.get_mut(&pid) else { return };
        let of_thread = process.of_threads.range((tid, 0)..=(tid, u64::MAX));
        let addresses: Vec<u64> = of_thread.map(|(_, address)| *address).collect();
        addresses.into_iter().for_each(|address| process.forget(address));
    }

    /// Forgets a process that is gone, or whose memory is.
    pub(crate) fn forget(&mut self, pid: Pid) {
        self.processes.remove(&pid);
    }

    /// Takes the processes whose buffers are not all read, since the last time.
    pub(crate) fn take_unread(&mut self) -> Vec<(Pid, Unread)> {
        std::mem::take(&mut self.unread)
    }

    /// Takes the CPU time that other threads used to read, since the last time.
    pub(crate) fn take_spent(&mut self) -> Nanos {
        std::mem::take(&mut self.spent)
    }

    /// Notes that all readings so far are being handed on.
    pub(crate) fn hand_on(&mut self) {
        self.handed = self.looked;
        let known = self.processes.values_mut().flat_map(|process| process.known.values_mut());
        for known in known.filter(|known| known.looked_at) {
            known.since = None;
        }
    }

    /// Returns the time up to which everything in the buffers has been handed on.
    pub(crate) fn handed_to(&self) -> Nanos {
        let waited_for = self.processes.values().filter(|process| !process.is_given_up());
        let known = waited_for.flat_map(|process| process.known.values());
        known.map(|known| known.since.unwrap_or(self.handed)).min().unwrap_or(Nanos::MAX)
    }

    /// Returns the time at which the last look began.
    pub(crate) fn looked(&self) -> Nanos {
        self.looked
    }

    /// Reads every buffer that has changed since the last look. The last look reads all that hold
    /// anything. A process that was given up is looked at again once it answers.
    pub(crate) fn look(&mut self, now: Nanos, last: bool, mut each: impl FnMut(Reading)) {
        self.looked = now;
        for (pid, process) in &mut self.processes {
            let was_given_up = process.is_given_up();
            if was_given_up && patience::is_stuck(*pid) {
                continue;
            }
            match process.look(*pid, last, &mut self.spent, &mut each) {
                Ok(()) => process.answered(),
                Err(GivenUp) => process.missed(self.handed, last),
            }
            if process.is_given_up() && !was_given_up {
                self.unread.push((*pid, Unread::Stuck));
            }
        }
    }
}

impl Process {
    fn is_given_up(&self) -> bool {
        self.misses >= MOST_MISSES
    }

    /// Notes an answer. Events from while it was given up are late: nothing waits for them.
    fn answered(&mut self) {
        if self.is_given_up() {
            self.known.values_mut().for_each(|known| known.since = None);
        }
        self.misses = 0;
    }

    /// Notes a missing answer. The contents of its buffers have been handed on up to `handed`; the
    /// rest is read at the next look, if there is one.
    fn missed(&mut self, handed: Nanos, last: bool) {
        self.misses = if last { MOST_MISSES } else { self.misses.saturating_add(1) };
        for known in self.known.values_mut() {
            known.since.get_or_insert(handed);
            (known.looked_at, known.seen) = (false, None);
        }
    }

    fn forget(&mut self, address: u64) {
        if let Some(known) = self.known.remove(&address) {
            self.of_threads.remove(&(known.owned.tid, address));
        }
    }

    fn look(
        &mut self,
        pid: Pid,
        all: bool,
        spent: &mut Nanos,
        each: &mut impl FnMut(Reading),
    ) -> Result<(), GivenUp> {
        if self.known.is_empty() {
            return Ok(());
        }
        let open = || patience::within(pid, move || Memory::open(pid).map(Arc::new));
        let memory = match self.memory.take().map_or_else(open, |memory| Ok(Ok(memory)))? {
            Ok(memory) => memory,
            Err(error) => {
                tracing::debug!("memory of process {}: {error}", pid.0);
                (self.known, self.of_threads) = Default::default();
                return Ok(());
            }
        };
        let mut changed = self.changed(pid, &memory, all, spent)?;
        for buffers in changed.chunks_mut(AT_ONCE) {
            let owned: Vec<_> = buffers.iter().map(|known| known.owned).collect();
            let memory = Arc::clone(&memory);
            let readings = timed(pid, spent, move || read_twice(&memory, &owned))?;
            for (known, reading) in buffers.iter_mut().zip(readings) {
                known.is_unreadable = reading == Err(Unreadable);
                let reading = reading.ok().flatten();
                if !reading.as_ref().is_some_and(Reading::is_whole) {
                    known.seen = None;
                }
                reading.into_iter().for_each(&mut *each);
            }
        }
        let unreadable = self.known.values().filter(|known| known.is_unreadable);
        let unreadable: Vec<u64> = unreadable.map(|known| known.owned.id.address).collect();
        // If any is unreadable, this may be the memory of a program that is gone: open it anew.
        self.memory = unreadable.is_empty().then_some(memory);
        unreadable.into_iter().for_each(|address| self.forget(address));
        Ok(())
    }

    /// Returns the buffers that hold anything new, or with `all` anything.
    fn changed(
        &mut self,
        pid: Pid,
        memory: &Arc<Memory>,
        all: bool,
        spent: &mut Nanos,
    ) -> Result<Vec<&mut Known>, GivenUp> {
        let (addresses, memory): (Vec<u64>, _) =
            (self.known.keys().copied().collect(), Arc::clone(memory));
        let headers = timed(pid, spent, move || headers(&memory, &addresses))?;
        let changed = self.known.values_mut().zip(headers).filter_map(|(known, header)| {
            known.is_unreadable = header.is_none();
            known.looked_at |= header.is_some();
            // A buffer that is wiped or overwritten may become a buffer again.
            let header = Header::parse(&header?)?;
            let seen = known.seen.replace((header.batch, header.position, header.whole));
            (header.taken() > 0 && (all || seen != known.seen)).then_some(known)
        });
        Ok(changed.collect())
    }
}

/// Does the work in another thread, within limits, and adds the CPU time that it used.
fn timed<T: Send + 'static>(
    pid: Pid,
    spent: &mut Nanos,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, GivenUp> {
    let (result, took) = patience::within(pid, move || {
        let before = bpf::own_time();
        let result = work();
        (result, bpf::own_time().since(before))
    })?;
    *spent = spent.saturating_add(took);
    Ok(result)
}

#[cfg(test)]
#[path = "buffers_tests.rs"]
mod tests;
