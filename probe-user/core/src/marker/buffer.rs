//! What is new in a buffer since it was last looked at, and what is missing.
//!
//! The same events may be seen twice: by a look at the part-filled buffer, and when it is flushed.
//! Slots do not move within a batch, so those that were taken are remembered until the next one.

use super::layout::{BUFFER_LEN, Header, SLOTS, Slot};

/// What is known of one buffer.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Progress {
    batch: u64,
    /// By slot of this batch: taken.
    seen: [u64; SLOTS.div_ceil(64)],
    /// Events accounted for, since the buffer was made: delivered, lost, or none of ours.
    accounted: u64,
    /// How many of this batch were taken while it was being filled, as long as it was not shipped.
    looked: u64,
}

/// What a reading is worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// `missing` events were lost before the first new one. Negative: so many that were thought
    /// lost came later than their batch. `spared` are those of a batch that was dropped which had
    /// been taken before: the kernel counts them as lost.
    New { missing: i64, spared: u64 },
    /// An older batch than the last: all of it is known.
    Old,
    /// No buffer, or numbers that cannot be.
    Malformed,
}

impl Progress {
    /// A buffer as tracing finds it: what is in it is not ours.
    pub(super) fn adopt(bytes: &[u8; BUFFER_LEN]) -> Option<Self> {
        let header = Header::parse(bytes)?;
        let seen = written(bytes);
        let count = seen.iter().map(|word| u64::from(word.count_ones())).sum();
        let accounted = header.events.saturating_add(count);
        Some(Self { batch: header.batch, seen, accounted, looked: 0 })
    }

    /// Turns to the batch of a reading, which is to be [taken](Self::take) if it is new.
    pub(super) fn turn_to(&mut self, header: &Header) -> Verdict {
        if header.batch < self.batch {
            return Verdict::Old;
        }
        if header.batch == self.batch {
            return Verdict::New { missing: 0, spared: 0 };
        }
        let most = (header.batch - self.batch).saturating_mul(SLOTS as u64).min(1 << 62);
        let difference = header.events.abs_diff(self.accounted);
        if difference > most {
            return Verdict::Malformed;
        }
        let missing = difference as i64 * if header.events < self.accounted { -1 } else { 1 };
        let spared = self.looked;
        *self = Self { batch: header.batch, accounted: header.events, ..Self::default() };
        Verdict::New { missing, spared }
    }

    /// The slots of a reading that are new. `before` is an earlier reading of a buffer that may be
    /// written to meanwhile: only what is in both is whole.
    #[inline]
    pub(super) fn take<'a>(
        &mut self,
        bytes: &'a [u8; BUFFER_LEN],
        before: Option<&[u8; BUFFER_LEN]>,
    ) -> impl Iterator<Item = Slot> + use<'a> {
        let mut fresh = written(bytes);
        if let Some(before) = before {
            fresh.iter_mut().zip(written(before)).for_each(|(fresh, before)| *fresh &= before);
        }
        for (fresh, seen) in fresh.iter_mut().zip(&mut self.seen) {
            *fresh &= !*seen;
            *seen |= *fresh;
        }
        let count = fresh.iter().map(|word| u64::from(word.count_ones())).sum();
        self.accounted = self.accounted.saturating_add(count);
        self.looked = if before.is_some() { self.looked + count } else { 0 };
        let is_fresh = move |index: &usize| fresh[index / 64] >> (index % 64) & 1 == 1;
        (0..SLOTS).filter(is_fresh).map(|index| Slot::read(bytes, index))
    }
}

/// By slot: something is written there.
fn written(bytes: &[u8; BUFFER_LEN]) -> [u64; SLOTS.div_ceil(64)] {
    let mut written = [0; SLOTS.div_ceil(64)];
    for index in 0..SLOTS {
        written[index / 64] |= u64::from(Slot::is_written(bytes, index)) << (index % 64);
    }
    written
}

#[cfg(test)]
mod tests {
    use super::super::layout::tests::{buffer, put};
    use super::*;

    /// A buffer of batch `batch` whose slots `filled` hold their own numbers as times.
    fn filled(batch: u64, events: u64, filled: impl IntoIterator<Item = usize>) -> Buffer {
        let mut bytes = buffer(64, batch, events);
        for index in filled {
            put(&mut bytes, index, (index as u64, 0, 32, false));
        }
        bytes
    }

    type Buffer = Box<[u8; BUFFER_LEN]>;

