//! Jumps and calls into the middle of functions, from code that is not theirs.
//!
//! Compilers make none, but hand-written code does: glibc's `mempcpy` jumps behind the first instruction
//! of `memmove`. A probe behind that place would count its calls, too.

use super::CodeMap;
use crate::target::place::near_jumps::{LONGEST, near};
use crate::target::read::budget::TooLarge;
use iced_x86::{Decoder, DecoderOptions, Instruction};
use std::ops::RangeInclusive;

/// The reach of a short jump, and its length.
const SHORT: u64 = 128;
const SHORT_LENGTH: u64 = 2;
/// Bytes from the start of a function that are decoded to find its jumps near the end.
const MOST_DECODED: u64 = 64 << 10;
/// Bytes between two looks at the budget.
const STRIDE: usize = 1 << 20;

impl CodeMap<'_> {
    /// Returns whether another function may lead into this range, which is behind the start of a function
    /// with this end. Where that takes too long to find out, it may.
    pub(crate) fn may_be_entered_in(&self, range: &RangeInclusive<u64>, end: u64) -> bool {
        let Ok(far) = self.far_targets.get_or_init(|| self.find_far_targets()) else { return true };
        let first = far.partition_point(|target| target < range.start());
        let is_far = far.get(first).is_some_and(|target| target <= range.end());
        let start = range.start().saturating_sub(1);
        let before = start.saturating_sub(SHORT + SHORT_LENGTH)..start;
        let behind = end..range.end().saturating_add(SHORT);
        is_far || [before, behind].into_iter().any(|near| self.has_short_jump(near, range))
    }

    /// Returns the targets of all near jumps and calls that are not the start of a function, and not in
    /// the function of the jump, ascending. Where bytes that are no instruction lead to by chance, a probe
    /// stays at its function's start.
    fn find_far_targets(&self) -> Result<Vec<u64>, TooLarge> {
        let mut found = Vec::new();
        for segment in self.segments.iter().filter(|segment| segment.executable) {
            let (bytes, address) = (segment.bytes(self.source), segment.address);
            for (at, window) in bytes.windows(LONGEST).enumerate() {
                if at % STRIDE == 0 {
                    self.budget().check()?;
                }
                let from = address.saturating_add(at as u64);
                let Some((_, target)) = near(window, from) else { continue };
                if self.leads_into_another(from, target) {
                    found.push(target);
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        self.budget().charge(found.len() as u64 * size_of::<u64>() as u64)?;
        found.shrink_to_fit();
        Ok(found)
    }

    fn leads_into_another(&self, from: u64, target: u64) -> bool {
        if !self.segment(target).is_some_and(|segment| segment.executable) {
            return false;
        }
        match self.frame(target) {
            Some(frame) => frame.start != target && !(frame.start..frame.end).contains(&from),
            None => self.symbols_at(target).next().is_none(),
        }
    }

    /// Returns whether there is a short jump into `range` between these addresses.
    fn has_short_jump(&self, between: std::ops::Range<u64>, range: &RangeInclusive<u64>) -> bool {
        let mut at = between.start;
        while at < between.end {
            let frame = self.frame(at).filter(|frame| at - frame.start <= MOST_DECODED);
            let next = match frame {
                Some(frame) => {
                    let end = frame.end.min(between.end);
                    let leads = |it: &Instruction| range.contains(&it.near_branch_target());
                    if self.instructions(frame.start, end).any(|it| leads(&it)) {
                        return true;
                    }
                    frame.end
                }
                None => {
                    let bytes = self.bytes(at).and_then(|bytes| bytes.first_chunk().copied());
                    if let Some([0xeb | 0x70..=0x7f | 0xe0..=0xe3, distance]) = bytes
                        && range
                            .contains(&(at + 2).wrapping_add_signed(distance.cast_signed().into()))
                    {
                        return true;
                    }
                    at + 1
                }
            };
            at = next.max(at + 1);
        }
        false
    }

    fn instructions(&self, start: u64, end: u64) -> impl Iterator<Item = Instruction> {
        let bytes = self.bytes(start).unwrap_or_default();
        let length = usize::try_from(end.saturating_sub(start)).unwrap_or(usize::MAX);
        let bytes = &bytes[..length.min(bytes.len())];
        Decoder::with_ip(64, bytes, start, DecoderOptions::NONE).into_iter()
    }
}
