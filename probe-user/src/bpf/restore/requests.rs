//! The requests of the programs: a ring of the kernel's own kind, and a state for each CPU.

use super::super::sys::Mapping;
use aya::maps::{Map, MapData, RingBuf};
use ctrace_common::{
    Hijacked, MAX_CPUS, MOST_HIJACKED, RESTORE_CONTINUES, RESTORE_DONE, RESTORE_PHASES,
    RESTORE_WAITING, RESTORE_WORDS, RestoreReason, RestoreRequest,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::{
    collections::{BTreeSet, VecDeque},
    fs::File,
    io,
    os::{
        fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd},
        unix::fs::FileExt as _,
    },
    sync::atomic::{AtomicU64, Ordering},
};

/// The hijacked frames of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) number: u64,
    pub(super) trampoline: u64,
    pub(super) pid: u32,
    pub(super) tid: u32,
    cpu: usize,
    pub(super) is_listed: bool,
    pub(super) frames: Vec<Hijacked>,
}

impl Request {
    /// Reads a record. The programs write no others than this accepts.
    fn from_wire(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != size_of::<RestoreRequest>() {
            return None;
        }
        let (words, _) = bytes.as_chunks();
        let mut words = words.iter().map(|word| u64::from_le_bytes(*word));
        let mut next = || words.next();
        let (number, trampoline, ids, place, count) = (next()?, next()?, next()?, next()?, next()?);
        let count = usize::try_from(count).ok().filter(|count| *count <= MOST_HIJACKED)?;
        let mut frames = Vec::with_capacity(count);
        for _ in 0..count {
            frames.push(Hijacked { slot: next()?, address: next()?, probe: next()? });
        }
        Some(Self {
            number,
            trampoline,
            pid: ids as u32,
            tid: (ids >> 32) as u32,
            cpu: place as u32 as usize,
            is_listed: (place >> 32) as u32 == RestoreReason::Listed as u32,
            frames,
        })
    }

    /// Restores the frames in the memory of their process. Only slots that hold the trampoline's
    /// address are written.
    pub(super) fn restore(&self, memory: &File) {
        for (slot, address) in self.words() {
            let mut word = [0; 8];
            // The process may have been killed.
            if memory.read_exact_at(&mut word, slot).is_ok()
                && u64::from_le_bytes(word) == self.trampoline
            {
                let _ = memory.write_all_at(&address.to_le_bytes(), slot);
            }
        }
    }

    /// Returns each slot with the address that belongs there. A slot that two frames had at
    /// different times holds that of the inner.
    pub(super) fn words(&self) -> Vec<(u64, u64)> {
        let mut done = BTreeSet::new();
        let inner = self.frames.iter().filter(|frame| done.insert(frame.slot));
        inner.map(|frame| (frame.slot, frame.address)).collect()
    }
}

pub(super) struct Requests {
    ring: RingBuf<MapData>,
    /// Those that were looked at before their turn.
    seen: VecDeque<Request>,
}

impl Requests {
    pub(super) fn of(map: BorrowedFd<'_>) -> io::Result<Self> {
        let data = MapData::from_fd(map.try_clone_to_owned()?).map_err(io::Error::other)?;
        let ring = RingBuf::try_from(Map::RingBuf(data)).map_err(io::Error::other)?;
        Ok(Self { ring, seen: VecDeque::new() })
    }

    pub(super) fn next(&mut self) -> Option<Request> {
        self.seen.pop_front().or_else(|| self.read())
    }

    /// Takes the requests of a process before their turn.
    pub(super) fn take_of(&mut self, pid: u32) -> Vec<Request> {
        while let Some(request) = self.read() {
            self.seen.push_back(request);
        }
        let (its, others) =
            self.seen.drain(..).partition(|request| request.pid == pid && !request.is_listed);
        self.seen = others;
        Vec::from(its)
    }

    /// Returns whether nothing is in the ring, not even a record that is being written.
    pub(super) fn are_all_read(&self) -> bool {
        let mut ring = [PollFd::new(self, PollFlags::IN)];
        poll(&mut ring, Some(&Timespec::default())).is_ok_and(|ready| ready == 0)
    }

