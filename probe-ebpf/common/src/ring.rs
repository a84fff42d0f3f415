//! Where records lie between the programs and user space: the layout of the map `RINGS`.
//!
//! The map is an array of pages that both sides share. A ring is a page with its two positions and
//! then a power of two of pages with slots. Positions count slots and never go back; the slot of a
//! position is its remainder by the number of slots.

use crate::{CONTROL_LEN, Kind, RECORD_LEN};

/// Bytes of an element of the map.
pub const PAGE_LEN: usize = 4096;
/// A record fills one slot; a control record fills two, of which the second may be the ring's
/// first.
pub const SLOT_LEN: usize = RECORD_LEN;
pub const CONTROL_SLOTS: usize = CONTROL_LEN / SLOT_LEN;
/// Slots in a page.
pub const PAGE_SLOTS: usize = PAGE_LEN / SLOT_LEN;
/// The word of a slot that is written last, and holds a record's kind: 0 until then.
pub const COMMIT_WORD: usize = 3;
/// Where in the ring's first page the positions are, in words: far enough apart to be on cache
/// lines that processors do not fetch together.
pub const WRITER_WORD: usize = 0;
pub const READER_WORD: usize = 16;

/// A page as the programs see it.
pub type Page = [u64; PAGE_LEN / 8];
/// A slot as the programs see it.
pub type Slot = [u64; SLOT_LEN / 8];

/// The kind in the commit word of a slot; 0 while nothing is written there.
pub const fn committed_kind(word: u64) -> u8 {
    (word >> 32) as u8
}

/// How many slots the record with this commit word fills.
pub const fn slots_of(word: u64) -> usize {
    const SKIP: u8 = Kind::Skip as u8;
    const BATCH: u8 = Kind::Batch as u8;
    const PAYLOAD: u8 = Kind::Payload as u8;
    match committed_kind(word) {
        SKIP | BATCH | PAYLOAD => (word >> COUNT_SHIFT) as usize,
        kind if kind < Kind::Fork as u8 => 1,
        _ => CONTROL_SLOTS,
    }
}

/// Where in the commit word of a `Skip`, a `Batch` and a `Payload` the number of their slots is: in
/// place of `lost_before`.
pub const COUNT_SHIFT: u32 = 48;

/// Slots that a marker buffer may fill, by how much is in it: each begins at a multiple of its
/// number, so it lies in one page.
pub const BATCH_SLOTS: [usize; 3] = [8, 32, PAGE_SLOTS];

/// Slots from here to a multiple of `alignment`, a power of two.
pub const fn slots_to_multiple(position: u64, alignment: usize) -> usize {
    position.wrapping_neg() as usize % alignment
}
