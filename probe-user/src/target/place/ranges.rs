//! Ranges of addresses with a fast look-up, however many there are.

use std::ops::Range;

#[derive(Debug, Default)]
pub(super) struct Ranges {
    /// Sorted by begin, with gaps between them.
    apart: Vec<Range<u64>>,
}

impl Ranges {
    pub(super) fn new(mut ranges: Vec<Range<u64>>) -> Self {
        ranges.retain(|range| !range.is_empty());
        ranges.sort_unstable_by_key(|range| range.start);
        ranges.dedup_by(|next, last| {
            let touches = next.start <= last.end;
            if touches {
                last.end = last.end.max(next.end);
            }
            touches
        });
        Self { apart: ranges }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.apart.is_empty()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.apart.iter().cloned()
    }

    pub(super) fn contain(&self, address: u64) -> bool {
        let after = self.apart.partition_point(|range| range.start <= address);
        self.apart[..after].last().is_some_and(|range| address < range.end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlapping_ranges_are_one() {
        let ranges = Ranges::new(vec![20..30, 5..6, 25..26, 28..40, 0..0, 40..41, 50..50]);
        assert_eq!(ranges.apart, [5..6, 20..41]);
        let inside: Vec<u64> = (0..60).filter(|at| ranges.contain(*at)).collect();
        assert_eq!(inside, (5..6).chain(20..41).collect::<Vec<_>>());
        assert!(Ranges::new(vec![7..7, 8..8]).is_empty());
    }
}
