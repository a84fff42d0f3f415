//! Writes an entry with what comes before it: values and a text.
//!
//! Unlike the path of `enter`, this one is in Rust: it is only reached by sites with values and by
//! points, which do more than an instruction's worth of work anyway.

use super::{
    buffer::{Buffer, FIRST, LONG_TEXT_BEGINS, SIZE, TEXT_BEGINS, TEXT_FURTHER, VALUE},
    clock, enter, list, slow, thread,
};

/// The most bytes of a text in a slot: eight are its word 0, the others are in word 1.
pub(super) const PIECE: usize = 15;
/// The position in word 1 of the number of bytes there.
const LENGTH: u32 = 5;

/// An event, and what its slots are preceded by.
pub(super) struct Record<'a> {
    pub(super) word0: u64,
    pub(super) word1: u64,
    pub(super) values: &'a [u64],
    pub(super) text: Option<&'a [u8]>,
}

impl Record<'_> {
    /// Returns the bytes of all its slots.
    #[inline]
    pub(super) fn bytes(&self) -> u32 {
        let pieces = self.text.map_or(0, pieces);
        (self.values.len() + pieces + 1) as u32 * 16
    }

    /// Writes it to the slots from `position` on, where there are enough.
    #[inline]
    pub(super) fn put(&self, buffer: &Buffer, position: u32) {
        let mut slots = buffer.slots_from(position).iter();
        for (value, slot) in self.values.iter().zip(&mut slots) {
            slot.write(self.word0 & clock::MASK | value << 48, value >> 16 << 16 | VALUE);
        }
        if let Some(text) = self.text {
            let (mut rest, mut further) = (text, 0);
            for slot in slots.by_ref().take(pieces(text)) {
                let (piece, after) = rest.split_at(rest.len().min(PIECE));
                let before = &text[..text.len() - after.len()];
                match piece.first_chunk() {
                    // Text has no byte 0xff, so word 0 is not 0.
                    Some(first) => slot.write(
                        !u64::from_le_bytes(*first),
                        last_bytes(before, piece.len() - 8) | (LONG_TEXT_BEGINS + further),
                    ),
                    None => slot.write(
                        self.word0,
                        last_bytes(before, piece.len()) | (TEXT_BEGINS + further),
                    ),
                }
                (rest, further) = (after, TEXT_FURTHER);
            }
        }
        if let Some(slot) = slots.next() {
            slot.write(self.word0, self.word1);
        }
    }
}

/// Returns the number of slots of a text. An empty one has a slot, too.
#[inline]
fn pieces(text: &[u8]) -> usize {
    text.len().div_ceil(PIECE).max(1)
}

/// Returns the last bytes of a text, at most seven, in the bits of word 1 for them and their number.
/// (A loop would store them one by one and wait for that.)
#[inline]
fn last_bytes(text: &[u8], length: usize) -> u64 {
    let bytes = match text.last_chunk() {
        Some(last) => u64::from_le_bytes(*last) >> ((7 - length) * 8) & !0xff,
        None => text.iter().rev().fold(0, |bytes, byte| (bytes | u64::from(*byte)) << 8),
    };
    bytes | (length as u64) << LENGTH
}

/// Returns word 1 of an entry in a function with this stack pointer.
#[must_use]
#[inline(always)]
pub fn tag(site: u64, sp: u64) -> u64 {
    site | sp >> 20 << 47
}

/// Returns the part of word 0 that is not time.
#[must_use]
#[inline(always)]
pub fn low(sp: u64) -> u64 {
    sp >> 4 << 48
}

/// Writes an entry of a site that is on, for a function with this stack pointer.
#[cold]
#[inline(never)]
pub(super) fn record(site: u64, sp: u64, values: &[u64], text: Option<&[u8]>) {
    let word0 = low(sp) | clock::tsc() & clock::MASK;
    let record = Record { word0, word1: tag(site, sp), values, text };
    let bytes = record.bytes();
    let mut taken = None;
    if let Some(buffer) = list::at(enter::fast()) {
        let position = buffer.take(bytes);
        if (FIRST..SIZE as u32 - bytes).contains(&position) {
            return record.put(buffer, position);
        }
        taken = Some((buffer, position));
    }
    slow::write(thread::this_thread(), taken, record);
}
