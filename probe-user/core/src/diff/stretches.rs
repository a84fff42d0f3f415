//! Cuts a recording into stretches of equal time.

use std::ops::{Range, RangeInclusive};

/// The number of stretches of a long recording: several for each run of neighbours drawn together,
/// but few enough for the memory of their histograms.
const MOST: u64 = 48;
/// The shortest stretch in nanoseconds: longer than a scheduler's time slice.
const SHORTEST: u64 = 10_000_000;

/// The stretches of a recording: see the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stretches {
    period: Range<u64>,
    count: u64,
}

impl Stretches {
    pub(crate) fn new(period: Range<u64>) -> Self {
        let count = (period.end.saturating_sub(period.start) / SHORTEST).clamp(1, MOST);
        Self { period, count }
    }

    pub(crate) fn count(&self) -> usize {
        self.count as usize
    }

    /// Returns the length of each in seconds.
    pub(crate) fn seconds(&self) -> f64 {
        self.length() as f64 / 1e9 / self.count as f64
    }

    fn length(&self) -> u64 {
        self.period.end.saturating_sub(self.period.start)
    }

    /// Returns a stretch's start and end. A call that ends at an edge belongs to the earlier one.
    pub(crate) fn window(&self, stretch: usize) -> Range<u64> {
        let edge = |place: u64| {
            let offset = u128::from(self.length()) * u128::from(place) / u128::from(self.count);
            self.period.start.saturating_add(offset as u64)
        };
        edge(stretch as u64)..edge(stretch as u64 + 1)
    }

    /// Returns the stretches that overlap a window: at least one.
    pub(crate) fn within(&self, window: &Range<u64>) -> RangeInclusive<usize> {
        let first = self.at(window.start);
        let mut last = self.at(window.end).max(first);
        if last > first && self.window(last).start >= window.end {
            last -= 1;
        }
        first..=last
    }

    fn at(&self, time: u64) -> usize {
        let offset = u128::from(time.saturating_sub(self.period.start));
        let place = offset * u128::from(self.count) / u128::from(self.length().max(1));
        let place = (place as u64).min(self.count - 1);
        // Edges are rounded down.
        let next = (place + 1).min(self.count - 1);
        let begun = self.window(next as usize).start <= time;
        if begun { next as usize } else { place as usize }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_is_cut_evenly_and_wholly() {
        for (period, count) in
            [(0..0, 1), (5..9_999_999, 1), (7..80_000_007, 8), (3..90_000_000_011, 48)]
        {
            let stretches = Stretches::new(period.clone());
            assert_eq!(stretches.count(), count);
            let windows: Vec<_> = (0..count).map(|at| stretches.window(at)).collect();
            assert_eq!((windows[0].start, windows[count - 1].end), (period.start, period.end));
            assert!(windows.windows(2).all(|pair| pair[0].end == pair[1].start));
            for (at, window) in windows.iter().enumerate().filter(|(_, window)| !window.is_empty())
            {
                assert_eq!(stretches.within(window), at..=at);
                assert_eq!(stretches.within(&(window.start..window.start + 1)), at..=at);
            }
            assert_eq!(stretches.within(&(0..u64::MAX)), 0..=count - 1);
        }
    }
}