    fn check(
        progress: &mut Progress,
        bytes: &Buffer,
        before: Option<&Buffer>,
        verdict: Verdict,
        times: impl IntoIterator<Item = u64>,
    ) {
        let header = Header::parse(&bytes[..]);
        let got = header.map_or(Verdict::Malformed, |header| progress.turn_to(&header));
        let mut taken = Vec::new();
        if let Verdict::New { .. } = got {
            taken.extend(progress.take(bytes, before.map(|b| &**b)).map(|slot| slot.time));
        }
        assert_eq!(got, verdict);
        assert_eq!(taken, times.into_iter().collect::<Vec<_>>());
    }

    const FINE: Verdict = Verdict::New { missing: 0, spared: 0 };

    #[test]
    fn nothing_is_taken_twice() {
        let mut progress = Progress::default();
        check(&mut progress, &filled(0, 0, 0..3), None, FINE, 0..3);
        check(&mut progress, &filled(0, 0, 0..5), None, FINE, 3..5);
        check(&mut progress, &filled(0, 0, 0..252), None, FINE, 5..252);
        check(&mut progress, &filled(1, 252, 0..2), None, FINE, 0..2);
        check(&mut progress, &filled(0, 0, 0..252), None, Verdict::Old, []);
    }

    #[test]
    fn only_what_was_there_before_is_whole() {
        let mut progress = Progress::default();
        let before = filled(0, 0, 0..3);
        check(&mut progress, &filled(0, 0, 0..5), Some(&before), FINE, 0..3);
        check(&mut progress, &filled(0, 0, 0..5), None, FINE, 3..5);
    }

    #[test]
    fn a_lost_batch_is_counted() {
        let mut progress = Progress::default();
        check(&mut progress, &filled(0, 0, 0..252), None, FINE, 0..252);
        let lost = Verdict::New { missing: 504, spared: 0 };
        check(&mut progress, &filled(3, 756, 0..1), None, lost, 0..1);
    }

    #[test]
    fn of_a_lost_batch_a_part_may_be_known() {
        let mut progress = Progress::default();
        check(&mut progress, &filled(0, 0, 0..200), None, FINE, 0..200);
        let lost = Verdict::New { missing: 52, spared: 0 };
        check(&mut progress, &filled(1, 252, 0..1), None, lost, 0..1);
    }

    #[test]
    fn what_was_looked_at_is_spared_when_its_batch_is_lost() {
        let mut progress = Progress::default();
        let first = filled(0, 0, 0..20);
        check(&mut progress, &first, Some(&first), FINE, 0..20);
        let lost = Verdict::New { missing: 232, spared: 20 };
        let second = filled(1, 252, 0..30);
        check(&mut progress, &second, Some(&second), lost, 0..30);
        check(&mut progress, &filled(1, 252, 0..252), None, FINE, 30..252);
        check(&mut progress, &filled(2, 504, 0..1), None, FINE, 0..1);
    }

    #[test]
    fn a_slot_written_late_comes_with_the_next_batch() {
        let mut progress = Progress::default();
        let hole = (0..100).chain(101..252);
        check(&mut progress, &filled(0, 0, hole.clone()), None, FINE, hole.map(|i| i as u64));
        let lost = Verdict::New { missing: 1, spared: 0 };
        check(&mut progress, &filled(1, 252, [0, 1, 100]), None, lost, [0, 1, 100]);
        // Two slots were taken, three delivered: none is missing in the end.
        let found = Verdict::New { missing: -1, spared: 0 };
        check(&mut progress, &filled(2, 254, 0..1), None, found, 0..1);
    }

    #[test]
    fn what_was_there_at_the_start_is_not_ours() {
        let mut progress = Progress::adopt(&filled(7, 9000, 0..10)).expect("a buffer");
        check(&mut progress, &filled(7, 9000, 0..12), None, FINE, 10..12);
        check(&mut progress, &filled(8, 9012, 0..1), None, FINE, 0..1);
    }

    #[test]
    fn numbers_that_cannot_be_are_refused() {
        let mut progress = Progress::default();
        check(&mut progress, &filled(1, 1 << 60, 0..1), None, Verdict::Malformed, []);
        check(&mut progress, &filled(1, u64::MAX, 0..1), None, Verdict::Malformed, []);
        check(&mut progress, &Box::new([0; BUFFER_LEN]), None, Verdict::Malformed, []);
        check(&mut progress, &filled(0, 0, 0..1), None, FINE, 0..1);
    }
}