    fn read(&mut self) -> Option<Request> {
        loop {
            let record = self.ring.next()?;
            if let Some(request) = Request::from_wire(&record) {
                return Some(request);
            }
        }
    }
}

impl AsFd for Requests {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ring.as_fd()
    }
}

/// The states of waiting threads, by CPU.
pub(super) struct States(Mapping);

// SAFETY: every access is to a whole aligned word, by atomic instructions.
unsafe impl Sync for States {}

impl States {
    pub(super) fn of(map: &OwnedFd) -> io::Result<Self> {
        Mapping::new(map.as_raw_fd(), RESTORE_WORDS * size_of::<u64>(), 0).map(Self)
    }

    /// Returns whether the thread of a request still waits in the program.
    pub(super) fn is_waiting(&self, request: &Request) -> bool {
        let waiting = request.number & !RESTORE_PHASES | RESTORE_WAITING;
        self.word(request.cpu % MAX_CPUS).load(Ordering::Acquire) == waiting
    }

    /// Lets the thread of a request go on. Returns `false` if it does not wait any more, because it
    /// has stopped.
    pub(super) fn finish(&self, request: &Request) -> bool {
        let number = request.number & !RESTORE_PHASES;
        let state = self.word(request.cpu % MAX_CPUS);
        let (waiting, done) = (number | RESTORE_WAITING, number | RESTORE_DONE);
        state.compare_exchange(waiting, done, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    /// Lets no thread stop until the result is dropped.
    pub(super) fn continues(&self) -> Continues<'_> {
        let word = self.word(RESTORE_CONTINUES);
        word.store(1, Ordering::SeqCst);
        Continues(word)
    }

    fn word(&self, index: usize) -> &AtomicU64 {
        assert!(index < RESTORE_WORDS);
        let words = self.0.address().cast::<AtomicU64>();
        // SAFETY: within the mapping, which is aligned to pages and lives as long as `self`.
        unsafe { &*words.add(index) }
    }
}

/// The moment in which a process is continued.
pub(super) struct Continues<'a>(&'a AtomicU64);

impl Drop for Continues<'_> {
    fn drop(&mut self) {
        self.0.store(0, Ordering::SeqCst);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(count: u64) -> Vec<u8> {
        let mut words = vec![40, 0x7fff_0000, 7 << 32 | 6, u64::from(4_u32) << 32 | 3, count];
        words.extend((0..3 * MOST_HIJACKED as u64).map(|n| 100 + n));
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn a_record_is_read_as_it_is_laid_out() {
        let request = Request::from_wire(&record(2)).unwrap();
        let frame = |n| Hijacked { slot: n, address: n + 1, probe: n + 2 };
        let expected = Request {
            number: 40,
            trampoline: 0x7fff_0000,
            pid: 6,
            tid: 7,
            cpu: 3,
            is_listed: true,
            frames: vec![frame(100), frame(103)],
        };
        assert_eq!(request, expected);
        assert_eq!(request.words(), [(100, 101), (103, 104)]);
    }

    /// Of two frames in one slot the inner one counts; a slot with another word stays.
    #[test]
    fn only_hijacked_slots_are_written() {
        let file = tempfile::tempfile().unwrap();
        for (slot, word) in [(8_u64, 0x7fff_0000_u64), (16, 55), (24, 0x7fff_0000)] {
            file.write_all_at(&word.to_le_bytes(), slot).unwrap();
        }
        let frame = |slot, address| Hijacked { slot, address, probe: 1 };
        let frames = vec![frame(8, 81), frame(16, 161), frame(24, 241), frame(24, 242)];
        let request = Request { frames, ..Request::from_wire(&record(0)).unwrap() };
        request.restore(&file);
        let mut words = [0; 24];
        file.read_exact_at(&mut words, 8).unwrap();
        let words = words.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        assert_eq!(words.collect::<Vec<_>>(), [81, 55, 241]);
    }

    #[test]
    fn other_records_are_none() {
        assert_eq!(Request::from_wire(&record(65)), None);
        assert_eq!(Request::from_wire(&record(1)[8..]), None);
        assert!(Request::from_wire(&record(64)).is_some());
    }
}
