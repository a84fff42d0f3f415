//! The rings through which records come: one per CPU, read without a system call.
//!
//! Layout and protocol are the kernel's (`kernel/bpf/ringbuf.c`): a page with the reader's
//! position, a page with the writer's, then the data mapped twice in a row, so that no record is
//! ever split. A record is a header of eight bytes (length with two flags, page) and its data,
//! padded to eight.

use super::{
    BpfError,
    sys::{self, Mapping},
};
use std::{
    os::fd::{AsFd as _, AsRawFd as _, OwnedFd},
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
};

const HEADER: usize = 8;
/// The record is reserved but not written yet.
const BUSY: u32 = 1 << 31;
/// The record was given up.
const DISCARDED: u32 = 1 << 30;

/// What one round over the rings found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    pub records: usize,
    /// Rings that hold more behind a record that is still being written.
    pub blocked_rings: usize,
}

/// All rings, for the one thread that reads them.
pub struct Rings {
    rings: Vec<Ring>,
}

impl Rings {
    pub(super) fn map(fds: Vec<Arc<OwnedFd>>, bytes: u32) -> Result<Self, BpfError> {
        let rings = fds.into_iter().map(|fd| Ring::map(fd, bytes as usize));
        Ok(Self { rings: rings.collect::<Result<_, _>>()? })
    }

    /// How many rings there are; `drain` numbers them from 0.
    pub fn len(&self) -> usize {
        self.rings.len()
    }

    pub fn is_empty(&self) -> bool {
        self.rings.is_empty()
    }

    /// Hands over every record that was there when its ring's turn came. In one ring, records lie
    /// in the order of their reservation.
    pub fn drain(&mut self, mut each: impl FnMut(usize, &[u8])) -> Drained {
        let mut drained = Drained::default();
        for (index, ring) in self.rings.iter_mut().enumerate() {
            let (records, blocked) = ring.drain(|record| each(index, record));
            drained.records += records;
            drained.blocked_rings += usize::from(blocked);
        }
        drained
    }

    /// How full the fullest ring is, from 0 to 1.
    pub fn fill(&self) -> f64 {
        self.rings.iter().map(Ring::fill).fold(0.0, f64::max)
    }
}

struct Ring {
    /// Keeps the ring alive.
    _fd: Arc<OwnedFd>,
    reader: Mapping,
    writer: Mapping,
    page: usize,
    bytes: usize,
    position: u64,
}

impl Ring {
    fn map(fd: Arc<OwnedFd>, bytes: usize) -> Result<Self, BpfError> {
        let page = rustix::param::page_size();
        let map = |len, writable, offset| {
            Mapping::new(fd.as_fd().as_raw_fd(), len, writable, offset)
                .map_err(|source| BpfError::Create { what: "a view of a ring".into(), source })
        };
        let reader = map(page, true, 0)?;
        let writer = map(page + 2 * bytes, false, page)?;
        let mut ring = Self { _fd: fd, reader, writer, page, bytes, position: 0 };
        ring.position = ring.reader_position().load(Ordering::Acquire);
        Ok(ring)
    }

    fn reader_position(&self) -> &AtomicU64 {
        // SAFETY: the first word of the reader's page, aligned and mapped as long as `self`.
        unsafe { AtomicU64::from_ptr(self.reader.address().cast()) }
    }

    fn writer_position(&self) -> u64 {
        // SAFETY: the first word of the writer's page; it is only read.
        unsafe { (*self.writer.address().cast::<AtomicU64>()).load(Ordering::Acquire) }
    }

    fn fill(&self) -> f64 {
        self.writer_position().saturating_sub(self.position) as f64 / self.bytes as f64
    }

    /// How many records there were, and whether one of them is still being written.
    fn drain(&mut self, mut each: impl FnMut(&[u8])) -> (usize, bool) {
        let end = self.writer_position();
        let mut records = 0;
        // The writer gets its room back in pieces, not only at the end.
        let piece = self.bytes as u64 / 8;
        let mut given_back = self.position;
        let mut blocked = false;
        while self.position < end {
            let start = self.page + (self.position as usize & (self.bytes - 1));
            let header = self.header(start);
            if header & BUSY != 0 {
                blocked = true;
                break;
            }
            let len = (header & !DISCARDED) as usize;
            if header & DISCARDED == 0 {
                each(self.data(start + HEADER, len));
                records += 1;
            }
            self.position += (HEADER + len).next_multiple_of(8) as u64;
            if self.position - given_back >= piece {
                self.give_back();
                given_back = self.position;
            }
        }
        if self.position != given_back {
            self.give_back();
        }
        (records, blocked)
    }

    fn give_back(&self) {
        self.reader_position().store(self.position, Ordering::Release);
    }

    fn header(&self, start: usize) -> u32 {
        // SAFETY: `start` is below one page and one length of the data, which is mapped twice,
        // and a multiple of 8. The kernel sets the length last, with a barrier.
        unsafe { (*self.writer.address().add(start).cast::<AtomicU32>()).load(Ordering::Acquire) }
    }

    fn data(&self, start: usize, len: usize) -> &[u8] {
        assert!(start + len <= self.writer.len(), "a record longer than its ring");
        // SAFETY: within the mapping. The kernel does not touch a finished record before the
        // reader's position has passed it, which `drain` does after `each` is done with it.
        unsafe { std::slice::from_raw_parts(self.writer.address().add(start), len) }
    }
}

/// Creates `count` rings.
pub(super) fn create(count: usize, bytes: u32) -> Result<Vec<Arc<OwnedFd>>, BpfError> {
    let least = rustix::param::page_size() as u32;
    if !bytes.is_power_of_two() || !(least..=1 << 30).contains(&bytes) {
        return Err(BpfError::RingSize { bytes, least });
    }
    let create = || {
        sys::create_ring(bytes).map(Arc::new).map_err(|source| {
            BpfError::permission("create eBPF maps", &source).unwrap_or_else(|| BpfError::Create {
                what: format!("{count} rings of {bytes} bytes"),
                source,
            })
        })
    };
    (0..count).map(|_| create()).collect()
}

/// Stores a ring for every CPU that may ever run. Those that are not online share the others'
/// rings: should they come up, nothing is lost.
pub(super) fn store(
    map: &OwnedFd,
    rings: &[Arc<OwnedFd>],
    online: &[u32],
    possible: u32,
) -> Result<(), BpfError> {
    for cpu in 0..possible {
        let index = online.iter().position(|&other| other == cpu);
        let ring = &rings[index.unwrap_or(cpu as usize % rings.len())];
        sys::map_update(map.as_fd(), cpu, &ring.as_raw_fd().to_ne_bytes())
            .map_err(|source| BpfError::Map { what: "rings", source })?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "rings_tests.rs"]
mod tests;
