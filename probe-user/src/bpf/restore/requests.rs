//! The requests of the programs: a ring of the kernel's own kind, and a state for each CPU.

use super::super::sys::Mapping;
use aya::maps::{Map, MapData, RingBuf};
use ctrace_common::{
    Hijacked, MAX_CPUS, MOST_HIJACKED, RESTORE_DONE, RESTORE_PHASES, RESTORE_WAITING,
    RestoreReason, RestoreRequest,
};
use std::{
    io,
    os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd},
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

    /// Returns each slot with the address that belongs there.
    pub(super) fn words(&self) -> Vec<(u64, u64)> {
        self.frames.iter().map(|frame| (frame.slot, frame.address)).collect()
    }
}

pub(super) struct Requests(RingBuf<MapData>);

impl Requests {
    pub(super) fn of(map: BorrowedFd<'_>) -> io::Result<Self> {
        let data = MapData::from_fd(map.try_clone_to_owned()?).map_err(io::Error::other)?;
        RingBuf::try_from(Map::RingBuf(data)).map(Self).map_err(io::Error::other)
    }

    pub(super) fn next(&mut self) -> Option<Request> {
        loop {
            let record = self.0.next()?;
            if let Some(request) = Request::from_wire(&record) {
                return Some(request);
            }
        }
    }
}

impl AsFd for Requests {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// The states of waiting threads, by CPU.
pub(super) struct States(Mapping);

// SAFETY: every access is to a whole aligned word, by atomic instructions.
unsafe impl Sync for States {}

impl States {
    pub(super) fn of(map: &OwnedFd) -> io::Result<Self> {
        Mapping::new(map.as_raw_fd(), MAX_CPUS * size_of::<u64>(), 0).map(Self)
    }

    /// Lets the thread of a request go on. Returns `false` if it does not wait any more, because it
    /// has stopped.
    pub(super) fn finish(&self, request: &Request) -> bool {
        let number = request.number & !RESTORE_PHASES;
        let state = self.state(request.cpu);
        let (waiting, done) = (number | RESTORE_WAITING, number | RESTORE_DONE);
        state.compare_exchange(waiting, done, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    fn state(&self, cpu: usize) -> &AtomicU64 {
        let words = self.0.address().cast::<AtomicU64>();
        // SAFETY: within the mapping, which is aligned to pages and lives as long as `self`.
        unsafe { &*words.add(cpu % MAX_CPUS) }
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

    #[test]
    fn other_records_are_none() {
        assert_eq!(Request::from_wire(&record(65)), None);
        assert_eq!(Request::from_wire(&record(1)[8..]), None);
        assert!(Request::from_wire(&record(64)).is_some());
    }
}
