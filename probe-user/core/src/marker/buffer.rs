//! Finds the events of a buffer that are new since the last reading, and those that are missing.
//!
//! Events may be seen twice: when the part-filled buffer is read, and when it is flushed. Slots do
//! not move within a batch, so the taken ones are remembered until the next batch.

use super::layout::{BUFFER_LEN, Header, Slot};
use crate::units::Nanos;
use ctrace_common::BUFFER_SLOTS;
use std::ops::Range;

/// A bit for each slot.
type Slots = [u64; BUFFER_SLOTS.div_ceil(64)];

/// The state of one buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct BufferState {
    batch: u64,
    /// The slots of this batch that were taken.
    seen: Slots,
    /// The slots of this batch that held a whole call.
    whole: Slots,
    /// The number of events since the buffer was made that are delivered, lost or not ours.
    accounted: u64,
    /// The time of the last reading.
    time: Nanos,
}

/// A lower bound on the time in which a writer fills a batch.
pub(super) const LEAST_NANOS_PER_BATCH: u64 = 500;
/// The number of batches that may arrive at once.
pub(super) const BATCHES_AT_ONCE: u64 = 64;
/// The maximum number of events in a batch: every slot holds a whole call.
pub(super) const MOST_EVENTS_PER_BATCH: u64 = 2 * BUFFER_SLOTS as u64;

/// The verdict on a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadingVerdict {
    /// The reading is new; `missing` events were lost before its first new one. A negative number
    /// is of events that arrived after they were counted as lost.
    New { missing: i64 },
    /// The reading is of an older batch than the last, so all of it is known.
    Old,
    /// The bytes are no buffer, or have impossible numbers.
    Malformed,
}

impl BufferState {
    /// Makes the state of a buffer that was made while tracing, at `time`.
    pub(super) fn new(time: Nanos) -> Self {
        Self { time, ..Self::default() }
    }

    /// Makes the state of an older buffer, whose contents are not ours.
    pub(super) fn adopt(bytes: &[u8; BUFFER_LEN], time: Nanos) -> Option<Self> {
        let header = Header::parse(bytes)?;
        let (seen, whole) = written(bytes);
        let accounted = header.events.saturating_add(count(&seen) + count(&whole));
        Some(Self { batch: header.batch, seen, whole, accounted, time })
    }

    /// Counts all events up to this number as accounted for.
    pub(super) fn settle(&mut self, events: u64) {
        self.accounted = self.accounted.max(events);
    }

    /// Returns the number of accounted events since the buffer was made.
    pub(super) fn accounted(&self) -> u64 {
        self.accounted
    }

    /// Returns the missing events if the buffer has seen `events` in all.
    pub(super) fn missing_of(&self, events: u64) -> u64 {
        events.saturating_sub(self.accounted)
    }

    /// Turns to the batch of a reading, which is to be [taken](Self::take) if it is new.
    pub(super) fn turn_to(&mut self, header: &Header, time: Nanos) -> ReadingVerdict {
        let Some(batches) = header.batch.checked_sub(self.batch) else {
            return ReadingVerdict::Old;
        };
        if batches == 0 {
            return ReadingVerdict::New { missing: 0 };
        }
        let most = time.since(self.time).0 / LEAST_NANOS_PER_BATCH + BATCHES_AT_ONCE;
        let difference = header.events.abs_diff(self.accounted);
        if batches > most || difference > batches.saturating_mul(MOST_EVENTS_PER_BATCH) {
            return ReadingVerdict::Malformed;
        }
        let missing = difference as i64 * if header.events < self.accounted { -1 } else { 1 };
        *self = Self { batch: header.batch, accounted: header.events, time, ..Self::default() };
        ReadingVerdict::New { missing }
    }

    /// Takes the new slots of a reading. `before` is an earlier reading of a buffer in use: only
    /// slots in both readings are completely written.
    pub(super) fn take(
        &mut self,
        bytes: &[u8; BUFFER_LEN],
        before: Option<&[u8; BUFFER_LEN]>,
    ) -> News {
        let (mut there, mut whole) = written(bytes);
        if let Some(before) = before {
            each(&mut there, &written(before).0, |there, before| there & before);
            each(&mut whole, &there, |whole, there| whole & there);
        }
        let mut fresh = there;
        each(&mut fresh, &self.seen, |there, seen| there & !seen);
        let mut completed = whole;
        each(&mut completed, &self.whole, |whole, known| whole & !known);
        self.accounted = self.accounted.saturating_add(count(&fresh) + count(&completed));
        let mut ends = completed;
        each(&mut ends, &self.seen, |completed, seen| completed & seen);
        each(&mut fresh, &ends, |fresh, ends| fresh | ends);
        each(&mut self.seen, &there, |seen, there| seen | there);
        each(&mut self.whole, &whole, |known, whole| known | whole);
        News { slots: fresh, ends }
    }
}

