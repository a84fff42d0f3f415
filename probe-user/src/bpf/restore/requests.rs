//! The requests of the programs, in a ring of the kernel's own kind, and lists of frames that user
//! space asks for.

use super::{super::sys, settler::Stopping};
use aya::maps::{Map, MapData, RingBuf};
use ctrace_common::{Hijacked, MOST_HIJACKED, RestoreReason, RestoreRequest};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs::File,
    io,
    os::{
        fd::{AsFd, BorrowedFd},
        unix::fs::FileExt as _,
    },
    thread::sleep,
    time::Duration,
};

/// Looks for the answer of each try to list the frames of a thread.
const LOOKS: u32 = 10;
/// Shorter than a thread waits for its request to be served.
const PAUSE: Duration = Duration::from_millis(1);

/// The hijacked frames of a thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FramesRequest {
    pub(super) number: u64,
    pub(super) trampoline: u64,
    pub(super) pid: u32,
    pub(super) tid: u32,
    pub(super) cpu: usize,
    pub(super) reason: RestoreReason,
    pub(super) frames: Vec<Hijacked>,
}

impl FramesRequest {
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
            reason: RestoreReason::from_wire((place >> 32) as u32)?,
            frames,
        })
    }

    /// Returns the list of a thread without hijacked frames.
    fn of_none(tid: u32) -> Self {
        Self {
            number: 0,
            trampoline: 0,
            pid: 0,
            tid,
            cpu: 0,
            reason: RestoreReason::Listed,
            frames: Vec::new(),
        }
    }

    /// Restores the frames in the memory of their process. Only slots that hold the trampoline's
    /// address are written. Returns the number of those that could not be.
    pub(super) fn restore(&self, memory: &File) -> usize {
        let is_left = |(slot, address): &(u64, u64)| {
            memory.write_all_at(&address.to_le_bytes(), *slot).is_err()
        };
        self.hijacked(memory).iter().filter(|word| is_left(word)).count()
    }

    /// Returns each slot that holds the trampoline's address, with the address that belongs there.
    pub(super) fn hijacked(&self, memory: &File) -> Vec<(u64, u64)> {
        let mut words = self.words();
        words.retain(|(slot, _)| {
            let mut word = [0; 8];
            // The process may have been killed, and a stack may be gone.
            memory.read_exact_at(&mut word, *slot).is_ok()
                && u64::from_le_bytes(word) == self.trampoline
        });
        words
    }

    /// Returns each slot with the address that belongs there. A slot that two frames had at
    /// different times holds that of the inner.
    fn words(&self) -> Vec<(u64, u64)> {
        let mut done = BTreeSet::new();
        let inner = self.frames.iter().filter(|frame| done.insert(frame.slot));
        inner.map(|frame| (frame.slot, frame.address)).collect()
    }
}

pub(super) struct Requests {
    ring: RingBuf<MapData>,
    /// Those that were looked at before their turn.
    seen: VecDeque<FramesRequest>,
    /// The processes that threads have stopped, or are about to.
    pub(super) stopped: BTreeMap<u32, Stopping>,
}

impl Requests {
    pub(super) fn of(map: BorrowedFd<'_>) -> io::Result<Self> {
        let data = MapData::from_fd(map.try_clone_to_owned()?).map_err(io::Error::other)?;
        let ring = RingBuf::try_from(Map::RingBuf(data)).map_err(io::Error::other)?;
        Ok(Self { ring, seen: VecDeque::new(), stopped: BTreeMap::new() })
    }

    pub(super) fn next(&mut self) -> Option<FramesRequest> {
        self.seen.pop_front().or_else(|| self.read())
    }

    /// Returns whether some were read before their turn.
    pub(super) fn has_seen_some(&self) -> bool {
        !self.seen.is_empty()
    }

