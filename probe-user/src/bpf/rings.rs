//! The rings through which records come: one per CPU, read without a system call.
//!
//! Layout and protocol are ours, see `docs/wire-format.md`: a page with both positions, then the
//! slots. A record is there once the word with its kind is; the reader sets that word back to 0
//! before it gives the slot back.

use super::{
    BpfError,
    layout::Layout,
    sys::{self, Mapping},
};
use ctrace_common::{
    COMMIT_WORD, CONTROL_LEN, Kind, PAGE_LEN, READER_WORD, SLOT_LEN, WRITER_WORD, committed_kind,
    slots_of,
};
use std::{
    os::fd::{AsRawFd as _, OwnedFd},
    sync::atomic::{AtomicU64, Ordering},
};

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
    pub(super) fn map(map: &OwnedFd, layout: Layout) -> Result<Self, BpfError> {
        let rings = (0..layout.rings).map(|ring| Ring::map(map, layout, ring));
        Ok(Self { rings: rings.collect::<Result<_, _>>()? })
    }

    /// How many rings there are; `drain` numbers them from 0.
    pub(crate) fn len(&self) -> usize {
        self.rings.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
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
    pub(crate) fn fill(&self) -> f64 {
        self.rings.iter().map(Ring::fill).fold(0.0, f64::max)
    }
}

struct Ring {
    /// Its pages, which live as long as they are mapped.
    pages: Mapping,
    /// How many there are: a power of two.
    slots: usize,
    position: u64,
}

impl Ring {
    fn map(map: &OwnedFd, layout: Layout, ring: usize) -> Result<Self, BpfError> {
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

    /// The writers' position.
    fn end(&self) -> u64 {
        self.word(WRITER_WORD * 8).load(Ordering::Acquire)
    }

    /// How many records there were, and whether one of them is still being written.
    fn drain(&mut self, mut each: impl FnMut(&[u8])) -> (usize, bool) {
        let end = self.end();
        let mut records = 0;
        // The writers get their room back in pieces, not only at the end.
        let piece = self.slots as u64 / 8;
        let mut given_back = self.position;
        let mut blocked = false;
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
                _ => {
                    let mut control = [0; CONTROL_LEN];
                    let (record, rest) = control.split_at_mut(SLOT_LEN);
                    record.copy_from_slice(self.slots(self.position, 1));
                    rest.copy_from_slice(self.slots(self.position + 1, 1));
                    each(&control);
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

    /// Where the slot of this position begins.
    fn offset(&self, position: u64) -> usize {
        PAGE_LEN + (position as usize & (self.slots - 1)) * SLOT_LEN
    }

    fn word(&self, offset: usize) -> &AtomicU64 {
        assert!(offset.is_multiple_of(8) && offset + 8 <= self.pages.len(), "a word of the ring");
        // SAFETY: within the mapping, which lives as long as `self`, and aligned. Both sides change
        // such words in one piece.
        unsafe { AtomicU64::from_ptr(self.pages.address().add(offset).cast()) }
    }

    /// Slots that are committed, all in one page.
    fn slots(&self, position: u64, count: usize) -> &[u8] {
        let (start, len) = (self.offset(position), count * SLOT_LEN);
        assert!(start + len <= self.pages.len(), "slots of the ring");
        // SAFETY: within the mapping. The programs do not touch committed slots before the
        // reader's position has passed them, nor do we: `drain` does both after this borrow.
        unsafe { std::slice::from_raw_parts(self.pages.address().add(start), len) }
    }
}

/// Whether the kernel lets the programs share memory with us.
pub(super) fn try_out() -> std::io::Result<()> {
    let map = sys::create_shared_array(PAGE_LEN as u32, 1)?;
    Mapping::new(map.as_raw_fd(), PAGE_LEN, 0).map(drop)
}

#[cfg(test)]
#[path = "rings_tests.rs"]
mod tests;