/// The new slots of a reading.
#[derive(Clone, Copy, Debug)]
pub(super) struct News {
    slots: Slots,
    /// The new slots whose entry is already known.
    ends: Slots,
}

impl News {
    /// Returns the number of new slots.
    pub(super) fn slots(&self) -> u64 {
        count(&self.slots)
    }

    /// Visits each new slot of the reading, with its number, in order.
    #[inline]
    pub(super) fn read(&self, bytes: &[u8; BUFFER_LEN], mut each: impl FnMut(usize, Slot)) {
        for (nth, (&slots, &ends)) in self.slots.iter().zip(&self.ends).enumerate() {
            let mut slots = slots;
            while slots != 0 {
                let bit = slots.trailing_zeros();
                slots &= slots - 1;
                let index = 64 * nth + bit as usize;
                let slot = Slot::read(bytes, index);
                each(index, if ends >> bit & 1 == 1 { slot.into_exit() } else { slot });
            }
        }
    }
}

/// Returns the numbers of the events in this reading, counted from the buffer's start.
pub(super) fn events_in(bytes: &[u8; BUFFER_LEN]) -> Range<u64> {
    let (written, whole) = written(bytes);
    let before = Header::parse(bytes).map_or(0, |header| header.events);
    before..before.saturating_add(count(&written) + count(&whole))
}

fn each(slots: &mut Slots, others: &Slots, of: impl Fn(u64, u64) -> u64) {
    slots.iter_mut().zip(others).for_each(|(slots, others)| *slots = of(*slots, *others));
}

fn count(slots: &Slots) -> u64 {
    slots.iter().map(|word| u64::from(word.count_ones())).sum()
}

/// Returns the written slots, and those of them that hold a whole call.
fn written(bytes: &[u8; BUFFER_LEN]) -> (Slots, Slots) {
    let (mut written, mut whole) = (Slots::default(), Slots::default());
    for (nth, (written, whole)) in written.iter_mut().zip(&mut whole).enumerate() {
        for bit in 0..64 {
            let is_written = Slot::is_written(bytes, 64 * nth + bit);
            let is_whole = is_written & Slot::is_whole_call(bytes, 64 * nth + bit);
            *written |= u64::from(is_written) << bit;
            *whole |= u64::from(is_whole) << bit;
        }
    }
    (written, whole)
}

#[cfg(test)]
mod tests {
    use super::super::layout::tests::{buffer, complete, put};
    use super::*;

    /// A time that is long enough for every batch in these tests.
    const TIME: Nanos = Nanos(1_000_000);

    /// Returns a buffer of batch `batch` whose slots `filled` hold their own numbers as times.
    fn filled(batch: u64, events: u64, filled: impl IntoIterator<Item = usize>) -> Buffer {
        let mut bytes = buffer(64, batch, events);
        for index in filled {
            put(&mut bytes, index, (1 + index as u64, 0, 32, false));
        }
        bytes
    }

    type Buffer = Box<[u8; BUFFER_LEN]>;

    fn check(
        progress: &mut BufferState,
        bytes: &Buffer,
        before: Option<&Buffer>,
        verdict: ReadingVerdict,
        times: impl IntoIterator<Item = u64>,
    ) {
        let header = Header::parse(&bytes[..]);
        let got =
            header.map_or(ReadingVerdict::Malformed, |header| progress.turn_to(&header, TIME));
        let mut taken = Vec::new();
        if let ReadingVerdict::New { .. } = got {
            let news = progress.take(bytes, before.map(|b| &**b));
            news.read(bytes, |_, slot| taken.push(slot.time - 1));
        }
        assert_eq!(got, verdict);
        assert_eq!(taken, times.into_iter().collect::<Vec<_>>());
    }

    const FINE: ReadingVerdict = ReadingVerdict::New { missing: 0 };

    #[test]
    fn nothing_is_taken_twice() {
        let mut progress = BufferState::default();
        check(&mut progress, &filled(0, 0, 0..3), None, FINE, 0..3);
        check(&mut progress, &filled(0, 0, 0..5), None, FINE, 3..5);
        check(&mut progress, &filled(0, 0, 0..252), None, FINE, 5..252);
        check(&mut progress, &filled(1, 252, 0..2), None, FINE, 0..2);
        check(&mut progress, &filled(0, 0, 0..252), None, ReadingVerdict::Old, []);
    }

    #[test]
    fn of_a_call_that_was_begun_the_end_comes_later() {
        let mut progress = BufferState::default();
        let mut bytes = filled(0, 0, 0..3);
        complete(&mut bytes, 0, 100);
        check(&mut progress, &bytes, None, FINE, 0..3);
        let before = bytes.clone();
        complete(&mut bytes, 2, 50);
        // Slot 2 is delivered as its exit, 50 after its entry. A slot in both readings is
        // completely written, even if it was completed between them.
        check(&mut progress, &bytes, Some(&before), FINE, [52]);
        check(&mut progress, &bytes, None, FINE, []);
        // Five events: three entries and two exits.
        check(&mut progress, &filled(1, 5, 0..1), None, FINE, 0..1);
    }