    /// Returns whether no request of a process waits for its turn, not even one that is being
    /// written. Those of others keep their turn.
    pub(super) fn are_none_of(&mut self, pid: u32) -> bool {
        while let Some(request) = self.read() {
            self.seen.push_back(request);
        }
        let mut ring = [PollFd::new(&*self, PollFlags::IN)];
        let ready = poll(&mut ring, Some(&Timespec::default()));
        ready.is_ok_and(|ready| ready == 0) && self.seen.iter().all(|seen| seen.pid != pid)
    }

    /// Lists the hijacked frames of a thread. Requests of others keep their turn. Returns `None` if
    /// its frames are unknown.
    pub(super) fn list(
        &mut self,
        lister: BorrowedFd<'_>,
        tid: u32,
        tries: u32,
    ) -> Option<FramesRequest> {
        for _ in 0..tries {
            match sys::visit_thread(lister, tid) {
                Ok(()) => {}
                Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {
                    return Some(FramesRequest::of_none(tid));
                }
                // Errors of memory or of a signal pass.
                Err(_) => {
                    sleep(PAUSE);
                    continue;
                }
            }
            // Another CPU's record may lie before the answer and not be complete yet. In a full
            // ring there was no room for the answer.
            for _ in 0..LOOKS {
                while let Some(request) = self.read() {
                    if request.reason == RestoreReason::Listed && request.tid == tid {
                        return Some(request);
                    }
                    self.seen.push_back(request);
                }
                sleep(PAUSE);
            }
        }
        None
    }

    fn read(&mut self) -> Option<FramesRequest> {
        loop {
            let record = self.ring.next()?;
            if let Some(request) = FramesRequest::from_wire(&record) {
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
        let request = FramesRequest::from_wire(&record(2)).unwrap();
        let frame = |n| Hijacked { slot: n, address: n + 1, probe: n + 2 };
        let expected = FramesRequest {
            number: 40,
            trampoline: 0x7fff_0000,
            pid: 6,
            tid: 7,
            cpu: 3,
            reason: RestoreReason::Listed,
            frames: vec![frame(100), frame(103)],
        };
        assert_eq!(request, expected);
        assert_eq!(request.words(), [(100, 101), (103, 104)]);
    }

    /// The inner one of two frames in one slot counts; a slot with another word stays.
    #[test]
    fn only_hijacked_slots_are_written() {
        let file = tempfile::tempfile().unwrap();
        for (slot, word) in [(8_u64, 0x7fff_0000_u64), (16, 55), (24, 0x7fff_0000)] {
            file.write_all_at(&word.to_le_bytes(), slot).unwrap();
        }
        let frame = |slot, address| Hijacked { slot, address, probe: 1 };
        let frames = vec![frame(8, 81), frame(16, 161), frame(24, 241), frame(24, 242)];
        let request = FramesRequest { frames, ..FramesRequest::from_wire(&record(0)).unwrap() };
        assert_eq!(request.restore(&file), 0);
        let mut words = [0; 24];
        file.read_exact_at(&mut words, 8).unwrap();
        let words = words.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        assert_eq!(words.collect::<Vec<_>>(), [81, 55, 241]);
    }

    #[test]
    fn slots_that_cannot_be_written_are_counted() {
        let file = tempfile::NamedTempFile::new().unwrap();
        file.as_file().write_all_at(&0x7fff_0000_u64.to_le_bytes(), 8).unwrap();
        let frames = [8, 64].map(|slot| Hijacked { slot, address: 81, probe: 1 }).to_vec();
        let request = FramesRequest { frames, ..FramesRequest::from_wire(&record(0)).unwrap() };
        assert_eq!(request.restore(&File::open(file.path()).unwrap()), 1);
    }

    #[test]
    fn other_records_are_none() {
        assert_eq!(FramesRequest::from_wire(&record(65)), None);
        assert_eq!(FramesRequest::from_wire(&record(1)[8..]), None);
        assert!(FramesRequest::from_wire(&record(64)).is_some());
    }
}
