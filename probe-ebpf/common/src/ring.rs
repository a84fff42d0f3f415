//! The layout of the map `RINGS`, which holds records between the programs and user space.
//!
//! The map is an array of pages that both sides share. A ring is a page with its two positions,
//! followed by a power of two of pages with slots. Positions count slots and never go back; the
//! slot of a position is its remainder by the number of slots.

use crate::{CONTROL_LEN, Kind, RECORD_LEN};

/// Bytes of an element of the map.
pub const PAGE_LEN: usize = 4096;
/// Bytes of a slot. A record fills one slot; a control record fills two, of which the second may be
/// the ring's first.
pub const SLOT_LEN: usize = RECORD_LEN;
pub const CONTROL_SLOTS: usize = CONTROL_LEN / SLOT_LEN;
/// Slots in a page.
pub const PAGE_SLOTS: usize = PAGE_LEN / SLOT_LEN;
/// The word of a slot that is written last. It holds the record's kind, and is 0 until then.
pub const COMMIT_WORD: usize = 3;
/// The words of the positions in the ring's first page. They are so far apart that they lie on
/// cache lines that CPUs do not fetch together.
pub const WRITER_WORD: usize = 0;
pub const READER_WORD: usize = 16;

/// A page as the programs see it.
pub type Page = [u64; PAGE_LEN / 8];
/// A slot as the programs see it.
pub type Slot = [u64; SLOT_LEN / 8];

/// Returns the kind in the commit word of a slot; 0 while nothing is written there.
pub const fn committed_kind(word: u64) -> u8 {
    (word >> 32) as u8
}

/// Returns the number of slots that the record with this commit word fills.
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

/// The position of the number of slots in the commit word of a `Skip`, a `Batch` and a `Payload`.
/// It takes the place of `lost_before`.
pub const COUNT_SHIFT: u32 = 48;

/// Numbers of slots that a marker buffer may fill, depending on its contents. Each begins at a
/// multiple of its number, so it lies in one page.
pub const BATCH_SLOTS: [usize; 3] = [8, 32, PAGE_SLOTS];

/// Returns the number of slots from here to a multiple of `alignment`, a power of two.
pub const fn slots_to_multiple(position: u64, alignment: usize) -> usize {
    position.wrapping_neg() as usize % alignment
}