    #[test]
    fn a_lost_batch_may_have_held_whole_calls() {
        let mut progress = BufferState::default();
        check(&mut progress, &filled(0, 0, 0..1), None, FINE, 0..1);
        let lost = ReadingVerdict::New { missing: 503 };
        check(&mut progress, &filled(1, 504, 0..1), None, lost, 0..1);
        check(&mut progress, &filled(2, 505 + 505, 0..1), None, ReadingVerdict::Malformed, []);
    }

    #[test]
    fn of_a_call_that_was_there_at_the_start_the_end_is_ours() {
        let mut bytes = filled(7, 9000, 0..10);
        complete(&mut bytes, 0, 100);
        let mut progress = BufferState::adopt(&bytes, Nanos::ZERO).expect("a buffer");
        complete(&mut bytes, 9, 100);
        check(&mut progress, &bytes, None, FINE, [109]);
        check(&mut progress, &filled(8, 9012, 0..1), None, FINE, 0..1);
    }

    #[test]
    fn only_what_was_there_before_is_whole() {
        let mut progress = BufferState::default();
        let before = filled(0, 0, 0..3);
        check(&mut progress, &filled(0, 0, 0..5), Some(&before), FINE, 0..3);
        check(&mut progress, &filled(0, 0, 0..5), None, FINE, 3..5);
    }

    #[test]
    fn a_lost_batch_is_counted() {
        let mut progress = BufferState::default();
        check(&mut progress, &filled(0, 0, 0..252), None, FINE, 0..252);
        let lost = ReadingVerdict::New { missing: 504 };
        check(&mut progress, &filled(3, 756, 0..1), None, lost, 0..1);
    }

    #[test]
    fn of_a_lost_batch_a_part_may_be_known() {
        let mut progress = BufferState::default();
        check(&mut progress, &filled(0, 0, 0..200), None, FINE, 0..200);
        let lost = ReadingVerdict::New { missing: 52 };
        check(&mut progress, &filled(1, 252, 0..1), None, lost, 0..1);
    }

    #[test]
    fn a_slot_written_late_comes_with_the_next_batch() {
        let mut progress = BufferState::default();
        let hole = (0..100).chain(101..252);
        check(&mut progress, &filled(0, 0, hole.clone()), None, FINE, hole.map(|i| i as u64));
        let lost = ReadingVerdict::New { missing: 1 };
        check(&mut progress, &filled(1, 252, [0, 1, 100]), None, lost, [0, 1, 100]);
        // Two slots were taken and three delivered: none is missing in the end.
        let found = ReadingVerdict::New { missing: -1 };
        check(&mut progress, &filled(2, 254, 0..1), None, found, 0..1);
    }

    #[test]
    fn what_was_there_at_the_start_is_not_ours() {
        let mut progress =
            BufferState::adopt(&filled(7, 9000, 0..10), Nanos::ZERO).expect("a buffer");
        check(&mut progress, &filled(7, 9000, 0..12), None, FINE, 10..12);
        check(&mut progress, &filled(8, 9012, 0..1), None, FINE, 0..1);
    }

    #[test]
    fn batches_do_not_come_faster_than_they_are_written() {
        let mut progress = BufferState::default();
        let number = 1 << 40;
        check(
            &mut progress,
            &filled(number, number * 252, 0..1),
            None,
            ReadingVerdict::Malformed,
            [],
        );
        check(&mut progress, &filled(0, 0, 0..1), None, FINE, 0..1);
    }

    #[test]
    fn a_torn_slot_is_missing() {
        let mut progress = BufferState::default();
        let mut bytes = filled(0, 0, 0..3);
        bytes[64 + 16..64 + 24].fill(0);
        check(&mut progress, &bytes, None, FINE, [0, 2]);
        check(&mut progress, &filled(1, 3, []), None, ReadingVerdict::New { missing: 1 }, []);
    }

    #[test]
    fn what_is_missing_in_all_is_known_from_the_count() {
        let mut progress = BufferState::default();
        check(&mut progress, &filled(0, 0, 0..3), None, FINE, 0..3);
        assert_eq!([0, 3, 10].map(|events| progress.missing_of(events)), [0, 0, 7]);
    }

    #[test]
    fn numbers_that_cannot_be_are_refused() {
        let mut progress = BufferState::default();
        check(&mut progress, &filled(1, 1 << 60, 0..1), None, ReadingVerdict::Malformed, []);
        check(&mut progress, &filled(1, u64::MAX, 0..1), None, ReadingVerdict::Malformed, []);
        check(&mut progress, &Box::new([0; BUFFER_LEN]), None, ReadingVerdict::Malformed, []);
        check(&mut progress, &filled(0, 0, 0..1), None, FINE, 0..1);
    }
}
