//! Reads the rings that carry records: one per CPU, without a system call.
//!
//! Layout and protocol are ours (`docs/wire-format.md`): a page with both positions, then the
//! slots. A record exists once the word with its kind does. The reader sets that word back to 0
//! before it returns the slot.

pub(super) mod layout;
pub(super) mod loss;
pub(super) mod news;

use super::{
    BpfError,
    sys::{self, Mapping},
};
use ctrace_common::{
    COMMIT_WORD, Kind, PAGE_LEN, PAYLOAD_SLOTS, READER_WORD, SLOT_LEN, WRITER_WORD, committed_kind,
    slots_of,
};
use layout::RingLayout;
use std::{
    os::fd::{AsRawFd as _, OwnedFd},
    sync::atomic::{AtomicU64, Ordering},
};

/// The result of one round over the rings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    pub records: usize,
    /// Rings with more records behind one that is still being written.
    pub blocked_rings: usize,
}

/// All rings, for the one reading thread.
pub struct Rings {
    rings: Vec<Ring>,
}

impl Rings {
    pub(super) fn map(map: &OwnedFd, layout: RingLayout) -> Result<Self, BpfError> {
        let rings = (0..layout.rings).map(|ring| Ring::map(map, layout, ring));
        Ok(Self { rings: rings.collect::<Result<_, _>>()? })
    }

    /// Passes on every record that a ring has when its turn comes. Within a ring, records come in
    /// the order of reservation.
    pub fn drain(&mut self, mut each: impl FnMut(usize, &[u8])) -> Drained {
        let mut drained = Drained::default();
        for (index, ring) in self.rings.iter_mut().enumerate() {
            let (records, blocked) = ring.drain(|record| each(index, record));
            drained.records += records;
            drained.blocked_rings += usize::from(blocked);
        }
        drained
    }

    /// Returns the fill of the fullest ring, from 0 to 1.
    pub(crate) fn fill(&self) -> f64 {
        self.rings.iter().map(Ring::fill).fold(0.0, f64::max)
    }
}

struct Ring {
    /// Its pages, mapped as long as this lives.
    pages: Mapping,
    /// The number of slots, a power of two.
    slots: usize,
    position: u64,
}

impl Ring {
    fn map(map: &OwnedFd, layout: RingLayout, ring: usize) -> Result<Self, BpfError> {
        let start = layout.first_page(ring) as usize * PAGE_LEN;
        let pages = Mapping::new(map.as_raw_fd(), PAGE_LEN + layout.ring_bytes, start)
            .map_err(|source| BpfError::Create { what: "a view of a ring".into(), source })?;
        let mut ring = Self { pages, slots: layout.ring_bytes / SLOT_LEN, position: 0 };
        ring.position = ring.word(READER_WORD * 8).load(Ordering::Acquire);
        Ok(ring)
    }

    fn fill(&self) -> f64 {
        self.end().saturating_sub(self.position) as f64 / self.slots as f64
    }

    /// Returns the writers' position.
    fn end(&self) -> u64 {
        self.word(WRITER_WORD * 8).load(Ordering::Acquire)
    }

    /// Returns the number of records, and whether the next one is still being written.
    fn drain(&mut self, mut each: impl FnMut(&[u8])) -> (usize, bool) {
        let end = self.end();
        let mut records = 0;
        // The writers get their room back in pieces, not only at the end.
        let piece = self.slots as u64 / 8;
        let mut given_back = self.position;
        let mut blocked = false;
        let mut record = [[0; SLOT_LEN]; PAYLOAD_SLOTS];
        while self.position < end {
            let word = self.commit_word(self.position).load(Ordering::Acquire);
            if committed_kind(word) == 0 {
                blocked = true;
                break;
            }
            let slots = slots_of(word);
            let kind = Kind::from_wire(committed_kind(word));
            records += usize::from(kind != Some(Kind::Skip));
            match kind {
                Some(Kind::Skip) => {}
                Some(Kind::Batch) => each(self.slots(self.position, slots)),
                _ if slots == 1 => each(self.slots(self.position, 1)),
                // A control record or a payload: the next of its slots may be the ring's first.
                _ => {
                    let record = &mut record[..slots.min(PAYLOAD_SLOTS)];
                    for (slot, position) in record.iter_mut().zip(self.position..) {
                        slot.copy_from_slice(self.slots(position, 1));
                    }
                    each(record.as_flattened());
                }
            }
            for position in self.position..self.position + slots as u64 {
                self.commit_word(position).store(0, Ordering::Relaxed);
            }
            self.position += slots as u64;
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
        self.word(READER_WORD * 8).store(self.position, Ordering::Release);
    }

    fn commit_word(&self, position: u64) -> &AtomicU64 {
        self.word(self.offset(position) + COMMIT_WORD * 8)
    }

    /// Returns the offset of the slot at this position.
    fn offset(&self, position: u64) -> usize {
        PAGE_LEN + (position as usize & (self.slots - 1)) * SLOT_LEN
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.pages.len(), "a word of the ring");
        // SAFETY: within the mapping, which lives as long as `self`, and aligned. Both sides change
        // such words in one piece.
        unsafe { AtomicU64::from_ptr(self.pages.address().add(offset).cast()) }
    }

    /// Returns committed slots, all in one page.
    fn slots(&self, position: u64, count: usize) -> &[u8] {
        let (start, len) = (self.offset(position), count * SLOT_LEN);
        assert!(start + len <= self.pages.len(), "slots of the ring");
        // SAFETY: within the mapping. The programs do not touch committed slots before the
        // reader's position has passed them, nor do we: `drain` does both after this borrow.
        unsafe { std::slice::from_raw_parts(self.pages.address().add(start), len) }
    }
}

/// Checks that the kernel lets the programs share memory with us.
pub(super) fn try_out() -> std::io::Result<()> {
    let map = sys::create_shared_array(PAGE_LEN as u32, 1)?;
    Mapping::new(map.as_raw_fd(), PAGE_LEN, 0).map(drop)
}

#[cfg(test)]
mod tests;
