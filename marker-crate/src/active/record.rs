//! Writes an entry with what comes before it: values and a text.
//!
//! Unlike the path of `enter`, this one is in Rust: it is only reached by sites with values and by
//! points, which do more than an instruction's worth of work anyway.

use super::{
    buffer::{Buffer, FIRST, SIZE, TEXT_BEGINS, TEXT_GOES_ON, VALUE},
    clock, list, slow, thread,
};
use core::sync::atomic::Ordering::Relaxed;

/// The bytes of a text in a slot.
const PIECE: usize = 7;

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
        let pieces = self.text.map_or(0, |text| text.len().div_ceil(PIECE).max(1));
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
            let (pieces, rest) = text.as_chunks::<PIECE>();
            let mut kind = TEXT_BEGINS;
            for (piece, slot) in pieces.iter().zip(&mut slots) {
                slot.write(self.word0, whole_piece(piece) << 8 | 7 << 5 | kind);
                kind = TEXT_GOES_ON;
            }
            if (!rest.is_empty() || pieces.is_empty())
                && let Some(slot) = slots.next()
            {
                slot.write(
                    self.word0,
                    last_piece(text, rest.len()) << 8 | (rest.len() as u64) << 5 | kind,
                );
            }
        }
        if let Some(slot) = slots.next() {
            slot.write(self.word0, self.word1);
        }
    }
}

/// Returns the bytes of a piece as a number. (A loop would store them one by one and wait for that.)
#[inline]
fn whole_piece(&[a, b, c, d, e, f, g]: &[u8; PIECE]) -> u64 {
    let (low, high) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([d, e, f, g]));
    u64::from(low) | u64::from(high) << 24
}

/// Returns the last bytes of a text, fewer than a piece has, as a number.
#[inline]
fn last_piece(text: &[u8], length: usize) -> u64 {
    match text.last_chunk() {
        Some(piece) => whole_piece(piece) >> ((PIECE - length) * 8),
        None => text.iter().rev().fold(0, |bytes, byte| bytes << 8 | u64::from(*byte)),
    }
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
    let local = thread::this_thread();
    let bytes = record.bytes();
    let mut taken = None;
    if let Some(buffer) = list::at(local.fast.load(Relaxed)) {
        let position = buffer.take(bytes);
        if (FIRST..SIZE as u32 - bytes).contains(&position) {
            return record.put(buffer, position);
        }
        taken = Some((buffer, position));
    }
    slow::write(local, taken, record);
}
