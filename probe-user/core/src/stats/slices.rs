//! A stretch of time in equal slices. Like a window, a slice excludes its first edge and includes
//! its last.

use crate::units::Nanos;

/// More slices would not be visible.
const MAX: usize = 4_096;
/// Bits of a cell's key that hold its slice.
pub(crate) const SLICE_BITS: u32 = 16;
const _: () = assert!(MAX <= 1 << SLICE_BITS);

#[derive(Clone, Copy, Debug)]
pub(crate) struct Slices {
    start: u64,
    length: u64,
    count: u64,
}

impl Slices {
    pub(crate) fn new(start: Nanos, end: Nanos, count: usize) -> Self {
        let length = end.since(start).0;
        let count = (count.clamp(1, MAX) as u64).min(length.max(1));
        Self { start: start.0, length, count }
    }

    pub(crate) fn len(&self) -> usize {
        self.count as usize
    }

    /// Returns the edge before the slice of this index.
    pub(crate) fn edge(&self, index: usize) -> u64 {
        let part = u128::from(self.length) * index as u128 / u128::from(self.count);
        self.start + part as u64
    }

    /// Returns a lower bound on the length of all slices.
    pub(crate) fn shortest(&self) -> u64 {
        self.length / self.count
    }

    pub(crate) fn edges(&self) -> Vec<Nanos> {
        (0..=self.len()).map(|index| Nanos(self.edge(index))).collect()
    }

    /// Returns the slice that contains this time, or else the nearest.
    #[inline]
    pub(crate) fn of(&self, time: u64) -> usize {
        let since = time.saturating_sub(self.start).saturating_sub(1).min(self.length);
        let guess = u128::from(since) * u128::from(self.count) / u128::from(self.length.max(1));
        let mut index = (guess as usize).min(self.len() - 1);
        while index > 0 && time <= self.edge(index) {
            index -= 1;
        }
        while index + 1 < self.len() && time > self.edge(index + 1) {
            index += 1;
        }
        index
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_time_is_in_the_slice_whose_edges_are_around_it() {
        for (start, length, count) in [(100, 7, 3), (0, 1_000, 60), (5, 0, 9), (9, 2, 60)] {
            let slices = Slices::new(Nanos(start), Nanos(start + length), count);
            assert_eq!(slices.edge(0), start);
            assert_eq!(slices.edge(slices.len()), start + length);
            for time in start + 1..=start + length {
                let index = slices.of(time);
                assert!(slices.edge(index) < time && time <= slices.edge(index + 1), "{time}");
            }
            assert_eq!((slices.of(0), slices.of(u64::MAX)), (0, slices.len() - 1));
        }
        let all = Slices::new(Nanos(0), Nanos::MAX, MAX);
        assert_eq!((all.of(1), all.of(u64::MAX)), (0, MAX - 1));
    }
}
